"""Messages to ActiveMQ.Statistics.* are answered with figures, where the broker is asked to."""

from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.errors import InvalidDestinationError
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message.bodies import MessageType, decode_body
from lockkeeper.message.destination import queue
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded
from lockkeeper.message.segments import SEGMENT_PREFIX

if TYPE_CHECKING:
    from conftest import Bench, Client

ANSWERING = BrokerSettings(statistics_queries=True)
ANSWERS = queue("ANSWERS")
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
        content = decoded(delivery.message)
        body = decode_body(MessageType.MAP, content.content)
        assert isinstance(body, dict)
        bodies.append(body)
        client.acknowledge(consumer, delivery.message)
    client.leave()
    return bodies


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
