"""Consumers of several destinations, by a list or a wildcard: what is counted where."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.errors import BrokerError, ResourceAllocationError
from lockkeeper.broker.settings import BrokerSettings, LimitSettings
from lockkeeper.message.destination import parse_destination, queue
from lockkeeper.server.views import destinations_view
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench


def figures(bench: "Bench", key: str) -> dict[str, int]:
    """Return one figure of every queue that a test made."""
    views = destinations_view(bench.broker)
    return {view["name"]: view[key] for view in views if view["kind"] == "Queue"}


def test_a_range_over_several_queues_ends_each_message_where_it_was(
    make_bench: "type[Bench]", tmp_path: Path
) -> None:
    store = KahaDBStore(tmp_path)
    bench = make_bench(store)
    client = bench.client()
    for name in ("W.A", "W.B", "W.A", "W.B"):
        client.send(name, name)
    consumer = client.consume("W.>")
    last = client.deliveries(consumer)[-1].message
    client.acknowledge(consumer, last, count=4)
    assert figures(bench, "dequeued") == {"W.A": 2, "W.B": 2}
    store.close()
    again = KahaDBStore(tmp_path)
    assert figures(make_bench(again), "depth") == {"W.A": 0, "W.B": 0}
    again.close()


def test_each_queue_counts_and_shows_only_its_own_messages_of_those_held(bench: "Bench") -> None:
    client = bench.client()
    for name in ("W.A", "W.B", "W.B"):
        client.send(name, name)
    client.consume("W.>")
    assert figures(bench, "inFlight") == {"W.A": 1, "W.B": 2}
    client.outputs()
    browser = client.consume("W.A", browser=True)
    assert client.texts(browser) == ["W.A"]


@pytest.mark.parametrize("name", ["Q.A,Q.A", "Q.>,Q.A", "Q.A,Q.*", "Q.>,Q.*"])
@pytest.mark.parametrize("is_there_before", [True, False])
def test_a_queue_named_several_times_counts_once(
    bench: "Bench", name: str, is_there_before: bool
) -> None:
    client, other = bench.client(), bench.client()
    if is_there_before:
        client.send("Q.A", "once")
    consumer = client.consume(name)
    if not is_there_before:
        client.send("Q.A", "once")
    assert client.texts(consumer) == ["once"]
    client.leave()
    assert figures(bench, "depth") == {"Q.A": 1}
    again = other.consume("Q.A")
    assert other.texts(again) == ["once"]


@pytest.mark.parametrize("name", ["T.A,T.A", "T.>,T.A", "T.>,T.*"])
def test_a_topic_named_several_times_sends_once(bench: "Bench", name: str) -> None:
    client = bench.client()
    consumer = client.consume(f"topic://{name}".replace(",", ",topic://"))
    client.send("topic://T.A", "once")
    assert client.texts(consumer) == ["once"]


def test_a_consumer_that_is_refused_halfway_holds_nothing(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=BrokerSettings(limits=LimitSettings(destinations=5)))
    client, other = bench.client(), bench.client()
    client.send("A", "for whoever is there")
    fill(bench)
    for name in ("A,NEW", "A.>,A,NEW"):
        with pytest.raises(ResourceAllocationError):
            client.consume(name)
    bench.tick()
    assert figures(bench, "consumers")["A"] == 0
    assert not bench.broker.registry.is_watched(queue("A.B"))
    consumer = other.consume("A")
    assert other.texts(consumer) == ["for whoever is there"]


def fill(bench: "Bench") -> None:
    """Have no room for another destination."""
    for number in range(100):
        try:
            bench.broker.route(queue(f"FULL.{number}"))
        except ResourceAllocationError:
            return


def calls_of(action: Callable[[], Any]) -> int:
    """Return how many functions are called by *action*."""
    found = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal found
        found += event == "call"

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("name", ["queue://Q", "topic://T"])
def test_a_consumer_costs_the_same_however_many_there_are(bench: "Bench", name: str) -> None:
    client = bench.client()
    bench.broker.route(parse_destination("queue://Q"))
    few = calls_of(lambda: client.consume(name))
    consumers = [client.consume(name) for _ in range(500)]
    assert calls_of(lambda: client.consume(name)) <= few + 20
    leave = bench.broker.subscriptions.unsubscribe
    many = calls_of(lambda: leave(consumers[0], -1))
    for consumer in consumers[1:-1]:
        leave(consumer, -1)
    assert many <= calls_of(lambda: leave(consumers[-1], -1)) + 20


def test_a_connection_is_announced_once(bench: "Bench") -> None:
    client = bench.client()
    with pytest.raises(BrokerError, match="announced already"):
        bench.broker.connect(client.connection, "ID:another", "another")
    assert list(bench.broker.connections) == [client.connection.identifier]
    client.leave()
    assert not bench.broker.connections
