"""Destinations that nobody uses any more are removed where the policy says so."""

from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.policies.inactivity import InactivityPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message.destination import parse_destination, queue
from lockkeeper.store.kahadb.store import KahaDBStore

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Bench, Client

PERIOD, TIMEOUT = 1_000, 3_000
POLICY = DestinationPolicy(inactivity=InactivityPolicy(True, TIMEOUT))
POLICIES: dict[str, Any] = {"GC_>": POLICY}


@pytest.fixture
def swept(make_bench: "type[Bench]") -> "Bench":
    """Return a broker that removes unused destinations below GC."""
    settings = BrokerSettings(schedule_period_for_destination_purge=PERIOD)
    return make_bench(settings=settings, **POLICIES)


def exists(bench: "Bench", name: str) -> bool:
    return bench.broker.registry.find(parse_destination(name)) is not None


def later(bench: "Bench", time: int) -> None:
    """Let *time* ms pass, a sweep at a time."""
    for _ in range(time // PERIOD):
        bench.tick(PERIOD)


def drain(client: "Client", name: str) -> None:
    """Send a message to a queue, consume it and leave."""
    client.send(name, "a")
    consumer = client.consume(name)
    (delivery,) = client.deliveries(consumer)
    client.acknowledge(consumer, delivery.message)
    client.bench.broker.subscriptions.unsubscribe(consumer, 0)


@pytest.mark.parametrize("name", ["GC.Q", "topic://GC.T"])
def test_an_unused_destination_is_removed_after_its_timeout(swept: "Bench", name: str) -> None:
    swept.broker.route(parse_destination(name))
    later(swept, TIMEOUT)
    assert exists(swept, name)
    later(swept, PERIOD)
    assert not exists(swept, name)


def test_its_messages_queue_may_be_made_again(swept: "Bench") -> None:
    client = swept.client()
    drain(client, "GC.Q")
    later(swept, TIMEOUT + PERIOD)
    assert not exists(swept, "GC.Q")
    client.send("GC.Q", "again")
    assert client.texts(client.consume("GC.Q")) == ["again"]


def test_traffic_between_two_sweeps_counts_as_use(swept: "Bench") -> None:
    client = swept.client()
    for _ in range(TIMEOUT // PERIOD + 2):
        drain(client, "GC.Q")
        later(swept, PERIOD)
    assert exists(swept, "GC.Q")


def test_whatever_is_used_stays(swept: "Bench") -> None:
    client, durable = swept.client(), swept.client("app")
    client.send("GC.MESSAGE", "a")
    client.consume("GC.CONSUMER")
    client.consume("topic://GC.LISTENER")
    durable.consume("topic://GC.DURABLE", subscription_name="sub")
    durable.leave()
    swept.broker.add_producer(client.connection, 1, parse_destination("GC.PRODUCER,GC.LISTED"))
    transaction = client.begin()
    client.send("GC.TRANSACTION", "a", transaction_id=transaction)
    swept.broker.declare(queue("GC.DECLARED"))
    swept.broker.route(queue("OTHER"))
    later(swept, 3 * TIMEOUT)
    for name in (
        "GC.MESSAGE", "GC.CONSUMER", "topic://GC.LISTENER", "topic://GC.DURABLE",
        "GC.PRODUCER", "GC.LISTED", "GC.TRANSACTION", "GC.DECLARED", "OTHER",
    ):  # fmt: skip
        assert exists(swept, name), name
    client.leave()
    later(swept, TIMEOUT + PERIOD)
    gone = ("GC.CONSUMER", "topic://GC.LISTENER", "GC.PRODUCER", "GC.LISTED", "GC.TRANSACTION")
    assert not any(exists(swept, name) for name in gone)


def test_a_sweep_removes_no_more_than_it_may(make_bench: "type[Bench]") -> None:
    settings = BrokerSettings(
        schedule_period_for_destination_purge=PERIOD, max_purged_destinations_per_sweep=2
    )
    bench = make_bench(settings=settings, **POLICIES)
    names = [f"GC.{number}" for number in range(5)]
    for name in names:
        bench.broker.route(queue(name))
    later(bench, TIMEOUT)
    left = []
    for _ in range(3):
        later(bench, PERIOD)
        left.append(sum(exists(bench, name) for name in names))
    assert left == [3, 1, 0]


def test_without_a_period_nothing_is_removed(make_bench: "type[Bench]") -> None:
    bench = make_bench(**POLICIES)
    bench.broker.route(queue("GC.Q"))
    later(bench, 10 * TIMEOUT)
    assert exists(bench, "GC.Q")


def test_a_queue_stays_while_a_commit_to_it_is_being_written(
    make_bench: "type[Bench]", tmp_path: "Path"
) -> None:
    settings = BrokerSettings(schedule_period_for_destination_purge=PERIOD)
    policies: dict[str, Any] = {"GC_>": POLICY}
    bench = make_bench(KahaDBStore(tmp_path), settings=settings, **policies)
    client = bench.client()
    drain(client, "GC.Q")
    later(bench, TIMEOUT)
    transaction = client.begin()
    client.send("GC.Q", "committed", transaction_id=transaction, wait=False)
    answer = Reply(client.connection, 77)
    bench.broker.transactions.commit(client.connection, transaction, answer)
    # The time comes while nothing is answered yet.
    bench.now += PERIOD
    bench.steady += PERIOD
    bench.broker.tick(bench.now, bench.steady)
    bench.tick()
    assert answer in client.outputs()
    assert bench.depth("GC.Q") == 1
    bench.store.close()
    again = make_bench(KahaDBStore(tmp_path), settings=settings, **policies)
    assert again.depth("GC.Q") == 1
    again.store.close()
