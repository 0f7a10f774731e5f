"""Searches a piece at a time find what one search finds, and let others have their turn."""

import re
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockkeeper.journal import scan
from lockkeeper.journal.batch import CONTROL_START, EOF_RECORD, build_batch
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.errors import CorruptBatchError
from lockkeeper.journal.pieces import end_of_zeros, occurrences
from lockkeeper.journal.records import Trace
from lockkeeper.journal.scan import scan_file

FILE_BYTES = 32 << 20
PAUSE_SECONDS_MAX = 0.02
BATCH = build_batch(encode_record(Trace("one")))
PIECES = st.sampled_from(
    [b"\0", b"\0" * 5, b"\0" * 70, b"\0" * 300, b"x", b"qMa4", EOF_RECORD, CONTROL_START, BATCH]
)
JOURNALS = st.tuples(st.lists(PIECES, max_size=20).map(b"".join), st.integers(0, 400)).map(
    lambda made: made[0][: len(made[0]) - made[1]] if made[1] % 2 else made[0]
)


@given(JOURNALS, st.integers(0, 60), st.integers(1, 50))
def test_what_is_wanted_is_found_wherever_pieces_are_cut(
    data: bytes, start: int, piece_bytes: int
) -> None:
    with memoryview(data) as view:
        for wanted in (CONTROL_START, EOF_RECORD, b"M"):
            at_once = [
                found.start() for found in re.compile(re.escape(wanted)).finditer(data, start)
            ]
            assert list(occurrences(view, wanted, start, piece_bytes)) == at_once


@given(JOURNALS, st.integers(0, 60), st.integers(1, 200))
def test_zeros_end_where_they_do_wherever_pieces_are_cut(
    data: bytes, start: int, piece_bytes: int
) -> None:
    zeros = re.compile(rb"\0*").match(data, start)
    at_once = zeros.end() if zeros and start <= len(data) else start
    with memoryview(data) as view:
        assert end_of_zeros(view, start, piece_bytes) == at_once


def resumes_at_once(view: memoryview, offset: int, file_name: str) -> int | None:
    """Return what `_resume` does, by one search over everything."""
    for control in re.compile(re.escape(CONTROL_START)).finditer(view, offset + 1):
        at = control.start()
        if not scan._BrokenBatch(view[offset:]).has_record_over(at - offset):
            try:
                scan._batch(view, at, file_name)
            except CorruptBatchError:
                continue
            return at
    return None


def is_unused_at_once(view: memoryview, offset: int) -> bool:
    """Return what `_is_unused` does, by one search over everything."""
    return re.compile(rb"(\0*(-qMa4|\Z))*\Z").match(view, offset) is not None


@given(JOURNALS, st.integers(0, 60))
def test_a_file_resumes_and_ends_where_it_did(data: bytes, offset: int) -> None:
    offset = min(offset, len(data))
    with memoryview(data) as view:
        assert scan._resume(view, offset, "db-1.log") == resumes_at_once(view, offset, "db-1.log")
        assert scan._is_unused(view, offset) == is_unused_at_once(view, offset)


@pytest.mark.slow
def test_others_have_their_turn_while_zeros_are_looked_through() -> None:
    data = BATCH[:-5] + bytes(FILE_BYTES)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        # The machine itself may pause; the search must not, each time.
        assert min(longest_pause(data) for _ in range(5)) < PAUSE_SECONDS_MAX
    finally:
        sys.setswitchinterval(interval)


def longest_pause(data: bytes) -> float:
    """Return for how long this thread had no turn while another one scanned, in seconds."""
    scanning = threading.Thread(target=scan_file, args=(data, "db-1.log"))
    longest, before = 0.0, time.perf_counter()
    scanning.start()
    while scanning.is_alive():
        time.sleep(0.0005)
        now = time.perf_counter()
        longest, before = max(longest, now - before), now
    return longest
