"""Records that are found side by side are those that a walk from one to the next finds."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lockkeeper_analytics.reading.record_sizes import sizes_of

GAP = b"gap"


def chunk_of(batches):
    """Return the bytes of *batches* of records of the sizes given, and where each batch is."""
    data, places = bytearray(), []
    for sizes in batches:
        data += GAP
        start = len(data)
        for size in sizes:
            data += struct.pack(">iB", size, 1) + bytes(size - 5)
        places.append((start, len(data)))
    return bytes(data), places


def expected(batches):
    at, found = 0, []
    for number, sizes in enumerate(batches):
        at += len(GAP)
        for size in sizes:
            found.append((at, size, number))
            at += size
    return found


def sizes_found(data, places):
    found = sizes_of(data, places)
    return None if found is None else list(zip(*(each.tolist() for each in found), strict=True))


SIZES = st.lists(st.integers(7, 300), max_size=40)


@given(st.lists(SIZES, max_size=200))
@example([[7] * 3] * 127)
@example([[7] * 3] * 128)
@example([[7] * 3] * 128 + [[1 << 17, 7]])
@example([[]] * 30)
def test_every_record_is_found_in_its_batch(batches):
    assert sizes_found(*chunk_of(batches)) == expected(batches)


@given(
    batches=st.lists(SIZES.filter(bool), min_size=1, max_size=200),
    data=st.data(),
    bad=st.sampled_from([b"\x00\x00\x00\x06", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00"]),
)
def test_batches_that_are_not_filled_are_left_to_others(batches, data, bad):
    chunk, places = chunk_of(batches)
    at = data.draw(st.sampled_from([place for place, _, _ in expected(batches)]))
    # A size that none has, or the kind of another record.
    broken = chunk[:at] + bad + chunk[at + 4 :] if len(bad) == 4 else _with_kind(chunk, at, bad)
    assert sizes_of(broken, places) is None


@pytest.mark.parametrize("count", [1, 127, 128, 200])
@pytest.mark.parametrize("change", [-1, 1])
def test_a_batch_that_ends_within_a_record_or_behind_it_is_left_to_others(count, change):
    data, places = chunk_of([[20, 9]] * count)
    places[-1] = (places[-1][0], places[-1][1] + change)
    assert sizes_of(data + bytes(9), places) is None


def _with_kind(chunk, at, kind):
    return chunk[: at + 4] + kind + chunk[at + 5 :]
