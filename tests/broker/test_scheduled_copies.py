"""Scheduled messages that become more copies than are ever taken: refused, or dead letters."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.errors import ResourceAllocationError
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.redelivery import RedeliveryPolicy
from lockkeeper.broker.routing.composites import CompositeDestination, ForwardTo
from lockkeeper.broker.settings import (
    BrokerSettings,
    MemoryUsage,
    SchedulerSettings,
    SystemUsage,
)
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded, properties_of
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench

JOBS, DEAD = "ActiveMQ.Scheduler.Jobs", "ActiveMQ.DLQ"
MINUTE = 60_000
LATER: dict[str, Value] = {"AMQ_SCHEDULED_DELAY": MINUTE}
AGAIN: dict[str, Value] = {**LATER, "AMQ_SCHEDULED_PERIOD": MINUTE, "AMQ_SCHEDULED_REPEAT": -1}
LARGE = "x" * 400_000
THREE = (ForwardTo(queue="A"), ForwardTo(queue="B"), ForwardTo(queue="C"))
RULES = (
    CompositeDestination("ALL", forward_to=THREE),
    CompositeDestination("Q", forward_to=THREE, forward_only=False),
)
AMPLE = BrokerSettings(
    scheduler=SchedulerSettings(enabled=True),
    composite_destinations=RULES,
    system_usage=SystemUsage(MemoryUsage(8 << 20)),
)
SCANT = replace(AMPLE, system_usage=SystemUsage(MemoryUsage(1 << 20)))
REFUSAL = r"^3 copies of 4\d+ bytes are more than 1048576, "


def depths(bench: "Bench") -> dict[str, int]:
    """Return how many messages there are at each place that has some."""
    found = {name: bench.depth(name) for name in (JOBS, DEAD, "A", "B", "C", "Q")}
    return {name: depth for name, depth in found.items() if depth}


def causes(bench: "Bench") -> list[str]:
    """Return what dead letters say of why they are there."""
    client = bench.client()
    dead = client.deliveries(client.consume(DEAD))
    found = [properties_of(decoded(each.message)) for each in dead]
    return [str(properties["dlqDeliveryFailureCause"]) for properties in found]


@pytest.mark.parametrize("to", ["A,B,C", "ALL"])
@pytest.mark.parametrize("in_transaction", [False, True])
def test_what_is_too_large_already_is_refused_as_if_sent_at_once(
    make_bench: "type[Bench]", to: str, in_transaction: bool
) -> None:
    bench = make_bench(settings=SCANT)
    client = bench.client()
    fields: dict[str, Any] = {"transaction_id": client.begin()} if in_transaction else {}
    for properties in (None, LATER):
        with pytest.raises(ResourceAllocationError, match=REFUSAL):
            client.send(to, LARGE, properties=properties, **fields)
    assert depths(bench) == {}
    client.send("A,B", LARGE, properties=LATER)
    bench.tick(MINUTE)
    assert depths(bench) == {"A": 1, "B": 1}


def test_a_topic_of_virtual_ones_is_asked_who_reads_it(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=SCANT)
    client = bench.client()
    for name in "ABC":
        client.consume(f"Consumer.{name}.VirtualTopic.T")
    with pytest.raises(ResourceAllocationError, match=r"^4 copies of "):
        client.send("topic://VirtualTopic.T", LARGE, properties=LATER)
    bench.tick(MINUTE)
    assert client.deliveries() == []


def test_a_destination_that_forwards_nothing_is_not_made_before_its_time(
    make_bench: "type[Bench]",
) -> None:
    bench = make_bench(settings=SCANT)
    client = bench.client()
    names = {str(each.destination) for each in bench.broker.registry}
    client.send("ONE", LARGE, properties=LATER)
    assert {str(each.destination) for each in bench.broker.registry} == names
    bench.tick(MINUTE)
    assert bench.depth("ONE") == 1


@pytest.mark.parametrize("properties", [LATER, AGAIN], ids=["once", "again"])
@pytest.mark.parametrize("to", ["A,B,C", "ALL"])
def test_what_becomes_too_large_is_a_dead_letter_when_it_is_due(
    make_bench: "type[Bench]",
    to: str,
    properties: dict[str, Value],
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = make_bench(settings=AMPLE)
    before.client().send(to, LARGE, properties=properties)
    bench = make_bench(before.store, settings=SCANT)
    with caplog.at_level(logging.WARNING):
        bench.tick(2 * MINUTE)
    assert depths(bench) == {DEAD: 1}
    (cause,) = causes(bench)
    assert cause.startswith("3 copies of 4")
    assert [each.getMessage() for each in caplog.records] == [
        f"a scheduled message cannot be delivered, and is given up: {cause}"
    ]
    assert bench.broker.containment.records == {}


def test_what_a_broker_redelivers_is_a_dead_letter_if_it_is_too_large(
    make_bench: "type[Bench]",
) -> None:
    policy = DestinationPolicy(redelivery=RedeliveryPolicy())
    before = make_bench(settings=AMPLE, Q=policy)
    before.client().send("Q", LARGE)
    bench = make_bench(before.store, settings=SCANT, Q=policy)
    client = bench.client()
    consumer = client.consume("Q")
    (delivery,) = client.deliveries(consumer)
    bench.broker.poison(consumer, delivery.message.sequence, 1, "broken", None)
    bench.tick()
    assert depths(bench) == {"A": 1, "B": 1, "C": 1, JOBS: 1}
    bench.tick(MINUTE)
    assert depths(bench) == {"A": 1, "B": 1, "C": 1, DEAD: 1}


@pytest.fixture
def small_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the place of a store whose files hold 2000 bytes of what must share a batch."""
    monkeypatch.setattr("lockkeeper.store.kahadb.appender.ATOMIC_BATCH_BYTES_MAX", 2000)
    return tmp_path


@pytest.mark.parametrize("properties", [LATER, AGAIN], ids=["once", "again"])
def test_what_fits_into_no_file_is_a_dead_letter(
    make_bench: "type[Bench]", small_files: Path, properties: dict[str, Value]
) -> None:
    bench = make_bench(KahaDBStore(small_files), settings=AMPLE)
    bench.client().send("A,B,C", "x" * 900, properties=properties)
    bench.tick(2 * MINUTE)
    assert depths(bench) == {DEAD: 1}
    dead = bench.queue(DEAD)
    assert bench.broker.memory.used == dead.memory_used()
    assert bench.broker.containment.records == {}
    bench.store.close()
    again = make_bench(KahaDBStore(small_files), settings=AMPLE)
    again.tick(4 * MINUTE)
    assert depths(again) == {DEAD: 1}
    (cause,) = causes(again)
    assert cause.endswith("do not fit into a data file")
    again.store.close()
