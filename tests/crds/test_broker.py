from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from lockkeeper_api import Broker, default_broker


def broker(**spec: Any) -> Broker:
    return Broker.model_validate(
        {
            "apiVersion": "lockkeeper.dev/v1alpha1",
            "kind": "Broker",
            "metadata": {"name": "main"},
            "spec": spec,
        }
    )


def test_the_default_broker_is_activemqs_stock_configuration() -> None:
    spec = default_broker().spec
    (listener,) = spec.listeners
    assert (listener.name, listener.protocol, listener.host) == ("openwire", "openwire", None)
    assert (listener.port, listener.connections_max) == (61616, 1000)
    assert listener.frame_bytes_max == 104_857_600
    assert listener.max_inactivity_duration == timedelta(seconds=30)
    assert spec.replicas == 1
    assert spec.journal.file_bytes == 32 * 2**20
    assert spec.journal.recorder.clock_interval == timedelta(milliseconds=50)
    usage = spec.system_usage
    assert usage.memory_usage.limit == 1 << 30
    assert usage.store_usage.limit == 100 << 30
    assert usage.temp_usage.limit == 50 << 30
    assert not usage.send_fail_if_no_space
    assert usage.send_fail_if_no_space_after_timeout == timedelta(0)
    (virtual,) = spec.virtual_topics
    assert (virtual.name, virtual.prefix, virtual.postfix) == ("VirtualTopic.>", "Consumer.*.", "")
    assert (spec.composite_destinations, spec.mirrored_queues) == ([], None)
    assert spec.schedule_period_for_destination_purge == timedelta(0)
    assert broker() == broker(replicas=1, journal={"fileBytes": "32Mi"})


def test_an_entry_without_settings_has_activemqs_policy() -> None:
    (entry,) = broker(destinationPolicies=[{"match": "ORDERS.>"}]).spec.destination_policies
    assert (entry.match, entry.kind, entry.memory_limit, entry.recorded) == (
        "ORDERS.>", None, None, False,
    )  # fmt: skip
    prefetch = entry.prefetch
    assert (prefetch.queue, prefetch.queue_browser) == (1000, 500)
    assert (prefetch.topic, prefetch.durable_topic) == (32767, 100)
    letters = entry.dead_letters
    assert (letters.strategy, letters.queue) == ("Shared", "ActiveMQ.DLQ")
    assert letters.queue_prefix == "ActiveMQ.DLQ.Queue."
    assert letters.topic_prefix == "ActiveMQ.DLQ.Topic."
    assert letters.process_expired
    assert not letters.process_non_persistent
    assert letters.maximum_redeliveries == -1


def test_a_resource_survives_being_written_and_read() -> None:
    full = broker(
        replicas=2,
        listeners=[{"name": "a", "port": 0, "frameBytesMax": "1Mi"}, {"name": "b", "port": 0}],
        journal={"recorder": {"enabled": False, "clockInterval": "100ms"}},
        system_usage={"storeUsage": {"limit": "10Gi"}, "tempUsage": {"percentLimit": 5}},
        virtualTopics=[{"name": "V.>", "prefix": "A.*.", "selectorAware": True}],
        compositeDestinations=[{"name": "C.*", "forwardTo": [{"topic": "T", "selector": "n = 1"}]}],
        mirroredQueues={"prefix": "Mirror."},
        limits={"destinations": 7},
        destinationPolicies=[{"match": ">", "kind": "Topic", "memoryLimit": "64Mi"}],
    )
    assert Broker.model_validate_json(full.model_dump_json(by_alias=True)) == full
    wire = full.model_dump(mode="json", by_alias=True)
    assert wire["spec"]["systemUsage"]["storeUsage"]["limit"] == "10Gi"
    assert wire["spec"]["journal"]["recorder"]["clockInterval"] == "100ms"


@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": 0},
        {"replicas": "2"},
        {"replicas": 1.5},
        {"listeners": []},
        {"listeners": [{"name": "A"}]},
        {"listeners": [{"name": "a", "port": 65536}]},
        {"listeners": [{"name": "a", "protocol": "gopher"}]},
        {"listeners": [{"name": "a"}, {"name": "a", "port": 2}]},
        {"listeners": [{"name": "a"}, {"name": "b"}]},
        {"journal": {"fileBytes": "1Ki"}},
        {"journal": {"archive": "sometimes"}},
        {"systemUsage": {"memoryUsage": {"limit": "lots"}}},
        {"systemUsage": {"memoryUsage": {"percentOfAllowance": 101}}},
        {"systemUsage": {"sendFailIfNoSpaceAfterTimeout": "-1s"}},
        {"locker": {"acquireInterval": 1}},
        {"destinationPolicies": [{"match": "A", "kind": "queue"}]},
        {"destinationPolicies": [{"kind": "Queue"}]},
        {"destinationPolicies": [{"match": "A", "deadLetters": {"queue": "DLQ.*"}}]},
        {"destinationPolicies": [{"match": "A", "prefetch": {"queue": -1}}]},
        {"destinationPolicies": [{"match": "A", "inactivity": {"inactiveTimeoutBeforeGc": "0s"}}]},
        {"limits": {"consumers": 0}},
        {"virtualTopics": [{"name": "A.>.B"}]},
        {"virtualTopics": [{"prefix": ""}]},
        {"virtualTopics": [{"prefix": "Consumer.x*."}]},
        {"virtualTopics": [{"postfix": ".>"}]},
        {"virtualTopics": [{"postfix": "?x"}]},
        {"mirroredQueues": {"postfix": " x"}},
        {"compositeDestinations": [{"name": "A", "forwardTo": []}]},
        {"compositeDestinations": [{"name": "A", "forwardTo": [{"selector": "n = 1"}]}]},
        {"compositeDestinations": [{"name": "A", "forwardTo": [{"queue": "B", "topic": "C"}]}]},
        {"compositeDestinations": [{"name": "A", "forwardTo": [{"queue": "B.*"}]}]},
    ],
)
def test_values_out_of_range_or_of_another_type_are_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        broker(**spec)
