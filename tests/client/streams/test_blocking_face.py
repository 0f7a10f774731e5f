"""The blocking face: the same names as that of asyncio, for threads."""

import inspect
import threading
import time
from collections.abc import Callable

import pytest

from lockkeeper.client import IllegalStateError, streams
from lockkeeper.client.streams import (
    FIRST,
    LAST,
    ConsumeLater,
    GroupSettings,
    Message,
    Outcome,
    ReceivedMessage,
    aio,
    connect,
)

FROM_FIRST = GroupSettings(begin=FIRST, concurrency=4)
OF_THE_INSIDE = {
    "beat", "told", "share_soon", "go_on_at", "commit", "open", "is_asked", "answer_check",
    "is_in_listener", "in_hand", "end_listener", "end_listeners",
}  # fmt: skip


def until(happened: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("name", ["Connection", "Producer", "Reader", "GroupConsumer"])
def test_both_faces_have_the_same_names(name: str) -> None:
    def face(module: object) -> dict[str, list[str]]:
        return {
            each: list(inspect.signature(what).parameters) if callable(what) else []
            for each, what in vars(getattr(module, name)).items()
            if not each.startswith("_") and each not in OF_THE_INSIDE
        }

    blocking, asyncio_face = face(streams), face(aio)
    blocking.pop("on_error", None)
    blocking.pop("group", None)
    blocking.pop("client_id", None)
    assert blocking == asyncio_face


def test_threads_send_and_read(names: str, stream: str) -> None:
    with connect(names) as connection:
        producer = connection.producer()
        sent = producer.send(stream, "0", partition=1, tag="a", properties={"region": "EU"})
        assert (sent.partition.number, sent.offset) == (1, 0)
        batch = [Message(str(number)) for number in range(1, 5)]
        assert [each.offset for each in producer.send_batch(stream, batch, partition=1)] == [
            1, 2, 3, 4,
        ]  # fmt: skip
        with connection.reader(stream, partitions=[1]) as reader:
            message = reader.receive(10)
            assert message is not None
            assert (message.text, message.properties) == ("0", {"region": "EU"})
            found: list[ReceivedMessage] = []
            while len(found) < 4:
                found += reader.receive_many(timeout=10)
            assert [each.text for each in found] == ["1", "2", "3", "4"]
            assert reader.receive(0) is None
            assert reader.positions == {sent.partition: 5} == reader.offsets(LAST)
            reader.seek({sent.partition: 4})
            for message in reader:
                assert message.text == "4"
                break
        with pytest.raises(IllegalStateError):
            reader.seek(FIRST)
    producer.close()
    reader.close()
    connection.close()
    with pytest.raises(IllegalStateError):
        producer.send(stream, "too late")


def test_threads_begin_transactions(names: str, stream: str) -> None:
    with connect(names) as connection:
        producer = connection.producer(f"P-{stream}", lambda message: Outcome.UNKNOWN)
        with producer.transaction(stream, Message("seen")):
            pass
        with pytest.raises(KeyError), producer.transaction(stream, Message("taken back")):
            raise KeyError
        producer.transaction(stream, Message("rolled back")).roll_back()
        transaction = producer.transaction(stream, Message("seen, too"))
        transaction.commit()
        with pytest.raises(IllegalStateError, match="has ended"):
            transaction.roll_back()
        reader = connection.reader(stream)
        found: list[ReceivedMessage] = []
        while len(found) < 2:
            found += reader.receive_many(timeout=10)
        assert {each.text for each in found} == {"seen", "seen, too"}
        assert reader.receive(0.2) is None


def test_threads_consume(names: str, stream: str) -> None:
    threads: set[int] = set()
    seen: list[str] = []

    def consume(message: ReceivedMessage) -> None:
        threads.add(threading.get_ident())
        if message.text == "7" and not message.reconsumed:
            raise ConsumeLater(1)
        seen.append(message.text)

    with connect(names) as connection:
        producer = connection.producer()
        for number in range(20):
            producer.send(stream, str(number))
        with connection.consumer(f"G-{stream}", stream, consume, FROM_FIRST) as consumer:
            until(lambda: len(seen) == 20)
            assert len(consumer.partitions) == 4
            assert consumer.in_hand.messages <= 1
    assert sorted(seen, key=int) == [*map(str, range(20))]
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("of", ["consumer", "connection"])
def test_a_listener_in_a_thread_may_close(names: str, stream: str, of: str) -> None:
    seen: list[str] = []
    closed = threading.Event()

    def consume(message: ReceivedMessage) -> None:
        seen.append(message.text)
        (consumer if of == "consumer" else connection).close()
        closed.set()

    connection = connect(names)
    producer = connection.producer()
    settings = GroupSettings(begin=FIRST, orderly=True)
    for number in range(3):
        producer.send(stream, str(number), partition=0)
    ready = threading.Event()

    def wait_and_consume(message: ReceivedMessage) -> None:
        ready.wait(10)
        consume(message)

    consumer = connection.consumer(f"G-{stream}", stream, wait_and_consume, settings)
    ready.set()
    assert closed.wait(10)
    consumer.close()
    connection.close()
    assert seen == ["0"]
