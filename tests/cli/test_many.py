"""Many consumers, many queues: a real broker opens, serves and restarts them."""

import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from cli_support import role_at, run_broker, stop, wait_until
from ports import free_ports

from lockkeeper.client import Acknowledge, connect

CONNECTIONS, CONSUMERS_OF_EACH, MESSAGES = 20, 50, 20_000
QUEUES = 10_000
BATCH = 1000
RESTART_SECONDS_MAX = 15


class Place:
    """A broker on a directory that can be stopped and started again."""

    def __init__(self, data: Path) -> None:
        port, admin = free_ports(2)
        self.url, self._admin = f"tcp://127.0.0.1:{port}", f"127.0.0.1:{admin}"
        self._data, self._listen = data, f"openwire://127.0.0.1:{port}"
        self.start()

    def start(self) -> float:
        """Start it; return the seconds until it serves."""
        began = time.monotonic()
        self._process = run_broker(self._data, self._listen, self._admin)
        wait_until(lambda: role_at(f"http://{self._admin}") == "master", self._process)
        return time.monotonic() - began

    def stop(self) -> None:
        """Stop it, cleanly."""
        stop(self._process)

    def resident(self) -> int:
        """Return the bytes it has in memory."""
        status = Path(f"/proc/{self._process.pid}/status").read_text("utf-8")
        (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024


@pytest.mark.slow
def test_a_thousand_consumers_share_one_queue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path / "data")
    try:
        with ExitStack() as stack:
            sessions = [
                stack.enter_context(connect(place.url)).session(acknowledge=Acknowledge.AUTO)
                for _ in range(CONNECTIONS)
            ]
            began = time.monotonic()
            consumers = [
                session.consumer("SHARED", prefetch=10)
                for session in sessions
                for _ in range(CONSUMERS_OF_EACH)
            ]
            opened = time.monotonic() - began
            began = time.monotonic()
            sender = stack.enter_context(connect(place.url)).session()
            sender.producer("SHARED").send_many(str(number) for number in range(MESSAGES))
            received: list[list[str]] = [[] for _ in consumers]
            while sum(map(len, received)) < MESSAGES:
                before = sum(map(len, received))
                for got, consumer in zip(received, consumers, strict=True):
                    while (message := consumer.receive(0)) is not None:
                        got.append(str(message.body))
                assert sum(map(len, received)) > before or time.monotonic() - began < 120
            served = time.monotonic() - began
        everything = sorted(int(text) for got in received for text in got)
        assert everything == list(range(MESSAGES))
        # Nobody starves: with windows of ten each consumer's turn comes again and again.
        assert min(map(len, received)) >= 10
        with capsys.disabled():
            print(
                f"\n{len(consumers):,} consumers of one queue: opened in {opened:.1f} s, "
                f"{MESSAGES:,} persistent messages sent and consumed in {served:.1f} s; "
                f"the busiest got {max(map(len, received))}, the least {min(map(len, received))}; "
                f"{place.resident() / 1e6:.0f} MB resident"
            )
    finally:
        place.stop()


@pytest.mark.slow
def test_ten_thousand_queues_with_a_message_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path / "data")
    try:
        began = time.monotonic()
        with connect(place.url) as connection:
            session = connection.session(transacted=True)
            producer = session.producer()
            for number in range(QUEUES):
                producer.send(f"only {number}", destination=f"MANY.{number}")
                if number % BATCH == BATCH - 1:
                    session.commit()
        filled = time.monotonic() - began
        resident = place.resident()
        place.stop()
        restarted = place.start()
        # What takes as long for each queue as there are queues would take minutes.
        assert restarted < RESTART_SECONDS_MAX
        again = place.resident()
        began = time.monotonic()
        with connect(place.url) as connection:
            session = connection.session(transacted=True)
            for number in range(QUEUES):
                with session.consumer(f"MANY.{number}", prefetch=1) as consumer:
                    message = consumer.receive(10)
                    assert message is not None
                    assert message.body == f"only {number}"
                    session.commit()
        served = time.monotonic() - began
        with capsys.disabled():
            print(
                f"\n{QUEUES:,} queues with a message each: filled in {filled:.1f} s, "
                f"{resident / 1e6:.0f} MB resident; restarted in {restarted:.1f} s, "
                f"{again / 1e6:.0f} MB; each opened, served and closed in {served:.1f} s"
            )
    finally:
        place.stop()
