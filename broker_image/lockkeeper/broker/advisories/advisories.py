"""Advisory messages: one method for each event that listeners are told of."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lockkeeper.broker.advisories.composer import Composer, unwanted
from lockkeeper.broker.advisories.names import (
    CONNECTIONS,
    DESTINATIONS,
    NETWORK_BRIDGES,
    About,
    advisory_topic,
    advisory_topics,
    is_advisory,
)
from lockkeeper.broker.advisories.replay import Replay
from lockkeeper.broker.advisories.structures import (
    bridge_info,
    bridge_properties,
    connection_info,
    connection_removal,
    consumer_id_of,
    consumer_info,
    consumer_removal,
    destination_info,
    message_fields,
    producer_info,
    producer_of,
    producer_removal,
)
from lockkeeper.broker.advisories.virtual_demand import VirtualDemand
from lockkeeper.broker.policies.advisories import AdvisoryPolicy
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.message.destination import Destination, path_matches
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import RemoveSubscriptionInfo, Structure
from lockkeeper.message.primitives import Value
from lockkeeper.store.base import Reference, Subscription

if TYPE_CHECKING:
    from lockkeeper.broker.connections import Connection, NetworkPeer
    from lockkeeper.broker.context import Context
    from lockkeeper.broker.regions.registry import Registry
    from lockkeeper.broker.subscriptions.consumer import Consumer

_NOTHING: Mapping[str, Value] = {}


class Listeners(NamedTuple):
    """Regions whose consumers listen to the topic *target*: by its name, and by wildcards."""

    target: Destination
    regions: list[Topic]


class Advisories:
    """The advisories of one broker; those that policies switch are asked for by their regions.

    *temporary* are the owners of temporary destinations. Listeners by a wildcard have one topic of
    its name, whatever it stands for: so a destination leaves nothing behind when it goes.
    """

    def __init__(
        self,
        context: "Context",
        registry: "Registry",
        connections: "Mapping[str, Connection]",
        temporary: "Mapping[Destination, Connection]",
        composer: Composer,
        virtual: VirtualDemand,
        is_enabled: bool,
    ) -> None:
        self._context = context
        self._registry = registry
        self._temporary = temporary
        self._composer = composer
        self._virtual = virtual
        self._is_enabled = is_enabled
        self._replay = Replay(context, self, registry, connections, temporary, virtual)
        self._producers: Counter[Destination | None] = Counter()
        self._slow: set[Consumer] = set()
        self._wildcards: dict[Destination, Topic] = {}

    def listeners(self, target: Destination) -> Listeners | None:
        """Return who listens to an advisory topic, by a wildcard perhaps."""
        if not self._is_enabled:
            return None
        region = self._registry.find_topic(target)
        if region is None and self._registry.is_watched(target):
            region = self._registry.ensure_topic(self._context, target)
        found = [region] if region is not None and region.volatiles else []
        if self._wildcards:
            path = target.path
            found += [
                wildcard
                for wildcard in self._wildcards.values()
                if wildcard.volatiles
                and wildcard is not region
                and path_matches(wildcard.destination.path, path)
            ]
        return Listeners(target, found) if found else None

    def compose(
        self,
        target: Destination,
        content: Structure | None,
        properties: Mapping[str, Value] = _NOTHING,
        reader: "Consumer | None" = None,
    ) -> Message:
        """Return an advisory, for one *reader* alone if there is one."""
        context = self._context
        only = None if reader is None else consumer_id_of(reader)
        sequence = context.next_sequence()
        return self._composer.compose(target, content, properties, sequence, context.now, only)

    def _send(
        self,
        listeners: Listeners,
        content: Structure | None,
        properties: Mapping[str, Value] = _NOTHING,
    ) -> None:
        for region in listeners.regions:
            hand_over(region, self.compose(listeners.target, content, properties))

    def replay(self, consumer: "Consumer", source: Destination) -> None:
        """Tell a new consumer of advisories what exists already."""
        if not self._is_enabled:
            return
        region = self._registry.find_topic(source)
        if source.is_pattern and region is not None:
            self._forget_wildcards()
            self._wildcards[source] = region
        self._replay.tell_consumer(consumer, source)

    def _forget_wildcards(self) -> None:
        """Forget the wildcards that nobody listens by any more."""
        for destination, region in list(self._wildcards.items()):
            if not region.volatiles:
                del self._wildcards[destination]
                if self._registry.find(destination) is region:
                    self._registry.forget(destination)

    # Connections, destinations, producers and consumers

    def connected(self, connection: "Connection") -> None:
        """Tell of a new connection."""
        if (listeners := self.listeners(CONNECTIONS)) is not None:
            self._send(listeners, connection_info(connection))

    def disconnected(self, connection: "Connection") -> None:
        """Tell that a connection has ended, and with it a bridge perhaps."""
        if connection.network is not None and connection.network.is_forwarded_to:
            self._bridge_stopped(connection.network)
        if (listeners := self.listeners(CONNECTIONS)) is not None:
            self._send(listeners, connection_removal(connection))

    def bridge_started(self, connection: "Connection", peer: "NetworkPeer") -> None:
        """Tell that messages are forwarded to another broker from now on, if they are."""
        if not peer.is_forwarded_to:
            return
        if (listeners := self.listeners(NETWORK_BRIDGES)) is not None:
            self._send(listeners, bridge_info(peer), bridge_properties(connection, peer))

    def _bridge_stopped(self, peer: "NetworkPeer") -> None:
        if (listeners := self.listeners(NETWORK_BRIDGES)) is not None:
            self._send(listeners, bridge_info(peer), {"started": False})

    def destination_added(self, destination: Destination) -> None:
        """Tell of a new destination."""
        self._tell_destination(destination, removed=False)
        for source, info in self._virtual.of_new(destination):
            self._tell_virtual(source, info)

    def destination_removed(self, destination: Destination) -> None:
        """Tell that a destination is gone, and forget its advisory topics without listeners."""
        self._replay.ends(destination)
        self._tell_destination(destination, removed=True)
        if is_advisory(destination):
            return
        for source, removal in self._virtual.of_removed(destination):
            self._tell_virtual(source, removal)
        for target in advisory_topics(destination):
            region = self._registry.find_topic(target)
            if region is not None and not region.volatiles:
                self._registry.forget(target)

    def _tell_destination(self, destination: Destination, removed: bool) -> None:
        listeners = self.listeners(DESTINATIONS[destination.kind])
        if listeners is not None and not is_advisory(destination):
            owner = self._temporary.get(destination)
            self._send(listeners, destination_info(destination, owner, removed))

    def producer_added(
        self, connection: "Connection", producer: object, destination: Destination | None
    ) -> None:
        """Tell of a new producer, unless each of its messages names its own destination."""
        self._producers[destination] += 1
        listeners = self._listeners_about(About.PRODUCER, destination)
        if listeners is not None and destination is not None:
            content = producer_info(producer, destination)
            self._send(listeners, content, self.producer_count(destination))

    def producer_removed(
        self, connection: "Connection", producer: object, destination: Destination | None
    ) -> None:
        """Tell that a producer has ended."""
        self._producers[destination] -= 1
        if not self._producers[destination]:
            del self._producers[destination]
        listeners = self._listeners_about(About.PRODUCER, destination)
        if listeners is not None and destination is not None:
            self._send(listeners, producer_removal(producer), self.producer_count(destination))

    def consumer_added(self, consumer: "Consumer") -> None:
        """Tell of a new consumer."""
        listeners = self._listeners_about(About.CONSUMER, consumer.destination)
        if listeners is not None:
            count = self.consumer_count(consumer.destination)
            self._send(listeners, consumer_info(consumer), count)
        for source, info in self._virtual.of_consumer(consumer):
            self._tell_virtual(source, info)

    def consumer_removed(self, consumer: "Consumer") -> None:
        """Tell that a consumer has ended."""
        self._slow.discard(consumer)
        listeners = self._listeners_about(About.CONSUMER, consumer.destination)
        if listeners is not None:
            count = self.consumer_count(consumer.destination)
            self._send(listeners, consumer_removal(consumer), count)
        for source, removal in self._virtual.of_ended(consumer):
            self._tell_virtual(source, removal)

    def subscription_removed(self, subscription: Subscription) -> None:
        """Tell that a durable subscription was deleted."""
        content = RemoveSubscriptionInfo(
            subscription_name=subscription.name, client_id=subscription.client_id
        )
        listeners = self._listeners_about(About.CONSUMER, subscription.destination)
        if listeners is not None:
            self._send(listeners, content, self.consumer_count(subscription.destination))
        for source in self._virtual.sources(subscription.destination):
            self._tell_virtual(source, content)

    def _tell_virtual(self, source: Destination, content: Structure) -> None:
        """Tell that demand for a virtual destination comes or goes."""
        listeners = self._listeners_about(About.VIRTUAL_CONSUMER, source)
        if listeners is not None:
            self._send(listeners, content, self.consumer_count(source))

    def _listeners_about(self, about: About, destination: Destination | None) -> Listeners | None:
        """Return who listens to what is told of a destination; nobody does for an advisory."""
        if destination is None or not self._is_enabled or is_advisory(destination):
            return None
        return self.listeners(advisory_topic(about, destination))

    def consumer_count(self, destination: Destination) -> Mapping[str, Value]:
        """Return how many consumers the destinations of a name have, as the property that says."""
        regions: list[Queue | Topic] = []
        for part in destination.parts():
            if part.is_pattern:
                regions += self._registry.matching(part)
            elif (region := self._registry.find(part)) is not None:
                regions.append(region)
        return {"consumerCount": sum(len(region.takers()) for region in regions)}

    def producer_count(self, destination: Destination) -> Mapping[str, Value]:
        """Return how many producers have this destination, as the property that says."""
        return {"producerCount": self._producers[destination]}

    # Messages

    def arrived(
        self, destination: Destination, policy: AdvisoryPolicy, message: Message, is_wanted: bool
    ) -> None:
        """Tell of a message that reached its destination, and whether anybody is there for it."""
        if policy.advisory_for_delivery:
            self._tell_message(About.DELIVERED, destination, policy, message)
        if is_wanted or message.persistent or not policy.send_advisory_if_no_consumers:
            return
        listeners = self._listeners_about(About.NO_CONSUMER, destination)
        if listeners is not None:
            for region in listeners.regions:
                sequence = self._context.next_sequence()
                hand_over(region, unwanted(message, listeners.target, sequence))

    def consumed(
        self, destination: Destination, policy: AdvisoryPolicy, references: Iterable[Reference]
    ) -> None:
        """Tell of acknowledged messages."""
        for reference in references:
            self._tell_message(About.CONSUMED, destination, policy, reference.loaded)

    def discarded(
        self,
        consumer: "Consumer",
        destination: Destination,
        messages: Sequence[Message],
        count: int,
    ) -> None:
        """Tell of messages that a consumer was too slow for; *count* with those before."""
        policy = self._context.policies.find(destination).advisories
        properties: dict[str, Value] = {
            "consumerId": str(consumer.identifier),
            "discardedCount": count,
        }
        for message in messages:
            self._tell_message(About.DISCARDED, destination, policy, message, properties)

    def expired(self, destination: Destination, policy: AdvisoryPolicy, message: Message) -> None:
        """Tell of a message whose time was over."""
        self._tell_message(About.EXPIRED, destination, policy, message)

    def dead_lettered(
        self, destination: Destination, policy: AdvisoryPolicy, message: Message
    ) -> None:
        """Tell of a message that went to a dead letter queue."""
        self._tell_message(About.DEAD_LETTERED, destination, policy, message)

    def _tell_message(
        self,
        about: About,
        destination: Destination,
        policy: AdvisoryPolicy,
        message: Message,
        properties: Mapping[str, Value] = _NOTHING,
    ) -> None:
        listeners = self._listeners_about(about, destination)
        if listeners is None:
            return
        content = message_fields(message, policy.include_body_for_advisory)
        # So ActiveMQ spells them.
        marks = {
            "orignalMessageId": str(content.message_id),
            "orignalDestination": str(destination),
        }
        self._send(listeners, content, {**marks, **properties})

    # Want of room

    def slow(self, consumer: "Consumer", destination: Destination) -> None:
        """Tell that messages wait for a consumer whose window is full, once until it moves."""
        if not consumer.is_slow():
            self._slow.discard(consumer)
            return
        if consumer in self._slow:
            return
        listeners = self._listeners_about(About.SLOW_CONSUMER, destination)
        if listeners is not None:
            self._slow.add(consumer)
            mark = {"consumerId": str(consumer.identifier)}
            self._send(listeners, consumer_info(consumer), mark)

    def stalled(self, connection: "Connection", message: Message, usage: str, used: int) -> None:
        """Tell of a message that has to wait for room, and of its producer.

        *used* are the bytes in use of *usage*, which is full.
        """
        destination = message.destination
        policy = self._context.policies.find(destination).advisories
        if policy.advisory_when_full:
            self.full(destination, usage, used)
        if not policy.advisory_for_fast_producers:
            return
        listeners = self._listeners_about(About.FAST_PRODUCER, destination)
        if listeners is not None:
            producer = producer_of(connection, message)
            mark = {"producerId": str(producer)}
            self._send(listeners, producer_info(producer, destination), mark)

    def full(self, destination: Destination, usage: str, used: int) -> None:
        """Tell that something is full, of which *used* bytes are in use."""
        listeners = self._listeners_about(About.FULL, destination)
        if listeners is not None:
            self._send(listeners, None, {"usageName": usage, "usageCount": used})


def hand_over(region: Topic, message: Message) -> None:
    """Send an advisory to those who listen by the name of *region*, a wildcard perhaps.

    What it says of itself stays the topic that the wildcard stands for.
    """
    message.destination = region.destination
    region.accept(message, None)
