"""Senders that wait for no answer keep nobody waiting for long."""

import time
from collections.abc import Callable
from statistics import median, quantiles

import pytest
from loaded import Loaded

from lockkeeper.journal.records import AddMessage
from lockkeeper.journal.verify import read_records
from lockkeeper.message.destination import queue

SENDERS = 3
SENDS = 100
BODY_BYTES = 1000
BYTES_BETWEEN_MAX = 4 << 20
"""The batch on its way, the one that waits, and what the answer's own way lets through."""
P99_MS_QUIET = 100
P99_MS_MAX = 1000
"""What a machine that has other work, too, may need; the figure that counts is printed."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_send_that_waits_has_its_turn_before_what_others_send_without_end(
    start_loaded: Callable[..., Loaded], capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = start_loaded()
    with loaded.connect() as connection:
        producer = connection.session().producer("PATIENT")
        for number in range(SENDERS):
            loaded.flood(f"BULK.{number}", BODY_BYTES)
        loaded.last(1)
        milliseconds = []
        for _ in range(SENDS):
            began = time.monotonic()
            producer.send("x")
            milliseconds.append((time.monotonic() - began) * 1000)
    loaded.end()
    between = bytes_between(loaded)
    p99 = quantiles(milliseconds, n=100)[98]
    with capsys.disabled():
        print(
            f"\n{SENDERS} asynchronous senders: a synchronous send takes {median(milliseconds):.0f}"
            f" ms, p99 {p99:.0f} ms (quiet machine: below {P99_MS_QUIET}); the journal takes "
            f"{median(between) / 1e6:.1f} MB of others meanwhile"
        )
    assert len(between) == SENDS - 1
    assert median(between) < BYTES_BETWEEN_MAX
    assert p99 < P99_MS_MAX


def bytes_between(loaded: Loaded) -> list[int]:
    """Return what the journal has between each send of the patient one and the next."""
    between: list[int] = []
    size = 0
    for found in read_records(loaded.data):
        if isinstance(found, Exception):
            raise found
        if isinstance(found.record, AddMessage) and found.record.destination == queue("PATIENT"):
            between.append(size)
            size = 0
        size += found.size
    return between[1:]
