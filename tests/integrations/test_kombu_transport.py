"""The transport, by kombu's own classes, over Lockkeeper and over ActiveMQ."""

import json
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import brokers
import certificates
import kombu
import pytest
from kombu.exceptions import ChannelError, OperationalError
from ports import free_port
from workers import kombu_url

import lockkeeper.integrations.kombu  # noqa: F401
from lockkeeper.client import SecurityError, connect
from lockkeeper.integrations.kombu.transient import BUFFER_MESSAGES, TransientQueue
from lockkeeper.message.destination import queue
from lockkeeper_api.passwords import hashed

Open = Callable[[], kombu.Connection]


@pytest.fixture
def open_connection(broker: brokers.RunningBroker) -> Iterator[Open]:
    opened: list[kombu.Connection] = []

    def open_one() -> kombu.Connection:
        opened.append(kombu.Connection(kombu_url(broker)))
        return opened[-1]

    yield open_one
    for each in opened:
        each.release()


@pytest.fixture
def name() -> str:
    return f"TEST.{uuid.uuid4()}"


def drained(connection: kombu.Connection, count: int, seconds: float = 20) -> None:
    for _ in range(count):
        connection.drain_events(timeout=seconds)


def nothing_comes(connection: kombu.Connection, seconds: float = 0.5) -> None:
    with pytest.raises(socket.timeout):
        connection.drain_events(timeout=seconds)


def consumed(
    connection: kombu.Connection, found: kombu.Queue, prefetch: int = 0, **options: Any
) -> tuple[kombu.Consumer, list[kombu.Message]]:
    """Return a consumer, and the list that its messages come to."""
    messages: list[kombu.Message] = []
    channel = connection.channel()
    consumer = kombu.Consumer(channel, [found], on_message=messages.append, **options)
    if prefetch:
        consumer.qos(prefetch_count=prefetch)
    consumer.consume()
    return consumer, messages


def publish(connection: kombu.Connection, body: Any, **options: Any) -> None:
    kombu.Producer(connection).publish(body, **options)


@pytest.mark.parametrize("kind", ["direct", "topic", "fanout"])
def test_bindings_are_known_to_everybody(open_connection: Open, name: str, kind: str) -> None:
    """Who publishes has declared nothing but the exchange, before and after the binding."""
    exchange = kombu.Exchange(f"{name}.X", kind)
    producer = open_connection()
    publish(producer, "lost", exchange=exchange, routing_key="a.b", declare=[exchange])
    consumer = open_connection()
    bound = kombu.Queue(name, exchange, "a.b" if kind == "direct" else "a.*")
    bound(consumer.default_channel).declare()
    deadline = time.monotonic() + 10
    count = 0
    while not count and time.monotonic() < deadline:
        publish(producer, "found", exchange=exchange, routing_key="a.b")
        count = bound(consumer.default_channel).queue_declare(passive=True).message_count
    assert count == 1
    publish(producer, "other", exchange=exchange, routing_key="b.b")
    _, messages = consumed(consumer, bound)
    drained(consumer, 1)
    assert messages[0].payload == "found"
    assert messages[0].delivery_info["routing_key"] == "a.b"
    if kind == "fanout":
        drained(consumer, 1)
    nothing_comes(consumer)
    assert (name, exchange.name, bound.routing_key) in consumer.default_channel.list_bindings()
    bound(consumer.default_channel).unbind_from(exchange, bound.routing_key)
    assert not [each for each in consumer.default_channel.list_bindings() if each[0] == name]


def test_a_deleted_queue_is_bound_no_more(open_connection: Open, name: str) -> None:
    connection = open_connection()
    bound = kombu.Queue(name, kombu.Exchange(f"{name}.X"), "key")(connection.default_channel)
    bound.declare()
    publish(connection, "gone", exchange=bound.exchange, routing_key="key")
    assert bound.delete() == 1
    publish(connection, "lost", exchange=bound.exchange, routing_key="key")
    assert bound.queue_declare(passive=True).message_count == 0


def test_transient_queues_get_copies_while_they_live(open_connection: Open, name: str) -> None:
    exchange = kombu.Exchange(f"{name}.X", "topic", durable=False)
    publisher, listener = open_connection(), open_connection()
    bound = kombu.Queue(name, exchange, "a.#", exclusive=True, durable=False)
    bound(listener.default_channel).declare()
    bound(listener.default_channel).bind_to(exchange, "*.b")
    publish(publisher, "early", exchange=exchange, routing_key="a.b", declare=[exchange])
    publish(publisher, "elsewhere", exchange=exchange, routing_key="c")
    _, messages = consumed(listener, bound)
    drained(listener, 1)
    publish(publisher, "by name", routing_key=name)
    drained(listener, 1)
    nothing_comes(listener)
    assert [each.payload for each in messages] == ["early", "by name"]
    messages[0].requeue()
    drained(listener, 1)
    assert messages[2].payload == "early"
    for each in messages:
        if not each.acknowledged:
            each.ack()
    listener.release()
    other = open_connection()
    assert not [each for each in other.default_channel.list_bindings() if each[0] == name]


def test_the_prefetch_count_is_kept_exactly(open_connection: Open, name: str) -> None:
    first, second = open_connection(), open_connection()
    for number in range(6):
        publish(first, number, routing_key=name)
    consumer, messages = consumed(first, kombu.Queue(name), prefetch=2)
    drained(first, 2)
    nothing_comes(first)
    _, others = consumed(second, kombu.Queue(name), prefetch=1)
    drained(second, 1)
    assert [each.payload for each in messages + others] == [0, 1, 2]
    messages[0].ack()
    drained(first, 1)
    nothing_comes(first)
    consumer.qos(prefetch_count=4)
    drained(first, 2)
    assert [each.payload for each in messages] == [0, 1, 3, 4, 5]


def test_a_requeued_message_is_anybodys(open_connection: Open, name: str) -> None:
    first, second = open_connection(), open_connection()
    publish(first, "again", routing_key=name, priority=3, headers={"a": [1]})
    _, messages = consumed(first, kombu.Queue(name), prefetch=1)
    drained(first, 1)
    assert messages[0].delivery_info["redelivered"] is False
    first_consumer, _ = consumed(second, kombu.Queue(name), prefetch=1)
    messages[0].channel.basic_cancel(messages[0].delivery_info["consumer_tag"])
    messages[0].requeue()
    found: list[kombu.Message] = []
    first_consumer.on_message = found.append
    first_consumer.cancel()
    first_consumer.consume()
    drained(second, 1)
    assert found[0].payload == "again"
    assert found[0].delivery_info["redelivered"] is True
    assert found[0].properties["priority"] == 3
    assert found[0].headers == {"a": [1]}


def test_what_is_in_hand_when_a_consumer_is_cancelled(open_connection: Open, name: str) -> None:
    """It may still be acknowledged; what had not been handed over goes to others."""
    first, second = open_connection(), open_connection()
    for number in range(3):
        publish(first, number, routing_key=name)
    consumer, messages = consumed(first, kombu.Queue(name))
    drained(first, 1)
    time.sleep(0.5)  # The others have arrived, too.
    consumer.cancel()
    _, others = consumed(second, kombu.Queue(name))
    drained(second, 2)
    messages[0].ack()
    nothing_comes(second, 3)
    assert sorted(each.payload for each in others) == [1, 2]
    first.release()
    nothing_comes(second)


def test_acknowledging_all_up_to_one(open_connection: Open, name: str) -> None:
    connection = open_connection()
    for number in range(4):
        publish(connection, number, routing_key=name)
    _, messages = consumed(connection, kombu.Queue(name))
    drained(connection, 4)
    messages[2].ack(multiple=True)
    messages[0].channel.close()
    other = kombu.Queue(name)(connection.channel())
    left = other.get()
    assert left is not None
    assert left.payload == 3
    assert left.delivery_info["redelivered"] is True
    assert other.get() is None


def test_a_rejected_message_is_a_dead_letter(
    open_connection: Open, broker: brokers.RunningBroker, name: str
) -> None:
    connection = open_connection()
    publish(connection, "poison", routing_key=name)
    message = kombu.Queue(name)(connection.default_channel).get()
    message.reject()
    with connect(broker.url) as ours:
        letters = ours.session().consumer("ActiveMQ.DLQ")
        while (letter := letters.receive(5)) is not None:
            if letter.fields.original_destination == queue(name):
                break
    assert letter is not None
    assert letter.body == "poison"


ENVELOPE = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "headers": {},
    "properties": {},
    "exchange": "",
    "routing_key": "",
}
UNREADABLE = [
    "no JSON",
    "[]",
    "[" * 20_000,
    json.dumps({**ENVELOPE, "headers": 5}),
    json.dumps({**ENVELOPE, "properties": [5]}),
    json.dumps({"any": {"__type__": "decimal", "__value__": "x"}}),
]


def test_messages_that_nobody_can_read_hold_nothing_up(
    open_connection: Open, broker: brokers.RunningBroker, name: str
) -> None:
    """They are dead letters, and none of them ends a worker, a `get` or a subscription."""
    connection = open_connection()
    exchange = kombu.Exchange(f"{name}.X", "fanout")
    own = kombu.Queue(f"{name}.own", exchange, exclusive=True)
    _, copies = consumed(connection, own)
    with connect(broker.url) as ours:
        session = ours.session()
        for text in UNREADABLE:
            for place in (name, f"{name}.got", f"topic://kombu.exchange.{name}.X"):
                session.producer(place).send("poison", {"kombu": text})
        for place in (name, f"{name}.got"):
            session.producer(place).send("good")
    got = kombu.Queue(f"{name}.got")(connection.channel()).get()
    assert got is not None
    assert got.body == "good"
    _, messages = consumed(connection, kombu.Queue(name))
    drained(connection, 1)
    assert [each.body for each in messages] == ["good"]
    publish(open_connection(), "good", exchange=exchange, declare=[exchange])
    drained(connection, 1)
    assert [each.payload for each in copies] == ["good"]


def test_a_cancelled_consumer_buries_what_nobody_can_read(
    open_connection: Open, broker: brokers.RunningBroker, name: str
) -> None:
    connection = open_connection()
    with connect(broker.url) as ours:
        producer = ours.session().producer(name)
        producer.send("good")
        producer.send("poison", {"kombu": "no JSON"})
        consumer, messages = consumed(connection, kombu.Queue(name))
        drained(connection, 1)
        time.sleep(0.5)
        consumer.cancel()
        messages[0].ack()
        connection.release()
        assert not list(ours.session().browse(name))


def test_deleting_a_queue_that_was_read_by_get(open_connection: Open, name: str) -> None:
    """Who gets messages one by one is no consumer; one that is there keeps the queue."""
    connection = open_connection()
    for number in range(3):
        publish(connection, number, routing_key=name)
    bound = kombu.Queue(name)(connection.default_channel)
    kept = bound.get()
    assert kept.payload == 0
    bound.delete()
    kept.ack()
    assert bound.get() is None
    publish(connection, 3, routing_key=name)
    consumed(open_connection(), kombu.Queue(name), prefetch=1)
    assert bound.delete() == 0


def test_transient_queues_that_nobody_drains_keep_a_bounded_number(name: str) -> None:
    """Neither messages nor what tells of them is kept without end."""
    told: list[Any] = []
    owner = SimpleNamespace(put=told.append)
    transient = TransientQueue(cast("Any", owner), name, is_prioritised=False)
    transient.consume(cast("Any", None), "tag")
    for number in range(BUFFER_MESSAGES + 100):
        transient.put_message(cast("Any", SimpleNamespace(expiration=0, number=number)))
    assert len(told) == len(transient) == BUFFER_MESSAGES
    first = transient.take_first()
    assert first is not None
    assert cast("Any", first).number == 100


def test_other_clients_understand_and_are_understood(
    open_connection: Open, broker: brokers.RunningBroker, name: str
) -> None:
    connection = open_connection()
    publish(
        connection, {"a": 1}, routing_key=name, priority=7, correlation_id="c", expiration=60,
        headers={"task": "shop.pay"},
    )  # fmt: skip
    with connect(broker.url) as ours:
        session = ours.session()
        received = session.consumer(name).receive(5)
        assert received is not None
        assert received.body == '{"a": 1}'
        assert (received.type, received.correlation_id, received.priority) == ("shop.pay", "c", 7)
        assert 0 < received.expiration - received.timestamp <= 60_000
        assert received.properties["content_type"] == "application/json"
        session.producer(name).send('{"b": 2}', {"content_type": "application/json", "n": 1})
        session.producer(name).send("plain")
        session.producer(name).send({"key": 5})
        session.producer(name).send("text", {"kombu": "{"})
    _, messages = consumed(connection, kombu.Queue(name), accept=["json", "text/plain"])
    drained(connection, 3)
    assert [each.payload for each in messages[:2]] == [{"b": 2}, "plain"]
    assert messages[0].headers["n"] == 1
    assert messages[2].body == '{"key": 5}'
    # Nobody can read the last one: it is a dead letter, and the consumer goes on.
    publish(connection, "after", routing_key=name)
    drained(connection, 1)
    assert messages[3].payload == "after"


def test_texts_go_as_they_are(
    open_connection: Open, broker: brokers.RunningBroker, name: str
) -> None:
    publish(open_connection(), "ä plain text", routing_key=name, serializer="lockkeeper-text")
    with connect(broker.url) as ours:
        received = ours.session().consumer(name).receive(5)
    assert received is not None
    assert received.body == "ä plain text"


def test_purging(open_connection: Open, name: str) -> None:
    connection = open_connection()
    for number in range(5):
        publish(connection, number, routing_key=name)
    bound = kombu.Queue(name)(connection.default_channel)
    assert bound.purge() == 5
    assert bound.get() is None


def test_what_cannot_be_is_an_error_of_the_channel(open_connection: Open, name: str) -> None:
    channel = open_connection().channel()
    with pytest.raises(ChannelError, match="NOT_IMPLEMENTED"):
        channel.exchange_declare(name, "headers")
    channel.exchange_declare(name, "topic")
    with pytest.raises(ChannelError, match="PRECONDITION_FAILED"):
        channel.exchange_declare(name, "direct")
    with pytest.raises(ChannelError, match="NOT_FOUND"):
        channel.exchange_declare(f"{name}.unknown", passive=True)
    for wrong in ("A.*", "A,B", "A?x=1", "A.>"):
        with pytest.raises(ChannelError, match="SYNTAX_ERROR"):
            channel.queue_declare(wrong)
        with pytest.raises(ChannelError, match="SYNTAX_ERROR"):
            channel.exchange_declare(wrong)
        with pytest.raises(ChannelError, match="SYNTAX_ERROR"):
            channel.queue_bind(name, wrong, "key")
        with pytest.raises(ChannelError, match="SYNTAX_ERROR"):
            publish(channel.connection.client, "lost", exchange=wrong, routing_key="key")


def test_nobody_listens() -> None:
    connection = kombu.Connection("lockkeeper+openwire://127.0.0.1:1")
    with pytest.raises(OperationalError):
        connection.ensure_connection(max_retries=1, interval_start=0)


def test_a_lost_broker_is_a_recoverable_error(mortal_broker: brokers.RunningBroker) -> None:
    connection = kombu.Connection(kombu_url(mortal_broker))
    consumer, _ = consumed(connection, kombu.Queue("LOST"))
    mortal_broker.kill()
    with pytest.raises(connection.recoverable_connection_errors):
        connection.drain_events(timeout=20)
    with pytest.raises(connection.recoverable_connection_errors, match="no broker could be reach"):
        kombu.Producer(consumer.channel).publish("lost", routing_key="LOST")
    assert not connection.connected
    mortal_broker.start()
    producer = connection.Producer()
    producer.publish("found", routing_key="LOST", retry=True)
    assert kombu.Queue("LOST")(connection.default_channel).get().payload == "found"
    connection.release()


def test_after_a_failover_nothing_in_hand_comes_twice(
    mortal_broker: brokers.RunningBroker,
) -> None:
    url = f"lockkeeper+failover:(tcp://127.0.0.1:{mortal_broker.port})?initialReconnectDelay=50"
    with kombu.Connection(url) as connection:
        for number in range(4):
            publish(connection, number, routing_key="KEPT")
        _, messages = consumed(connection, kombu.Queue("KEPT"), prefetch=3)
        drained(connection, 3)
        mortal_broker.kill()
        messages[0].ack()  # In vain: nobody hears it.
        mortal_broker.start()
        drained(connection, 1)  # There is room for one, and the first one is not it.
        assert [each.payload for each in messages] == [0, 1, 2, 3]
        for each in messages[1:]:
            each.ack()
        nothing_comes(connection, 3)
    with kombu.Connection(url) as connection:
        assert kombu.Queue("KEPT")(connection.default_channel).get() is None


def test_a_forked_process_leaves_the_connection_alone(open_connection: Open, name: str) -> None:
    connection = open_connection()
    _, messages = consumed(connection, kombu.Queue(name))
    publish(connection, 1, routing_key=name)
    child = os.fork()
    if not child:
        ok = False
        try:
            connection.collect()
            publish(connection, 2, routing_key=name)
            connection.release()
            ok = True
        finally:
            os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    drained(connection, 2)
    assert sorted(each.payload for each in messages) == [1, 2]


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """The port of a Lockkeeper that speaks TLS and knows anna, and its authority's certificate."""
    if reason := certificates.missing():
        pytest.skip(reason)
    authority = certificates.Authority(tmp_path)
    tls = tmp_path / "secrets" / "tls" / "openwire"
    tls.mkdir(parents=True)
    for made, kept in zip(authority.issue("broker"), ("tls.crt", "tls.key"), strict=True):
        made.rename(tls / kept)
    users = f"anna:{hashed('t/e:a', b'of the tests only')}\n"
    (tmp_path / "secrets" / "users").write_text(users)
    port = free_port()
    command = brokers.lockkeeper_command(tmp_path, port, configuration="security")
    command += ["--secrets", str(tmp_path / "secrets")]
    running = brokers.RunningBroker("lockkeeper", port, tmp_path, command)
    yield port, authority.certificate
    running.stop()


def test_tls_and_passwords(secured: tuple[int, Path]) -> None:
    port, authority = secured
    urls = [
        f"lockkeeper+openwire+ssl://anna:t%2Fe%3Aa@127.0.0.1:{port}?ssl.caFile={authority}",
        f"lockkeeper+failover:(ssl://127.0.0.1:{port}?ssl.caFile={authority})"
        "?jms.userName=anna&jms.password=t/e:a",
    ]
    connections = [kombu.Connection(url) for url in urls]
    connections.append(
        kombu.Connection(
            f"lockkeeper+openwire://127.0.0.1:{port}",
            userid="anna",
            password="t/e:a",
            ssl={"ca_certs": str(authority)},
        )
    )
    for connection in connections:
        with connection:
            publish(connection, "secret", routing_key="INTEROP.a.letters")
            found = kombu.Queue("INTEROP.a.letters")(connection.default_channel).get(no_ack=True)
            assert found.payload == "secret"
    wrong = kombu.Connection(urls[0].replace("t%2F", "x"))
    with pytest.raises(SecurityError):
        wrong.ensure_connection(max_retries=3)
