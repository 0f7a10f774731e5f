"""Requests and their answers, of both faces."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import brokers
import pytest
from client_support import Connect

from lockkeeper.client import (
    Connection,
    IllegalStateError,
    MessagingError,
    ReceivedMessage,
    RefusedError,
    RequestTimedOutError,
    connect,
)


@contextmanager
def answering(connection: Connection, queue_name: str, silent: str = "") -> Iterator[list[str]]:
    """Answer each request in capital letters but those that are *silent*; yield who asked."""
    session = connection.session()
    producer = session.producer()
    asked: list[str] = []

    def answer(message: ReceivedMessage) -> None:
        asked.append(str(message.reply_to))
        if message.body != silent:
            producer.send(
                str(message.body).upper(), message.properties, type=message.type,
                destination=message.reply_to, correlation_id=message.correlation_id,
            )  # fmt: skip

    with session.consumer(queue_name, listener=answer):
        yield asked


@pytest.fixture
def responder(broker: brokers.RunningBroker) -> Iterator[Connection]:
    with connect(broker.url) as connection:
        yield connection


def test_a_request_gets_its_answer(
    connection: Connection, responder: Connection, queue_name: str
) -> None:
    with answering(responder, queue_name) as asked, connection.requestor(queue_name) as requestor:
        answers = [requestor.request(f"tea {n}", {"n": n}, type="t", timeout=20) for n in range(3)]
    assert [answer.body for answer in answers] == ["TEA 0", "TEA 1", "TEA 2"]
    assert [answer.properties["n"] for answer in answers] == [0, 1, 2]
    assert answers[0].type == "t"
    assert len({*asked}) == 1 and asked[0].startswith("temp-queue://")


def test_many_ask_at_once(connection: Connection, responder: Connection, queue_name: str) -> None:
    texts = [f"tea {number}" for number in range(40)]
    with (
        answering(responder, queue_name),
        connection.requestor(queue_name, persistent=False) as requestor,
        ThreadPoolExecutor(8) as threads,
    ):
        answers = [*threads.map(lambda text: requestor.request(text, timeout=20).body, texts)]
    assert answers == [text.upper() for text in texts]


def test_a_late_answer_is_not_that_of_the_next_request(
    connection: Connection, responder: Connection, queue_name: str
) -> None:
    with connection.requestor(queue_name) as requestor:
        with pytest.raises(RequestTimedOutError, match=f"no answer from queue://{queue_name} with"):
            requestor.request("first", timeout=0.1)
        with answering(responder, queue_name):
            assert requestor.request("second", timeout=20).body == "SECOND"


def test_whoever_waits_learns_of_the_end(connection: Connection, queue_name: str) -> None:
    requestor = connection.requestor(queue_name)
    ended: list[MessagingError] = []

    def ask() -> None:
        try:
            requestor.request("unheard")
        except MessagingError as error:
            ended.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    consumer = connection.session().consumer(queue_name)
    assert consumer.receive(20) is not None
    requestor.close()
    thread.join(20)
    (error,) = ended
    assert isinstance(error, IllegalStateError) and "the requestor is closed" in str(error)
    with pytest.raises(IllegalStateError, match="is closed"):
        requestor.request("late")


def test_the_queue_of_answers_goes_with_the_requestor(
    connection: Connection, responder: Connection, queue_name: str
) -> None:
    with answering(responder, queue_name) as asked, connection.requestor(queue_name) as requestor:
        requestor.request("tea", timeout=20)
    # What the broker answers later, it has done later.
    connection.temporary_queue()
    with pytest.raises(RefusedError):
        responder.session().producer(asked[0]).send("to nobody")


@pytest.mark.thorough
def test_requests_go_on_with_the_next_broker(
    our_mortal_broker: brokers.RunningBroker, open_connection: Connect, queue_name: str
) -> None:
    url = f"failover:({our_mortal_broker.url})?maxReconnectDelay=50"
    with (
        connect(url) as responder,
        answering(responder, queue_name),
        open_connection(url).requestor(queue_name) as requestor,
    ):
        assert requestor.request("tea", timeout=20).body == "TEA"
        our_mortal_broker.kill()
        our_mortal_broker.start()
        assert requestor.request("more tea", timeout=60).body == "MORE TEA"


def test_the_end_of_the_connection_is_the_end_of_requests(
    broker: brokers.RunningBroker, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(broker.url)
    requestor = connection.requestor(queue_name)
    connection.close()
    with pytest.raises(MessagingError, match="closed"):
        requestor.request("late", timeout=20)
