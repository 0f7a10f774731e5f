"""Large transactions over sockets: nobody waits while one is written, and a kill leaves no part."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lockkeeper.client import connect
from lockkeeper.client.errors import MessagingError
from lockkeeper.testing.process import ProcessBroker

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.patient]

BODY = b"x" * (8 << 20)
QUEUES = [f"Q{number}" for number in range(60)]
PAUSE_SECONDS = 0.005
DELAY_SECONDS_MAX = 0.5
FILE_BYTES = 32 << 20
RECEIVE_SECONDS = 3


class Prober(threading.Thread):
    """A client that sends itself messages; `slowest` is how long one took at most."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._is_over = threading.Event()
        self.is_ready = threading.Event()
        self.slowest = 0.0
        self.count = 0

    def run(self) -> None:
        with connect(self._url) as connection:
            session = connection.session()
            producer, consumer = session.producer("PROBE"), session.consumer("PROBE")
            while not self._is_over.is_set():
                began = time.monotonic()
                producer.send("there?", persistent=False)
                assert consumer.receive(60) is not None
                if self.is_ready.is_set():
                    self.slowest = max(self.slowest, time.monotonic() - began)
                    self.count += 1
                self._is_over.wait(PAUSE_SECONDS)

    def end(self) -> None:
        self._is_over.set()
        self.join()


@contextmanager
def probing(url: str) -> Iterator[Prober]:
    prober = Prober(url)
    prober.start()
    try:
        yield prober
    finally:
        prober.end()


def left(url: str) -> dict[str, list[int]]:
    """Consume what there is; returns the sizes of the messages by queue."""
    found: dict[str, list[int]] = {}
    with connect(url) as connection:
        consumer = connection.session().consumer(",".join(QUEUES))
        while (message := consumer.receive(RECEIVE_SECONDS)) is not None:
            assert message.destination is not None
            assert isinstance(message.body, bytes)
            found.setdefault(message.destination.name, []).append(len(message.body))
    return found


def test_nobody_waits_while_a_large_transaction_is_written(tmp_path: Path) -> None:
    with ProcessBroker(tmp_path) as broker, connect(broker.url) as connection:
        session = connection.session(transacted=True)
        for name in QUEUES:
            session.producer(name).send(BODY)
        with probing(broker.url) as prober:
            time.sleep(0.1)
            prober.is_ready.set()
            session.commit()
        assert prober.count > 20
        assert prober.slowest < DELAY_SECONDS_MAX
        session.close()
        assert left(broker.url) == {name: [len(BODY)] for name in QUEUES}


def test_a_kill_in_the_middle_leaves_nothing_of_a_large_transaction(tmp_path: Path) -> None:
    with ProcessBroker(tmp_path) as broker:
        with connect(broker.url) as connection:
            connection.session().producer(QUEUES[0]).send(b"before")
            session = connection.session(transacted=True)
            for name in QUEUES:
                session.producer(name).send(BODY)
            committing = threading.Thread(target=commit_or_fail, args=[session.commit])
            committing.start()
            while longest_file(broker.directory) < FILE_BYTES + len(BODY):
                time.sleep(0.001)
            broker.kill()
            committing.join()
        assert FILE_BYTES < longest_file(broker.directory) < len(QUEUES) * len(BODY)
        broker.start()
        assert left(broker.url) == {QUEUES[0]: [len(b"before")]}


def commit_or_fail(commit: Callable[[], None]) -> None:
    with pytest.raises(MessagingError):
        commit()


def longest_file(directory: Path) -> int:
    """Return the size of the longest data file."""
    return max((file.stat().st_size for file in directory.glob("db-*.log")), default=0)
