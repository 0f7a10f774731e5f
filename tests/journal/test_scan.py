"""Damage: a torn tail stops cleanly, a flipped byte is found with its file and offset."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lockkeeper.journal.batch import EOF_RECORD, EOF_SIZE, build_batch
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.errors import CorruptBatchError
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.records import AddMessage, Trace
from lockkeeper.journal.scan import scan_file
from lockkeeper.message.destination import queue

GOLDEN = Path(__file__).parents[1] / "golden" / "kahadb"


def batch_of(*texts: str) -> bytes:
    return build_batch(b"".join(encode_record(Trace(text)) for text in texts))[:-EOF_SIZE]


FIRST = batch_of("one", "two")
SECOND = batch_of("three")
LAST = batch_of("four", "five", "six")
START_OF_LAST = len(FIRST) + len(SECOND)
FILE = FIRST + SECOND + LAST + EOF_RECORD


@pytest.mark.parametrize("rest", [b"", bytes(300), bytes(200) + EOF_RECORD])
def test_a_tail_torn_anywhere_leaves_the_batches_before_it(rest: bytes) -> None:
    for cut in range(START_OF_LAST, len(FILE) - EOF_SIZE):
        scan = scan_file(FILE[:cut] + rest, "db-7.log")
        assert len(scan.batches) == 2
        assert scan.end == START_OF_LAST
        scan.require_uncorrupted()
        # The first three bytes of a batch are zeros, as is a prepared file.
        if cut > START_OF_LAST + (3 if rest else 0):
            assert scan.is_torn
            with pytest.raises(CorruptBatchError, match=rf"db-7.log.*offset {START_OF_LAST}:"):
                scan.require_whole()


@pytest.mark.parametrize("cut", range(EOF_SIZE + 1))
def test_a_torn_end_record_loses_no_batch(cut: int) -> None:
    scan = scan_file(FILE[: len(FILE) - cut], "db-7.log")
    assert len(scan.batches) == 3
    assert scan.end == len(FILE) - EOF_SIZE


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_every_flipped_byte_is_found_with_its_batch(mask: int) -> None:
    starts = [0, len(FIRST), START_OF_LAST, len(FILE) - EOF_SIZE]
    for position in range(len(FILE)):
        damaged = bytearray(FILE)
        damaged[position] ^= mask
        scan = scan_file(damaged, "db-7.log")
        expected = max(start for start in starts if start <= position)
        assert scan.problem is not None
        assert (scan.problem.file_name, scan.problem.offset) == ("db-7.log", expected)
        assert scan.end == expected
        assert scan.is_torn is (expected >= START_OF_LAST)


def test_sound_batches_behind_a_broken_one_are_found() -> None:
    damaged = bytearray(FILE)
    damaged[40] ^= 1
    scan = scan_file(damaged, "db-7.log")
    assert scan.resumes_at == len(FIRST)
    with pytest.raises(CorruptBatchError, match="Adler-32"):
        scan.require_uncorrupted()


def test_a_broken_length_does_not_hide_the_batches_behind_it() -> None:
    damaged = bytearray(FILE)
    damaged[16] = 0x7F
    assert scan_file(damaged, "db-7.log").resumes_at == len(FIRST)


def test_journal_bytes_inside_a_torn_message_are_not_taken_for_batches() -> None:
    message = AddMessage(queue("A"), "ID:a:1:1:1", FILE * 3)
    torn = build_batch(encode_record(message))[:-100]
    for rest in (b"", bytes(1000)):
        scan = scan_file(FIRST + torn + rest, "db-7.log")
        assert scan.is_torn
        assert scan.end == len(FIRST)


def test_a_large_batch_of_journal_bytes_that_was_given_up_is_scanned_once() -> None:
    carried = encode_record(AddMessage(queue("A"), "ID:a:1:1:1", FILE))
    given_up = EOF_RECORD + build_batch(carried * 20_000)[EOF_SIZE:-EOF_SIZE]
    began = time.process_time()
    scan = scan_file(FIRST + given_up, "db-7.log")
    assert (scan.end, scan.problem, scan.resumes_at) == (len(FIRST), None, None)
    assert scan_file(FIRST + given_up + LAST, "db-7.log").resumes_at == len(FIRST + given_up)
    # From the beginning for each of them it took minutes.
    assert time.process_time() - began < 10


def test_without_a_checksum_the_lengths_of_the_records_are_checked() -> None:
    unchecked = FIRST[:20] + bytes(8) + FIRST[28:]
    assert len(scan_file(unchecked, "db-7.log").batches) == 1
    scan = scan_file(unchecked[:-14] + bytes(100), "db-7.log")
    assert (scan.end, scan.is_torn) == (0, True)
    broken = bytearray(unchecked)
    broken[30] = 9
    with pytest.raises(CorruptBatchError, match="record at offset 28"):
        scan_file(broken, "db-7.log").require_whole()


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_scanned(kind: Callable[[bytes], bytes]) -> None:
    assert len(scan_file(kind(FILE), "db-7.log").batches) == 3


def test_a_scan_can_begin_at_a_later_batch() -> None:
    scan = scan_file(FILE, "db-7.log", start=len(FIRST))
    assert [batch.offset for batch in scan.batches] == [len(FIRST), START_OF_LAST]


def test_each_byte_of_a_golden_file_that_is_flipped_is_found() -> None:
    file = list_data_files(GOLDEN / "prealloc-none")[0]
    data = bytearray(file.path.read_bytes())
    whole = scan_file(data, "db-1.log")
    for position in range(whole.end):
        data[position] ^= 0x10
        problem = scan_file(data, "db-1.log").problem
        data[position] ^= 0x10
        batch = next(batch for batch in whole.batches if position < batch.end)
        assert problem is not None
        assert problem.offset == batch.offset
