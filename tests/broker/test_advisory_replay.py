"""A new listener of a broker with very many destinations: it learns of them in many turns."""

import gc
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.advisories.destination_replay import TOLD_AT_ONCE
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.subscriptions.request import ConsumeRequest
from lockkeeper.message.destination import parse_destination, queue
from lockkeeper.message.ids import ProducerId
from lockkeeper.message.openwire import DestinationInfo, DestinationOperation
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded, properties_of

if TYPE_CHECKING:
    from conftest import Bench, Client

COUNT = 1_000
NAMES = [f"Q{number:04}" for number in range(COUNT)]
TURNS = COUNT // TOLD_AT_ONCE + 2
ADDED, REMOVED = DestinationOperation.ADD, DestinationOperation.REMOVE


def listen(client: "Client") -> "Consumer":
    """Begin to listen, without a turn."""
    source = parse_destination("topic://ActiveMQ.Advisory.Queue")
    request = ConsumeRequest("late", source, 10 * COUNT, tag="late")
    return client.bench.broker.subscriptions.subscribe(client.connection, request, None)


def turn(bench: "Bench") -> None:
    bench.broker.tick(bench.now, bench.steady)


def told(client: "Client") -> list[tuple[str, int]]:
    """Return what happened to which destination, as the client was told."""
    heard = []
    for delivery in client.deliveries():
        content = decoded(delivery.message).data_structure
        assert isinstance(content, DestinationInfo)
        assert content.destination is not None
        heard.append((content.destination.name, content.operation_type))
    return heard


def make(bench: "Bench", *names: str) -> None:
    for name in names:
        bench.broker.context.find_route(queue(name))


def remove(bench: "Bench", name: str) -> None:
    bench.broker.destinations.remove(queue(name), None)


def test_many_queues_are_told_of_in_many_turns(bench: "Bench") -> None:
    make(bench, *NAMES)
    client = bench.client()
    listen(client)
    heard = []
    for _ in range(TURNS):
        now = told(client)
        assert len(now) <= TOLD_AT_ONCE
        heard += now
        turn(bench)
    assert heard == [(name, ADDED) for name in NAMES]


def test_what_happens_meanwhile_is_told_in_order(bench: "Bench") -> None:
    make(bench, *NAMES)
    client = bench.client()
    listen(client)
    known, unknown, back = NAMES[0], NAMES[-1], NAMES[-2]
    for name in (known, unknown, back):
        remove(bench, name)
    make(bench, back, "NEW")
    remove(bench, "NEW")
    for _ in range(TURNS):
        turn(bench)
    heard: dict[str, list[int]] = {}
    for name, operation in told(client):
        heard.setdefault(name, []).append(operation)
    assert heard == {
        **{name: [ADDED] for name in NAMES},
        known: [ADDED, REMOVED],
        unknown: [ADDED, REMOVED],
        back: [ADDED, REMOVED, ADDED],
        "NEW": [ADDED, REMOVED],
    }


def test_a_listener_that_goes_is_told_no_more(bench: "Bench") -> None:
    make(bench, *NAMES)
    client, other = bench.client(), bench.client()
    consumer = listen(client)
    turn(bench)
    listen(other)
    bench.broker.subscriptions.unsubscribe(consumer, 0)
    told(client)
    remove(bench, NAMES[-1])
    for _ in range(TURNS):
        turn(bench)
    assert told(client) == []
    expected = {**dict.fromkeys(NAMES, 1), NAMES[-1]: 2}
    heard = [name for name, _ in told(other)]
    assert {name: heard.count(name) for name in heard} == expected
    assert bench.broker.containment.records == {}


def alive(bench: "Bench") -> int:
    """Return how many consumers and connections are kept, once all that is to be sent was."""
    bench.broker.take_dirty()
    gc.collect()
    return sum(isinstance(each, Consumer | Connection) for each in gc.get_objects())


@pytest.mark.parametrize("is_told_all", [True, False])
def test_nothing_is_kept_of_a_listener_that_is_gone(bench: "Bench", is_told_all: bool) -> None:
    before = alive(bench)
    make(bench, *NAMES)
    client = bench.client()
    listen(client)
    for _ in range(TURNS if is_told_all else 1):
        turn(bench)
    client.leave()
    del client
    for _ in range(TURNS):
        turn(bench)
    assert alive(bench) == before


def test_nothing_is_kept_of_a_listener_when_the_last_queue_it_is_to_hear_of_ends(
    bench: "Bench",
) -> None:
    before = alive(bench)
    make(bench, *NAMES[: TOLD_AT_ONCE + 1])
    client = bench.client()
    listen(client)
    remove(bench, NAMES[TOLD_AT_ONCE])
    client.leave()
    del client
    turn(bench)
    assert alive(bench) == before


def test_nothing_is_kept_of_a_connection_whose_temporary_queues_were_told_of(
    bench: "Bench",
) -> None:
    before = alive(bench)
    owner, listener = bench.client(), bench.client()
    answers = parse_destination(f"temp-queue://{owner.connection.identifier}:1")
    bench.broker.destinations.create_temporary(owner.connection, answers)
    listener.consume("topic://ActiveMQ.Advisory.TempQueue")
    listener.leave()
    owner.leave()
    del owner, listener
    assert alive(bench) == before


def test_producers_are_counted_as_they_come_and_go_one_by_one(bench: "Bench") -> None:
    one, two, listener = bench.client(), bench.client(), bench.client()
    producers = [ProducerId("ID:p-1", 1, number) for number in range(3)]
    for producer in producers[:2]:
        bench.broker.add_producer(one.connection, producer, queue("Q"))
    for name in ("Q", "OTHER"):
        bench.broker.add_producer(two.connection, producers[2], queue(name))
    listener.consume("topic://ActiveMQ.Advisory.Producer.Queue.Q")
    assert producer_counts(listener) == [3, 3, 3]
    one.leave()
    two.leave()
    assert producer_counts(listener) == [2, 1, 0]


def producer_counts(listener: "Client") -> list[Value]:
    """Return how many producers a listener was told of each time."""
    told = [properties_of(decoded(each.message)) for each in listener.deliveries()]
    return [properties["producerCount"] for properties in told]
