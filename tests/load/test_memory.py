"""However a broker is loaded, it weighs no more than its limit for messages and 150 MB."""

import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from loaded import LIMIT_MIB, Loaded

from lockkeeper.client import ResourceAllocationError

MEBIBYTES_MAX = LIMIT_MIB + 150_000_000 // (1 << 20)
SECONDS = 8
Start = Callable[..., Loaded]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def check(loaded: Loaded, capsys: pytest.CaptureFixture[str], load: str) -> None:
    began = time.monotonic()
    served = loaded.serves()
    took = time.monotonic() - began
    with capsys.disabled():
        print(f"\n{load}: {loaded.sent:,} sent, peak {loaded.peak} MiB, answers in {took:.1f} s")
    assert served
    assert loaded.peak <= MEBIBYTES_MAX


@pytest.mark.parametrize("size", [100, 1000, 100_000])
def test_persistent_senders_that_wait_for_nothing(
    start_loaded: Start, capsys: pytest.CaptureFixture[str], size: int
) -> None:
    loaded = start_loaded()
    for number in range(3):
        loaded.flood(f"BULK.{number}", size, block=max(1, 100_000 // size))
    loaded.last(SECONDS)
    check(loaded, capsys, f"3 asynchronous senders of {size} bytes")
    assert loaded.sent > 100


@pytest.mark.parametrize("temp", ["1Gi", "8Mi"])
@pytest.mark.parametrize("size", [100, 1000])
def test_a_flood_that_is_not_persistent(
    start_loaded: Start, capsys: pytest.CaptureFixture[str], size: int, temp: str
) -> None:
    loaded = start_loaded(temp)
    for number in range(3):
        loaded.flood(f"BULK.{number}", size, persistent=False)
    loaded.last(SECONDS)
    check(loaded, capsys, f"not persistent, {size} bytes, {temp} of files")


def test_consumers_that_read_nothing(
    start_loaded: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = start_loaded()
    with ExitStack() as stack:
        for number in range(20):
            link = loaded.listen_and_read_nothing(number, f"BULK.{number % 2}", prefetch=100_000)
            stack.callback(link.close)
        for number in range(2):
            loaded.flood(f"BULK.{number}", 10_000, block=10)
        loaded.last(SECONDS)
        check(loaded, capsys, "20 consumers that read nothing")


def test_durable_subscribers_that_read_nothing(
    start_loaded: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = start_loaded()
    with ExitStack() as stack:
        for number in range(20):
            link = loaded.listen_and_read_nothing(number, "topic://BULK", "s", 100_000)
            stack.callback(link.close)
        time.sleep(1)
        loaded.flood("topic://BULK", 1000)
        loaded.last(SECONDS)
        check(loaded, capsys, "20 durable subscribers that read nothing")


@pytest.mark.parametrize("size", [100, 10_000, 60_000, 4 << 20])
def test_subscribers_that_read_nothing(
    start_loaded: Start, capsys: pytest.CaptureFixture[str], size: int
) -> None:
    loaded = start_loaded()
    with ExitStack() as stack:
        for number in range(150):
            link = loaded.listen_and_read_nothing(number, "topic://BULK")
            stack.callback(link.close)
        time.sleep(1)
        loaded.flood("topic://BULK", size, persistent=False, block=1)
        loaded.last(SECONDS)
        check(loaded, capsys, f"150 subscribers that read nothing, {size} bytes")


def test_transactions_that_stay_open(
    start_loaded: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = start_loaded()
    with ExitStack() as stack:
        for number in range(8):
            connection = stack.enter_context(loaded.connect())
            session = connection.session(transacted=True)
            producer = session.producer(f"BULK.{number}")
            try:
                for _ in range(200):
                    producer.send(bytes(100_000))
                    loaded.sent += 1
            except ResourceAllocationError:
                continue
        check(loaded, capsys, "open transactions")


def test_many_queues(start_loaded: Start, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = start_loaded()
    with loaded.connect() as connection:
        session = connection.session()
        for number in range(2000):
            producer = session.producer(f"MANY.{number}")
            for _ in range(5):
                producer.send(bytes(10_000))
            producer.close()
            loaded.sent += 5
        check(loaded, capsys, "2,000 queues")


def test_huge_messages(start_loaded: Start, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = start_loaded()
    for number in range(3):
        loaded.flood(f"BULK.{number}", 16 << 20, block=1)
    loaded.last(SECONDS)
    check(loaded, capsys, "messages of 16 MiB")


def test_many_connections(start_loaded: Start, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = start_loaded()
    with ExitStack() as stack:
        for number in range(400):
            link = loaded.listen_and_read_nothing(number, f"BULK.{number % 4}")
            stack.callback(link.close)
        for number in range(4):
            loaded.flood(f"BULK.{number}", 1000)
        loaded.last(SECONDS)
        check(loaded, capsys, "400 connections")
