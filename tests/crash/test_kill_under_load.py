"""A broker killed at any moment under load has lost nothing that it had answered for."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audit import audit, subscribe
from ledger import Ledger
from rounds import run_under_load, verify

if TYPE_CHECKING:
    from brokers import RunningBroker

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.patient]

ROUNDS = 10
LOAD_SECONDS_MIN, LOAD_SECONDS_MAX = 0.2, 1.5
FILE_BYTES = ("64Ki", "64Ki", "1Mi", "32Mi")
StartBroker = Callable[..., "RunningBroker"]


def test_a_broker_killed_at_random_moments_loses_nothing(
    start_broker: StartBroker, tmp_path: Path, seed: str
) -> None:
    chance, ledger, data = random.Random(seed), Ledger(), tmp_path / "data"
    broker = start_broker(file_bytes=FILE_BYTES[0])
    subscribe(broker.port)
    for number in range(ROUNDS):
        seconds = chance.uniform(LOAD_SECONDS_MIN, LOAD_SECONDS_MAX)
        run_under_load(ledger, broker, f"{seed}-{number}", seconds)
        verify(data)
        began = time.monotonic()
        broker = start_broker(file_bytes=chance.choice(FILE_BYTES))
        ready = time.monotonic() - began
        audit(ledger, broker.port, chance)
        print(f"round {number}: ready after {ready:.2f} s, {dict(ledger.counts)}")
        assert not ledger.problems, f"round {number}: {ledger.problems[:10]}"
    assert ledger.counts["added"] > 100 * ROUNDS
    assert ledger.counts["removed"] > 100 * ROUNDS
