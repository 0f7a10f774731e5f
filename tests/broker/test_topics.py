"""Topics: everybody's copy, durable subscriptions, temporary destinations."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.errors import BrokerError, InvalidClientIdError, InvalidDestinationError
from lockkeeper.broker.outputs import Disconnect
from lockkeeper.message.destination import Destination, Kind
from lockkeeper.message.openwire import AckType

if TYPE_CHECKING:
    from conftest import Bench

TOPIC = "topic://T"


def test_every_subscriber_gets_every_message(bench: "Bench") -> None:
    clients = [bench.client() for _ in range(3)]
    for client in clients:
        client.consume(TOPIC)
    clients[0].send(TOPIC, "news")
    assert [client.texts() for client in clients] == [["news"]] * 3


def test_without_subscribers_nothing_is_kept(bench: "Bench") -> None:
    client = bench.client()
    client.send(TOPIC, "lost")
    assert client.texts(client.consume(TOPIC)) == []
    assert bench.broker.memory.used == 0


def test_a_slow_subscriber_waits_alone(bench: "Bench") -> None:
    slow, quick = bench.client(), bench.client()
    held_back = slow.consume(TOPIC, prefetch=1)
    quick.consume(TOPIC)
    for number in range(3):
        quick.send(TOPIC, f"m{number}")
    assert quick.texts() == ["m0", "m1", "m2"]
    for expected in ("m0", "m1", "m2"):
        (delivery,) = slow.deliveries()
        assert expected.encode() in delivery.message.body
        slow.acknowledge(held_back, delivery.message)


def test_a_durable_subscription_collects_while_its_client_is_away(bench: "Bench") -> None:
    client = bench.client("app")
    client.consume(TOPIC, subscription_name="sub")
    client.leave()
    bench.client().send(TOPIC, "meanwhile")
    back = bench.client("app")
    consumer = back.consume(TOPIC, subscription_name="sub")
    (delivery,) = back.deliveries(consumer)
    back.acknowledge(consumer, delivery.message)
    back.leave()
    again = bench.client("app")
    assert again.texts(again.consume(TOPIC, subscription_name="sub")) == []


def test_a_durable_subscription_survives_the_broker(bench: "Bench") -> None:
    client = bench.client("app")
    consumer = client.consume(TOPIC, subscription_name="sub", selector="n > 0")
    client.leave()
    sender = bench.client()
    for number in range(3):
        sender.send(TOPIC, f"m{number}", properties={"n": number})
    after = bench.restart()
    back = after.client("app")
    consumer = back.consume(TOPIC, subscription_name="sub", selector="n > 0")
    assert back.texts(consumer) == ["m1", "m2"]


def test_another_selector_begins_the_subscription_anew(bench: "Bench") -> None:
    client = bench.client("app")
    client.consume(TOPIC, subscription_name="sub")
    client.leave()
    bench.client().send(TOPIC, "old")
    back = bench.client("app")
    assert back.texts(back.consume(TOPIC, subscription_name="sub", selector="x = 1")) == []


def test_a_durable_subscription_has_one_consumer_and_an_owner(bench: "Bench") -> None:
    client = bench.client("app")
    consumer = client.consume(TOPIC, subscription_name="sub")
    with pytest.raises(BrokerError, match="in use"):
        client.consume(TOPIC, subscription_name="sub")
    with pytest.raises(BrokerError, match="in use"):
        bench.broker.subscriptions.lasting.forget("app", "sub", None)
    bench.broker.subscriptions.unsubscribe(consumer, -1)
    bench.broker.subscriptions.lasting.forget("app", "sub", None)
    with pytest.raises(InvalidDestinationError):
        bench.broker.subscriptions.lasting.forget("app", "sub", None)


def test_memory_is_free_again_when_all_have_acknowledged(bench: "Bench") -> None:
    one, two = bench.client("one"), bench.client("two")
    durable = one.consume(TOPIC, subscription_name="sub")
    volatile = two.consume(TOPIC)
    one.send(TOPIC, "m")
    assert bench.broker.memory.used > 0
    one.acknowledge(durable, one.deliveries(durable)[0].message)
    two.acknowledge(volatile, two.deliveries(volatile)[0].message, kind=AckType.INDIVIDUAL)
    assert bench.broker.memory.used == 0


def test_the_same_client_id_is_refused_while_the_first_is_there(bench: "Bench") -> None:
    first = bench.client("app")
    with pytest.raises(InvalidClientIdError, match="already connected"):
        bench.client("app")
    first.leave()
    bench.client("app")


def test_a_newcomer_may_take_a_client_id_over(bench: "Bench") -> None:
    first = bench.client("app")
    first.consume(TOPIC, subscription_name="sub")
    connection = bench.broker.open_connection("tcp://newcomer")
    bench.broker.connect(connection, "ID:newcomer", "app", steals=True)
    assert first.connection.is_ended
    (told,) = [each for each in first.outputs() if isinstance(each, Disconnect)]
    assert "tcp://newcomer" in str(told.error)
    assert [*bench.broker.connections] == ["ID:newcomer"]


def test_a_temporary_queue_is_its_connections_own(bench: "Bench") -> None:
    owner, other = bench.client(), bench.client()
    listener = other.consume("topic://ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic")
    reply_to = Destination(Kind.TEMP_QUEUE, "ID:owner:1")
    bench.broker.destinations.create_temporary(owner.connection, reply_to)
    bench.tick()
    assert len(other.deliveries(listener)) == 1
    with pytest.raises(InvalidDestinationError):
        other.consume(str(reply_to))
    consumer = owner.consume(str(reply_to))
    other.send(str(reply_to), "answer", persistent=False)
    assert owner.texts(consumer) == ["answer"]
    owner.leave()
    assert len(other.deliveries(listener)) == 1
    with pytest.raises(InvalidDestinationError, match="deleted"):
        other.send(str(reply_to), "too late")


def test_a_temporary_queue_leaves_nothing_behind(bench: "Bench") -> None:
    owner = bench.client()
    reply_to = Destination(Kind.TEMP_QUEUE, "ID:owner:2")
    bench.broker.destinations.create_temporary(owner.connection, reply_to)
    bench.client().send(str(reply_to), "an answer that nobody fetches")
    assert bench.restart().depth(str(reply_to)) == 0
    owner.leave()
    assert bench.broker.memory.used == 0


def test_a_removed_queue_is_gone_with_its_messages(bench: "Bench") -> None:
    client = bench.client()
    client.send("Q", "m")
    consumer = client.consume("Q")
    with pytest.raises(InvalidDestinationError, match="active"):
        bench.broker.destinations.remove(consumer.destination, None)
    bench.broker.subscriptions.unsubscribe(consumer, -1)
    bench.broker.destinations.remove(consumer.destination, None)
    bench.tick()
    assert bench.broker.memory.used == 0
    assert bench.restart().depth("Q") == bench.depth("Q") == 0
