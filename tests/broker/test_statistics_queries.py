"""Messages to ActiveMQ.Statistics.* are answered with figures, where the broker is asked to."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.context import END_BYTES, TICK_BYTES_MAX
from lockkeeper.broker.errors import InvalidDestinationError, ResourceAllocationError
from lockkeeper.broker.interceptors.statistics_queries import ANSWER_BYTES
from lockkeeper.broker.outputs import Failure, Reply
from lockkeeper.broker.requests.turns import ASKED_BYTES_MAX
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.message.bodies import MessageType, decode_body
from lockkeeper.message.destination import queue
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded
from lockkeeper.message.segments import SEGMENT_PREFIX

if TYPE_CHECKING:
    from conftest import Bench, Client

    from lockkeeper.message.destination import Destination
    from lockkeeper.message.message import Message

ANSWERING = BrokerSettings(statistics_queries=True)
ANSWERS = queue("ANSWERS")
COUNT = 1_000
TRAFFIC = {
    "size",
    "enqueueCount",
    "dequeueCount",
    "dispatchCount",
    "expiredCount",
    "inflightCount",
    "messagesCached",
    "averageMessageSize",
    "averageEnqueueTime",
    "maxEnqueueTime",
    "minEnqueueTime",
    "memoryPercentUsage",
    "memoryUsage",
    "memoryLimit",
    "consumerCount",
    "producerCount",
    "brokerName",
    "brokerId",
}


@pytest.fixture
def bench(make_bench: "type[Bench]") -> "Bench":
    return make_bench(settings=ANSWERING)


def ask(bench: "Bench", about: str, **fields: Any) -> list[dict[str, Value]]:
    """Return the answers to a question, by the name after `ActiveMQ.Statistics.`."""
    client = bench.client()
    consumer = client.consume(str(ANSWERS))
    scheme, _, name = about.rpartition("://")
    to = f"{scheme or 'queue'}://ActiveMQ.Statistics.{name}"
    client.send(to, "", reply_to=ANSWERS, **fields)
    bodies = []
    for delivery in client.deliveries(consumer):
        bodies.append(figures_of(delivery.message))
        client.acknowledge(consumer, delivery.message)
    client.leave()
    return bodies


def figures_of(message: "Message") -> dict[str, Value]:
    body = decode_body(MessageType.MAP, decoded(message).content)
    assert isinstance(body, dict)
    return body


def busy(bench: "Bench") -> "Client":
    client = bench.client()
    for number in range(3):
        client.send("A.B", f"m{number}", broker_in_time=bench.now)
    consumer = client.consume("A.B", prefetch=2)
    (first, _) = client.deliveries(consumer)
    bench.tick(5)
    client.acknowledge(consumer, first.message)
    return client


def test_the_figures_of_a_destination(bench: "Bench") -> None:
    busy(bench)
    (figures,) = ask(bench, "Destination.A.B")
    assert set(figures) == TRAFFIC | {"destinationName"}
    assert figures["destinationName"] == "queue://A.B"
    assert (figures["brokerName"], figures["brokerId"]) == ("test", "ID:test-1")
    names = ("size", "enqueueCount", "dequeueCount", "dispatchCount", "inflightCount")
    assert [figures[name] for name in names] == [2, 3, 1, 3, 2]
    assert figures["consumerCount"] == 1
    assert figures["minEnqueueTime"] == figures["maxEnqueueTime"] == 7, "5 ms, as classes go"


def test_the_figures_of_many_destinations_end_with_nothing(bench: "Bench") -> None:
    busy(bench)
    bench.client().send("A.C", "m")
    end = "ActiveMQ.Statistics.Destination.List.End.With.Null"
    for about, fields in (
        (f"Destination.A.>{end}", {}),
        ("Destination.A.>", {"properties": {end: True}}),
    ):
        *several, last = ask(bench, about, **fields)
        assert {each["destinationName"] for each in several} == {"queue://A.B", "queue://A.C"}
        assert last == {}


def test_a_topic_is_asked_for_by_a_topic(bench: "Bench") -> None:
    bench.client().consume("topic://A.B")
    (figures,) = ask(bench, "topic://Destination.A.B")
    assert (figures["destinationName"], figures["consumerCount"]) == ("topic://A.B", 1)


def test_when_the_oldest_message_came(bench: "Bench") -> None:
    came = bench.now
    bench.client().send("A.B", "m", broker_in_time=came)
    bench.tick(1_000)
    wish = "ActiveMQ.Statistics.Destination.Include.First.Message.Timestamp"
    (figures,) = ask(bench, "Destination.A.B", properties={wish: True})
    assert figures["firstMessageTimestamp"] == came


def test_the_figures_of_the_broker(bench: "Bench") -> None:
    busy(bench)
    (figures,) = ask(bench, "Broker")
    more = {f"{what}{figure}" for what in ("store", "temp") for figure in ("Usage", "Limit")}
    more |= {"storePercentUsage", "tempPercentUsage", "vm", "dataDirectory"}
    assert set(figures) == TRAFFIC | more | {"openwire", "stomp", "ssl", "stomp+ssl"}
    assert figures["enqueueCount"] == 3
    assert figures["memoryLimit"] == bench.broker.memory.limit


def test_the_figures_of_every_consumer(bench: "Bench") -> None:
    client = busy(bench)
    (figures,) = (each for each in ask(bench, "Subscription") if each["destinationName"] == "A.B")
    assert figures["connectionId"] == client.connection.identifier
    assert (figures["dispatchedCounter"], figures["dequeueCounter"]) == (3, 1)
    assert (figures["dispatchedQueueSize"], figures["prefetchSize"]) == (2, 2)
    assert figures["slowConsumer"] is False


def test_nobody_answers_what_is_no_question(bench: "Bench") -> None:
    client = bench.client()
    client.send("ActiveMQ.Statistics.Broker", "without a JMSReplyTo")
    client.send("ActiveMQ.Statistics.Weather", "", reply_to=ANSWERS)
    assert bench.depth("ActiveMQ.Statistics.Broker") == 1
    assert bench.depth("ActiveMQ.Statistics.Weather") == 1
    assert bench.depth("ANSWERS") == 0


def test_a_broker_that_was_not_asked_to_keeps_questions_as_messages(
    make_bench: "type[Bench]",
) -> None:
    bench = make_bench()
    assert ask(bench, "Broker") == []
    assert bench.depth("ActiveMQ.Statistics.Broker") == 1


@pytest.mark.parametrize(
    "name",
    ["", "A.>", "A,B.>", "a\nb", " a", "q?x=1", "x" * 5_000, f"{SEGMENT_PREFIX}S.0"],
)
def test_nothing_is_answered_where_nobody_may_send(bench: "Bench", name: str) -> None:
    client = bench.client()
    before = [region.destination for region in bench.broker.registry]
    with pytest.raises(InvalidDestinationError):
        client.send("ActiveMQ.Statistics.Broker", "", reply_to=queue(name))
    assert [region.destination for region in bench.broker.registry] == before


def question(client: "Client", about: str, to: "Destination" = ANSWERS, **fields: Any) -> Reply:
    """Ask without a turn; returns what the question is answered with when it is done."""
    bench, reply = client.bench, Reply(client.connection, 77)
    asked = queue(f"ActiveMQ.Statistics.{about}")
    message = bench.message(client, asked, "", reply_to=to, **fields)
    bench.broker.send(client.connection, message, reply)
    return reply


def turns_until(client: "Client", reply: Reply) -> int:
    """Return how many turns it takes until a question is answered."""
    turns = 0
    while reply not in client.connection.outbox:
        assert turns < COUNT
        client.bench.broker.tick(client.bench.now, client.bench.steady)
        turns += 1
    return turns


def test_answers_make_no_more_destinations_than_there_may_be(make_bench: "type[Bench]") -> None:
    limits = replace(ANSWERING.limits, destinations=3)
    bench = make_bench(settings=replace(ANSWERING, limits=limits))
    client = bench.client()
    for number in range(3):
        turns_until(client, question(client, "Broker", queue(f"R{number}")))
    client.outputs()
    question(client, "Broker", queue("R3"))
    bench.tick()
    (failure,) = client.outputs()
    assert isinstance(failure, Failure)
    assert "limits.destinations" in str(failure.error)
    assert [str(region.destination) for region in bench.broker.registry] == [
        f"queue://R{number}" for number in range(3)
    ]


def test_each_part_of_a_composite_gets_the_answer(bench: "Bench") -> None:
    client = bench.client()
    turns_until(client, question(client, "Broker", queue("ONE,topic://TWO,THREE")))
    there = [str(region.destination) for region in bench.broker.registry]
    assert there == ["queue://ONE", "topic://TWO", "queue://THREE"]
    assert (bench.depth("ONE"), bench.depth("THREE")) == (1, 1)


def test_answers_wait_for_room(make_bench: "type[Bench]") -> None:
    usage = SystemUsage(MemoryUsage(50_000))
    bench = make_bench(settings=replace(ANSWERING, system_usage=usage))
    client, reader = bench.client(), bench.client()
    make(bench)
    reply = question(client, "Destination.Q.>")
    for _ in range(COUNT):
        bench.broker.tick(bench.now, bench.steady)
    (blocked,) = bench.broker.flow.blocked()
    assert (blocked.destination, blocked.sends) == (ANSWERS, 1)
    assert bench.broker.memory.used < 55_000
    consumer, count = reader.consume(str(ANSWERS), prefetch=1), 0
    while reply not in client.connection.outbox:
        for delivery in reader.deliveries(consumer):
            reader.acknowledge(consumer, delivery.message)
            count += 1
        bench.tick()
    assert count + bench.depth("ANSWERS") == COUNT


def make(bench: "Bench") -> None:
    for number in range(COUNT):
        bench.broker.context.find_route(queue(f"Q.{number:04}"))


@pytest.mark.parametrize(
    ("about", "weight", "expected"),
    [
        ("Destination.Q.>", ANSWER_BYTES, [f"queue://Q.{number:04}" for number in range(COUNT)]),
        ("Broker", END_BYTES, ["all"]),
    ],
    ids=["each", "all"],
)
def test_many_destinations_are_looked_at_in_many_turns(
    bench: "Bench", about: str, weight: int, expected: list[str]
) -> None:
    client = bench.client()
    make(bench)
    consumer = client.consume(str(ANSWERS), prefetch=COUNT)
    reply = question(client, about)
    assert bench.depth("ANSWERS") == 0
    assert turns_until(client, reply) >= COUNT * weight // TICK_BYTES_MAX
    bench.tick()
    told = [figures_of(each.message) for each in client.deliveries(consumer)]
    assert [each.get("destinationName", "all") for each in told] == expected
    assert client.connection.stalled_bytes == 0


def test_copies_of_answers_are_sent_in_turns(bench: "Bench") -> None:
    client = bench.client()
    make(bench)
    reply = question(client, "Destination.Q.>", queue(",".join(f"A{n}" for n in range(50))))
    most = TICK_BYTES_MAX // (ANSWER_BYTES + 49 * END_BYTES) + 1
    bench.broker.tick(bench.now, bench.steady)
    assert 0 < bench.depth("A0") <= most
    assert turns_until(client, reply) >= COUNT // most - 1
    assert bench.depth("A0") == bench.depth("A49") == COUNT


def test_a_question_ends_with_its_asker(bench: "Bench") -> None:
    client = bench.client()
    make(bench)
    question(client, "Destination.Q.>")
    bench.broker.tick(bench.now, bench.steady)
    told = bench.depth("ANSWERS")
    client.leave()
    bench.tick()
    assert 0 < bench.depth("ANSWERS") == told < COUNT


def test_what_a_connection_asks_at_once_is_limited(bench: "Bench") -> None:
    client, asked = bench.client(), 0
    with pytest.raises(ResourceAllocationError, match=r"requests .* that are not done"):
        while asked < 10_000:
            question(client, "Broker", properties={"note": "x" * 60_000})
            asked += 1
    assert asked == 1 + ASKED_BYTES_MAX // 61_500
    question(bench.client(), "Broker")


def test_destinations_and_consumers_that_go_meanwhile_are_told_of_no_more(bench: "Bench") -> None:
    client = bench.client()
    make(bench)
    reply = question(client, "Destination.Q.>")
    bench.broker.tick(bench.now, bench.steady)
    for number in (0, COUNT - 1):
        bench.broker.destinations.remove(queue(f"Q.{number:04}"), None)
    turns_until(client, reply)
    assert bench.depth("ANSWERS") == COUNT - 1
