"""Sending and receiving: bodies, headers, properties, topics, pull, browse, temporary queues."""

import time

import brokers
import pytest
from client_support import Connect, take

from lockkeeper.client import Connection, IllegalStateError, InvalidSelectorError, JavaObject
from lockkeeper.message.bodies import Body, MessageType
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.primitives import Byte, Char, Float, Long, Short, Value


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("grüße \0 😀", MessageType.TEXT),
        ("", MessageType.TEXT),
        (b"\x00\xff", MessageType.BYTES),
        (JavaObject(b"\xac\xed\x00\x05t\x00\x03tea"), MessageType.OBJECT),
        ({"a": 1, "b": "two", "c": b"3", "d": 4.5, "e": None}, MessageType.MAP),
        ([1, "two", b"three", True], MessageType.STREAM),
        (None, MessageType.MESSAGE),
    ],
    ids=lambda value: value.name if isinstance(value, MessageType) else "",
)
def test_every_body_arrives_as_it_was_sent(
    connection: Connection, queue_name: str, body: Body, kind: MessageType
) -> None:
    session = connection.session()
    session.producer(queue_name).send(body)
    message = session.consumer(queue_name).receive(5)
    assert message is not None
    assert message.body == body
    assert message.message_type is kind
    assert isinstance(message.body, JavaObject) == isinstance(body, JavaObject)


def test_headers_and_properties_arrive(connection: Connection, queue_name: str) -> None:
    session = connection.session()
    before = int(time.time() * 1000)
    properties: dict[str, Value] = {
        "text": "t",
        "short": Short(2),
        "long": Long(3),
        "flag": True,
        "none": None,
    }
    message_id = session.producer(queue_name).send(
        "body",
        properties,
        priority=7,
        time_to_live=60,
        correlation_id="c-1",
        reply_to="topic://ANSWERS",
        type="order",
        group_id="g",
        group_sequence=3,
    )
    message = session.consumer(queue_name).receive(5)
    assert message is not None
    assert message.message_id == message_id
    assert message.properties == properties
    assert (message.priority, message.persistent) == (7, True)
    assert before <= message.timestamp <= time.time() * 1000
    assert message.expiration == message.timestamp + 60_000
    assert (message.correlation_id, message.reply_to) == ("c-1", topic("ANSWERS"))
    assert (message.type, message.group_id, message.group_sequence) == ("order", "g", 3)
    assert message.destination == queue(queue_name)
    assert (message.redelivered, message.delivery_count) == (False, 1)


@pytest.mark.parametrize(
    "value",
    [
        True, False, None, Byte(-128), Byte(127), Short(-32768), Short(32767), 0, -1, 2**31 - 1,
        -(2**31), Long(5), Long(2**63 - 1), Long(-(2**63)), Float(0.5), 1.0e300, -0.0, Char("x"),
        "", "grüße 😀",
    ],
)  # fmt: skip
def test_a_property_arrives_as_the_type_that_it_is(
    connection: Connection, queue_name: str, value: Value
) -> None:
    session = connection.session()
    session.producer(queue_name).send("x", {"it": value})
    message = session.consumer(queue_name).receive(5)
    assert message is not None
    found = message.properties["it"]
    assert (type(found), repr(found)) == (type(value), repr(value))


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("size > 1 AND size <= 3", "23"),
        ("size BETWEEN 2 AND 3", "23"),
        ("colour IN ('blue', 'green')", "13"),
        ("NOT (size = 2)", "0134"),
        ("colour = 'red'", "024"),
        ("colour <> 'red'", "13"),
        ("colour LIKE 'b%'", "13"),
        ("missing IS NULL", "01234"),
        ("colour IS NOT NULL AND size + 1 = 3", "2"),
        ("JMSPriority >= 7", "34"),
        ("JMSType = 'odd'", "13"),
        ("JMSCorrelationID = 'c2'", "2"),
    ],
)
def test_a_selector_chooses(
    connection: Connection, queue_name: str, selector: str, chosen: str
) -> None:
    session = connection.session()
    producer = session.producer(queue_name)
    for number in range(5):
        producer.send(
            str(number),
            {"size": number, "colour": "blue" if number % 2 else "red"},
            priority=4 + number,
            type="odd" if number % 2 else "even",
            correlation_id=f"c{number}",
        )
    consumer = session.consumer(queue_name, selector)
    assert "".join(str(message.body) for message in take(consumer, len(chosen))) == chosen
    assert consumer.receive(0.05) is None


def test_messages_come_in_the_order_they_were_sent(connection: Connection, queue_name: str) -> None:
    session = connection.session()
    assert session.producer(queue_name).send_many([str(n) for n in range(500)], {"k": 1}) == 500
    consumer = session.consumer(queue_name)
    bodies = [message.body for _ in range(500) if (message := consumer.receive(5)) is not None]
    assert bodies == [str(n) for n in range(500)]


def test_a_message_can_wait_for_nobody_or_for_a_while(
    connection: Connection, queue_name: str
) -> None:
    consumer = connection.session().consumer(queue_name)
    assert consumer.receive(0) is None
    began = time.monotonic()
    assert consumer.receive(0.2) is None
    assert 0.15 < time.monotonic() - began < 2


def test_a_producer_without_destination_needs_one_for_each_message(
    connection: Connection, queue_name: str
) -> None:
    session = connection.session()
    producer = session.producer()
    with pytest.raises(IllegalStateError, match="destination"):
        producer.send("where to?")
    producer.send("here", destination=queue(queue_name), persistent=False)
    message = session.consumer(queue_name).receive(5)
    assert message is not None
    assert not message.persistent


@pytest.mark.parametrize("body", [3, {1: "a"}, {"a": object()}, [object()]])
def test_what_openwire_cannot_carry_is_refused_before_it_is_sent(
    connection: Connection, queue_name: str, body: object
) -> None:
    session = connection.session()
    producer = session.producer(queue_name)
    with pytest.raises(ValueError):
        producer.send(body)  # type: ignore[arg-type]
    producer.send("next")
    message = session.consumer(queue_name).receive(5)
    assert message is not None
    assert message.body == "next"


def test_a_priority_is_zero_to_nine(connection: Connection, queue_name: str) -> None:
    with pytest.raises(ValueError, match="0 to 9"):
        connection.session().producer(queue_name).send("x", priority=10)


def test_selectors_choose_and_bad_ones_are_refused(
    broker: brokers.RunningBroker, connection: Connection, queue_name: str
) -> None:
    session = connection.session()
    producer = session.producer(queue_name)
    for number in range(6):
        producer.send(str(number), {"number": number})
    consumer = session.consumer(queue_name, "number > 3")
    assert [message.body for message in take(consumer, 2)] == ["4", "5"]
    assert consumer.receive(0.05) is None
    with pytest.raises(InvalidSelectorError) as caught:
        session.consumer(queue_name, "number >")
    package = "jakarta" if broker.kind == "activemq6" else "javax"
    assert caught.value.java_class == f"{package}.jms.InvalidSelectorException"


def test_a_topic_reaches_every_subscriber(connection: Connection, queue_name: str) -> None:
    name = f"topic://{queue_name}"
    session = connection.session()
    consumers = [session.consumer(name), session.consumer(name)]
    session.producer(name).send("news")
    assert [getattr(consumer.receive(5), "body", None) for consumer in consumers] == ["news"] * 2


def test_a_durable_subscriber_gets_what_came_while_it_was_away(
    broker: brokers.RunningBroker, open_connection: Connect, queue_name: str
) -> None:
    name = f"topic://{queue_name}"
    first = open_connection(broker.url, client_id="reader")
    first.session().consumer(name, subscription_name="mine").close()
    first.close()
    open_connection(broker.url).session().producer(name).send("while away")

    session = open_connection(broker.url, client_id="reader").session()
    with session.consumer(name, subscription_name="mine") as consumer:
        message = consumer.receive(5)
        assert message is not None
        assert message.body == "while away"
    session.unsubscribe("mine")


def test_a_durable_subscription_needs_a_client_id(connection: Connection, queue_name: str) -> None:
    with pytest.raises(IllegalStateError, match="client id"):
        connection.session().consumer(f"topic://{queue_name}", subscription_name="mine")


def test_pulling_gives_one_message_for_each_call(connection: Connection, queue_name: str) -> None:
    session = connection.session()
    producer = session.producer(queue_name)
    first = session.consumer(queue_name, prefetch=0)
    second = session.consumer(queue_name, prefetch=0)
    assert first.receive(0) is None
    assert first.receive(0.2) is None
    producer.send("1")
    producer.send("2")
    assert getattr(first.receive(5), "body", None) == "1"
    assert getattr(second.receive(0), "body", None) == "2"
    assert first.receive(0) is None


def test_browsing_shows_messages_and_leaves_them(connection: Connection, queue_name: str) -> None:
    session = connection.session()
    session.producer(queue_name).send_many(["a", "b", "c"])
    assert [message.body for message in session.browse(queue_name)] == ["a", "b", "c"]
    assert [message.body for message in session.browse(queue_name)] == ["a", "b", "c"]
    assert getattr(session.consumer(queue_name).receive(5), "body", None) == "a"


def test_browsing_with_a_selector_shows_what_it_chooses(
    connection: Connection, queue_name: str
) -> None:
    session = connection.session()
    producer = session.producer(queue_name)
    for number in range(4):
        producer.send(str(number), {"number": number})
    found = session.browse(queue_name, "number = 1 OR number = 3")
    assert [message.body for message in found] == ["1", "3"]


def test_a_request_is_answered_over_a_temporary_queue(
    broker: brokers.RunningBroker, connection: Connection, open_connection: Connect, queue_name: str
) -> None:
    session = connection.session()
    answers = connection.temporary_queue()
    consumer = session.consumer(answers)
    session.producer(queue_name).send("question", reply_to=answers)

    server = open_connection(broker.url).session()
    question = server.consumer(queue_name).receive(5)
    assert question is not None
    assert question.reply_to == answers
    server.producer().send(
        "answer", destination=question.reply_to, correlation_id=question.message_id
    )
    answer = consumer.receive(5)
    assert answer is not None
    assert (answer.body, answer.correlation_id) == ("answer", question.message_id)


def test_an_expired_message_is_not_handed_out(connection: Connection, queue_name: str) -> None:
    session = connection.session()
    consumer = session.consumer(queue_name)
    producer = session.producer(queue_name)
    producer.send("short-lived", time_to_live=0.05)
    producer.send("lasting")
    time.sleep(0.2)
    assert getattr(consumer.receive(5), "body", None) == "lasting"
    consumer.close()
    assert [message.body for message in session.browse(queue_name)] == []


def test_a_large_message_passes(connection: Connection, queue_name: str) -> None:
    session = connection.session()
    body = bytes(range(256)) * 20_000
    session.producer(queue_name).send(body)
    assert getattr(session.consumer(queue_name).receive(10), "body", None) == body
