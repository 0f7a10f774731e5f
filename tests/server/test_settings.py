"""A resource's policies as the core sees them."""

from dataclasses import fields, is_dataclass
from typing import Any

from pydantic.fields import FieldInfo

from lockkeeper.broker.interceptors.timestamps import TimestampSettings
from lockkeeper.broker.policies.dead_letters import DeadLetterStrategy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.redelivery import RedeliveryPolicy
from lockkeeper.broker.routing.composites import CompositeDestination, ForwardTo
from lockkeeper.broker.routing.mirrors import MirroredQueues
from lockkeeper.broker.routing.virtual_topics import VirtualTopic
from lockkeeper.broker.settings import BrokerSettings, LimitSettings
from lockkeeper.message.destination import queue, topic
from lockkeeper.network.settings import BridgeSettings
from lockkeeper.server.conversion import converted
from lockkeeper.server.networks.conversion import bridge_settings
from lockkeeper.server.settings import listener_settings, policy_map
from lockkeeper_api import DestinationPolicy as PolicyModel
from lockkeeper_api import parse_resources
from lockkeeper_api.broker import BrokerSpec, Listener, Timestamps
from lockkeeper_api.network_connectors import NetworkConnector
from lockkeeper_api.policies.redelivery import Redelivery

BROKER = """
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata: {name: orders}
spec:
  destinationPolicies:
    - match: ORDERS.>
      kind: Queue
      prefetch: {queue: 7}
      memoryLimit: 1Mi
      deadLetters: {strategy: Individual, expiration: 90s}
"""

ROUTING = """
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata: {name: routing}
spec:
  virtualTopics:
    - name: V.>
      prefix: A.*.
      postfix: .x
      selectorAware: true
      local: true
      dropOnResourceLimit: true
      setOriginalDestination: false
      concurrentSend: true
      transactedSend: true
  compositeDestinations:
    - name: C
      kind: Topic
      forwardTo: [{queue: Q}, {topic: T, selector: n = 1}]
      forwardOnly: false
      concurrentSend: true
  mirroredQueues: {prefix: Mirror., postfix: .x, copyMessage: false, useTempMirroredQueues: false}
  limits: {destinations: 1, consumers: 2, producers: 3, temporaryDestinations: 4, transactions: 5}
  schedulePeriodForDestinationPurge: 30s
  maxPurgedDestinationsPerSweep: 9
"""


def test_a_policy_says_in_the_core_what_its_resource_says() -> None:
    (broker,) = parse_resources(BROKER, "broker.yaml").brokers
    policies = policy_map(broker, ())
    policy = policies.find(queue("ORDERS.EU"))
    assert policy.prefetch.queue == 7
    assert policy.memory_limit == 1 << 20
    assert policy.dead_letters.strategy is DeadLetterStrategy.INDIVIDUAL
    assert policy.dead_letters.expiration == 90_000
    assert policies.find(topic("ORDERS.EU")) == DestinationPolicy()


def test_the_resource_and_the_core_have_the_same_defaults() -> None:
    assert converted(PolicyModel(), DestinationPolicy) == DestinationPolicy()
    assert converted(BrokerSpec(), BrokerSettings) == BrokerSettings()


def test_a_broker_routes_as_its_resource_says() -> None:
    (broker,) = parse_resources(ROUTING, "broker.yaml").brokers
    settings = converted(broker.spec, BrokerSettings)
    assert settings.virtual_topics == (
        VirtualTopic("V.>", "A.*.", ".x", True, True, True, set_original_destination=False),
    )
    assert settings.composite_destinations == (
        CompositeDestination(
            "C", "Topic", (ForwardTo(queue="Q"), ForwardTo(topic="T", selector="n = 1")), False
        ),
    )
    assert settings.mirrored_queues == MirroredQueues("Mirror.", ".x", False, False)
    assert settings.limits == LimitSettings(1, 2, 3, 4, 5)
    assert settings.schedule_period_for_destination_purge == 30_000
    assert settings.max_purged_destinations_per_sweep == 9


def test_every_field_of_the_resource_has_its_field_in_the_core() -> None:
    def compare(model: Any, policy: Any) -> None:
        assert set(type(model).model_fields) == {field.name for field in fields(policy)}
        for field in fields(policy):
            if is_dataclass(getattr(policy, field.name)):
                compare(getattr(model, field.name), getattr(policy, field.name))

    compare(PolicyModel(), DestinationPolicy())
    compare(Redelivery(), RedeliveryPolicy())


def test_a_feature_that_is_asked_for_without_more_has_its_defaults() -> None:
    assert converted(Redelivery(), RedeliveryPolicy) == RedeliveryPolicy()
    assert converted(Timestamps(), TimestampSettings) == TimestampSettings()


def test_what_only_clusters_honour_changes_nothing_of_a_local_broker() -> None:
    for_clusters = {
        "storage": {"size": "20Gi", "path": "data"},
        "access": {"users": [{"name": "jfk"}], "permissions": [{"match": ">"}]},
        "image": {"name": "example/lockkeeper:1"},
        "resources": {"limits": {"memory": "1Gi"}},
        "pods": {"tolerations": [{"operator": "Exists"}]},
        "security": {"runAsUser": 999},
        "paused": True,
        "hibernated": True,
        "analytics": {"schedule": "0 3 * * *"},
    }
    spec, plain = BrokerSpec.model_validate(for_clusters), BrokerSpec()
    assert converted(spec, BrokerSettings) == converted(plain, BrokerSettings)
    protected = {"name": "openwire", "tls": {"secretName": "web"}, "service": {"type": "NodePort"}}
    listener = Listener.model_validate(protected)
    assert listener_settings(listener) == listener_settings(Listener(name="openwire"))


def test_every_option_of_a_bridge_is_taken_over() -> None:
    """Each flag of a connector that a bridge has, too, says there what it says here."""
    flags = [
        field.name
        for field in fields(BridgeSettings)
        if NetworkConnector.model_fields.get(field.name, FieldInfo()).annotation is bool
    ]
    assert "use_virtual_dest_subs" in flags
    for name in flags:
        for value in (True, False):
            given: dict[str, Any] = {"uri": "static:(tcp://a:1)", name: value}
            if name == "sync_durable_subs":
                given["dynamicallyIncludedDestinations"] = [{"name": ">", "kind": "Topic"}]
            connector = NetworkConnector.model_validate(given)
            assert getattr(bridge_settings(connector), name) is value, name
