"""Messages that are sent before those before them are confirmed."""

import threading

import brokers
import pytest
from client_support import Connect, bodies
from scripted_peer import ScriptedPeer

from lockkeeper.client import Connection, ConnectionFailedError, RefusedError
from lockkeeper.message import openwire

COUNT = 200


def test_messages_keep_their_order_and_are_confirmed(
    connection: Connection, queue_name: str
) -> None:
    session = connection.session()
    producer = session.producer(queue_name)
    futures = [producer.send_async(f"{n}", {"n": n}, priority=7) for n in range(COUNT)]
    last = producer.send("last")
    ids = [future.result(20) for future in futures]
    consumer = session.consumer(queue_name)
    messages = [consumer.receive(5) for _ in range(COUNT + 1)]
    assert [each and each.body for each in messages] == [*map(str, range(COUNT)), "last"]
    assert [each and each.message_id for each in messages] == [*ids, last]
    assert messages[3] is not None
    assert (messages[3].priority, messages[3].properties) == (7, {"n": 3})


def test_a_function_is_told_that_a_message_is_confirmed(
    connection: Connection, queue_name: str
) -> None:
    told = threading.Event()
    future = connection.session().producer(queue_name).send_async("text")
    future.add_done_callback(lambda done: told.set())
    assert told.wait(20)
    assert future.result(0)


def test_what_nobody_confirms_is_done_at_once(connection: Connection, queue_name: str) -> None:
    session = connection.session(transacted=True)
    first = session.producer(queue_name).send_async("in a transaction").result(20)
    session.commit()
    free = connection.session().producer(queue_name)
    second = free.send_async("not persistent", persistent=False).result(20)
    assert first != second
    consumer = connection.session().consumer(queue_name)
    assert bodies(consumer, 2) == ["in a transaction", "not persistent"]


def test_a_refusal_is_told_by_the_future(connection: Connection) -> None:
    gone = connection.temporary_queue()
    producer = connection.session().producer(gone)
    connection.delete_temporary(gone)
    with pytest.raises(RefusedError):
        producer.send_async("to nobody").result(20)


@pytest.mark.thorough
def test_they_are_confirmed_by_the_next_broker(
    our_mortal_broker: brokers.RunningBroker, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(f"failover:({our_mortal_broker.url})?maxReconnectDelay=50")
    session = connection.session()
    producer = session.producer(queue_name)
    producer.send("0")
    our_mortal_broker.kill()
    futures = [producer.send_async(str(n)) for n in range(1, COUNT)]
    our_mortal_broker.start()
    assert len({future.result(60) for future in futures}) == COUNT - 1
    consumer = session.consumer(queue_name)
    assert bodies(consumer, COUNT) == [*map(str, range(COUNT))]


def test_a_connection_that_is_lost_fails_what_has_no_answer(open_connection: Connect) -> None:
    with ScriptedPeer() as peer:

        def serve() -> None:
            peer.shake_hands()
            peer.serve_until(openwire.ActiveMQTextMessage)
            peer.hang_up()

        thread = threading.Thread(target=serve)
        thread.start()
        connection = open_connection(peer.address)
        future = connection.session().producer("ORDERS").send_async("perhaps")
        with pytest.raises(ConnectionFailedError):
            future.result(20)
        thread.join(20)
