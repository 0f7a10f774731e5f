"""A validated Broker resource as the settings of the core and its listeners."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from lockkeeper.broker.policies.policy import (
    DeadLetterPolicy,
    DeadLetterStrategy,
    DestinationPolicy,
    PolicyEntry,
    PolicyMap,
)
from lockkeeper.message.destination import Destination, Kind
from lockkeeper.protocols.openwire.codec import Settings
from lockkeeper_api import Broker
from lockkeeper_api import Destination as DestinationResource
from lockkeeper_api.broker import Listener
from lockkeeper_api.policy import DestinationPolicy as PolicyModel
from lockkeeper_api.policy import DestinationPolicyEntry

LOOPBACK = "127.0.0.1"


def milliseconds(duration: timedelta) -> int:
    """Return *duration* in whole ms."""
    return duration // timedelta(milliseconds=1)


def listener_settings(listener: Listener) -> Settings:
    """Return what a listener offers its clients."""
    return Settings(
        frame_bytes_max=listener.frame_bytes_max,
        inactivity_duration=milliseconds(listener.max_inactivity_duration),
    )


def destination_of(resource: DestinationResource) -> Destination:
    """Return the destination that a resource asks for."""
    kind = Kind.QUEUE if resource.spec.kind == "Queue" else Kind.TOPIC
    return Destination(kind, resource.name)


def policy_map(broker: Broker, destinations: Iterable[DestinationResource]) -> PolicyMap:
    """Return the policies: those of single destinations win over the broker's wildcards."""
    entries = [_entry(entry) for entry in broker.spec.destination_policies]
    for resource in destinations:
        if resource.spec.policy is not None:
            is_queue = resource.spec.kind == "Queue"
            entries.append(PolicyEntry(resource.name, is_queue, _policy(resource.spec.policy)))
    return PolicyMap(entries)


def _entry(entry: DestinationPolicyEntry) -> PolicyEntry:
    is_queue = None if entry.kind is None else entry.kind == "Queue"
    return PolicyEntry(entry.match, is_queue, _policy(entry))


def _policy(model: PolicyModel) -> DestinationPolicy:
    letters = model.dead_letters
    return DestinationPolicy(
        queue_prefetch=model.prefetch.queue,
        browser_prefetch=model.prefetch.queue_browser,
        topic_prefetch=model.prefetch.topic,
        durable_prefetch=model.prefetch.durable_topic,
        memory_limit=model.memory_limit or 0,
        recorded=model.recorded,
        dead_letters=DeadLetterPolicy(
            strategy=DeadLetterStrategy(letters.strategy),
            queue=letters.queue,
            queue_prefix=letters.queue_prefix,
            topic_prefix=letters.topic_prefix,
            use_queue_for_queue_messages=letters.use_queue_for_queue_messages,
            use_queue_for_topic_messages=letters.use_queue_for_topic_messages,
            process_expired=letters.process_expired,
            process_non_persistent=letters.process_non_persistent,
            expiration=milliseconds(letters.expiration),
            maximum_redeliveries=letters.maximum_redeliveries,
        ),
    )


def initial_destinations(resources: Sequence[DestinationResource]) -> list[Destination]:
    """Return the destinations that exist from the start."""
    return [destination_of(resource) for resource in resources]
