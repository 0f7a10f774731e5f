"""Names that no destination may have, and how many of a thing there may be."""

from functools import partial
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.errors import (
    InvalidDestinationError,
    ResourceAllocationError,
    TransactionError,
)
from lockkeeper.broker.settings import BrokerSettings, LimitSettings
from lockkeeper.message.destination import Destination, Kind, queue

if TYPE_CHECKING:
    from conftest import Bench

LIMITS = LimitSettings(
    destinations=5, consumers=2, producers=2, temporary_destinations=1, transactions=2
)


@pytest.fixture
def limited(make_bench: "type[Bench]") -> "Bench":
    """Return a broker that allows little."""
    return make_bench(settings=BrokerSettings(limits=LIMITS))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("x" * 4097, "1 to 4096 characters, not 4097"),
        ("A.*", "a wildcard names no single destination"),
        ("A?consumer.prefetchSize=1", "options are for the client"),
        (" A", "white space around the name"),
        ("A\nB", r"holds the character '\\n'"),
        ("A\ud800", r"holds the character '\\ud800'"),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_its_reason(
    bench: "Bench", name: str, reason: str
) -> None:
    with pytest.raises(InvalidDestinationError, match=reason):
        bench.broker.route(queue(name))


@pytest.mark.parametrize("name", ["with a space", "Grüße.日本", "a/b:c;d=e", "a*b", "two..dots"])
def test_most_characters_are_allowed(bench: "Bench", name: str) -> None:
    client = bench.client()
    client.send(name, "a")
    assert client.texts(client.consume(name)) == ["a"]


def test_the_number_of_destinations_is_limited(limited: "Bench") -> None:
    client = limited.client()
    for number in range(LIMITS.destinations):
        client.send(f"Q{number}", "a")
    with pytest.raises(ResourceAllocationError, match=r"5 destinations already \(limits\."):
        client.send("ONE.MORE", "a")
    with pytest.raises(ResourceAllocationError, match=r"limits\.destinations"):
        client.consume("Consumer.A.VirtualTopic.>")
    client.send("Q0", "those that exist go on")
    assert limited.depth("Q0") == 2


def test_dead_letters_find_room_beyond_the_limit(limited: "Bench") -> None:
    client = limited.client()
    for number in range(LIMITS.destinations):
        client.send(f"Q{number}", "a")
    consumer = client.consume("Q0")
    (delivery,) = client.deliveries(consumer)
    limited.broker.poison(consumer, delivery.message.sequence, 1, "bad", None)
    limited.tick()
    assert limited.depth("ActiveMQ.DLQ") == 1


def test_what_a_connection_may_have_is_limited(limited: "Bench") -> None:
    client, broker = limited.client(), limited.broker
    for number in range(2):
        client.consume("Q")
        broker.add_producer(client.connection, number, queue("Q"))
        client.begin(number)
    with pytest.raises(ResourceAllocationError, match=r"limits\.consumers"):
        client.consume("Q")
    with pytest.raises(ResourceAllocationError, match=r"limits\.producers"):
        broker.add_producer(client.connection, 2, queue("Q"))
    with pytest.raises(TransactionError, match=r"limits\.transactions"):
        client.begin(2)
    broker.add_producer(client.connection, 1, queue("Q"))
    client.begin(1)
    limited.client().consume("Q")


def test_temporary_destinations_of_a_connection_are_limited(limited: "Bench") -> None:
    client, broker = limited.client(), limited.broker
    first, second = (Destination(Kind.TEMP_QUEUE, f"ID:1:{number}") for number in range(2))
    broker.destinations.create_temporary(client.connection, first)
    with pytest.raises(ResourceAllocationError, match=r"limits\.temporaryDestinations"):
        broker.destinations.create_temporary(client.connection, second)
    broker.destinations.remove_temporary(client.connection, first)
    broker.destinations.create_temporary(client.connection, second)


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_consumer_that_is_refused_at_its_second_destination_takes_nothing_of_the_first(
    limited: "Bench", kind: str
) -> None:
    client, sender = limited.client(), limited.client()
    for number in range(LIMITS.destinations):
        sender.send(f"{kind}://D.{number}", "made")
    with pytest.raises(ResourceAllocationError):
        client.consume(f"{kind}://D.0,{kind}://NEW")
    sender.send(f"{kind}://D.0", "sent")
    assert client.deliveries() == []
    limited.broker.disconnect(client.connection)
    receiver = limited.client()
    receiver.consume(f"{kind}://D.0")
    got = [each.message for each in receiver.deliveries()]
    assert len(got) == (2 if kind == "queue" else 0)
    if kind == "topic":
        assert limited.broker.memory.used == 0


def test_a_temporary_queue_that_is_refused_can_be_made_later(limited: "Bench") -> None:
    client = limited.client()
    for number in range(LIMITS.destinations):
        client.send(f"Q{number}", "a")
    temporary = Destination(Kind.TEMP_QUEUE, "ID:client-1:1")
    make = partial(limited.broker.destinations.create_temporary, client.connection)
    with pytest.raises(ResourceAllocationError, match=r"limits\.destinations"):
        make(temporary)
    with pytest.raises(InvalidDestinationError, match="deleted Destination"):
        limited.broker.route(temporary)
    limited.broker.destinations.remove(queue("Q0"), None)
    make(temporary)
    assert limited.broker.route(temporary).destination == temporary
