"""Two brokers on one directory: when the master dies, the standby serves what it had."""

import random
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audit import audit, subscribe
from ledger import Ledger
from rounds import run_under_load, verify

from lockkeeper.client import connect

if TYPE_CHECKING:
    from brokers import RunningBroker

pytestmark = [pytest.mark.crash, pytest.mark.slow]

ROUNDS = 6
TAKEOVER_SECONDS_MAX = 5
STANDBY_SECONDS_MAX = 20
STOP_SECONDS_MAX = 30
StartBroker = Callable[..., "RunningBroker"]


def start_standby(start_broker: StartBroker, master: "RunningBroker") -> "RunningBroker":
    """Start a second broker on the same port and directory; return it once it stands by."""
    standby = start_broker(port=master.port, waits=False)
    deadline = time.monotonic() + STANDBY_SECONDS_MAX
    while "is standby" not in standby.log.read_text():
        assert standby.process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    return standby


def take_over(standby: "RunningBroker") -> "RunningBroker":
    """Wait until the standby serves, which must not take long."""
    began = time.monotonic()
    standby.wait()
    seconds = time.monotonic() - began
    print(f"took over after {seconds:.2f} s")
    assert seconds < TAKEOVER_SECONDS_MAX
    return standby


def test_a_standby_takes_over_with_nothing_lost(
    start_broker: StartBroker, tmp_path: Path, seed: str
) -> None:
    chance, ledger = random.Random(seed), Ledger()
    master = start_broker()
    subscribe(master.port)
    for number in range(ROUNDS):
        standby = start_standby(start_broker, master)
        run_under_load(ledger, master, f"{seed}-{number}", chance.uniform(0.2, 1.5))
        master = take_over(standby)
        audit(ledger, master.port, chance)
        assert not ledger.problems, f"round {number}: {ledger.problems[:10]}"
    master.stop()
    verify(tmp_path / "data")
    assert ledger.counts["added"] > 100 * ROUNDS


def test_a_clean_stop_hands_over_at_once(start_broker: StartBroker) -> None:
    master = start_broker()
    standby = start_standby(start_broker, master)
    with connect(f"tcp://127.0.0.1:{master.port}") as connection:
        connection.session().producer("HANDED.OVER").send("here")
        master.stop()
    take_over(standby)
    with connect(f"tcp://127.0.0.1:{standby.port}") as connection:
        assert [each.body for each in connection.session().browse("HANDED.OVER")] == ["here"]


def test_a_failover_client_sends_everything_once(start_broker: StartBroker, seed: str) -> None:
    chance = random.Random(seed)
    master = start_broker()
    stopping, sent = threading.Event(), count(1)
    last = 0

    def send_all() -> None:
        nonlocal last
        with connect(f"failover:(tcp://127.0.0.1:{master.port})") as connection:
            producer = connection.session().producer("ONCE")
            while not stopping.is_set():
                last = next(sent)
                producer.send(str(last))

    sender = threading.Thread(target=send_all, daemon=True)
    sender.start()
    for _ in range(3):
        standby = start_standby(start_broker, master)
        time.sleep(chance.uniform(0.1, 0.8))
        master.kill()
        master = take_over(standby)
    stopping.set()
    sender.join(STOP_SECONDS_MAX)
    assert not sender.is_alive()
    with connect(f"tcp://127.0.0.1:{master.port}") as connection:
        found = [each.body for each in connection.session().browse("ONCE")]
    assert found == [str(number) for number in range(1, last + 1)]
    assert last > 100
