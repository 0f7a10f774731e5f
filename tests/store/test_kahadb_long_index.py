"""A long queue is read from the journal as any other, in less memory."""

import random
from collections import Counter

import pytest

from lockkeeper.store.base import WRITTEN, Reference
from lockkeeper.store.kahadb import long_index
from lockkeeper.store.kahadb.file_references import OFFSET_BITS
from lockkeeper.store.kahadb.long_index import LongIndex


@pytest.mark.parametrize("seed", range(5))
def test_it_does_what_a_dictionary_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_index, "RECENT_MAX", 20)
    chosen = random.Random(seed)
    plain: dict[bytes, Reference] = {}
    index = LongIndex({})
    for number in range(5000):
        message_id = b"ID:p-1:1:1:%d" % (
            number if chosen.random() < 0.7 else chosen.randrange(5000)
        )
        assert (message_id in index) == (message_id in plain)
        if message_id not in plain:
            size = chosen.choice((100, 100, 200, 70_000))
            reference = Reference(None, size, number << OFFSET_BITS, WRITTEN)
            reference.priority = chosen.choice((-1, -1, 9))
            index[message_id] = reference
            plain[message_id] = reference
        elif chosen.random() < 0.1:
            reference = index[message_id]
            reference.location, reference.size = number << OFFSET_BITS | 7, 3 << 20
            index.move(message_id, reference.location, reference.size)
            plain[message_id].location, plain[message_id].size = reference.location, 3 << 20
        else:
            assert told(index.pop(message_id)) == told(plain.pop(message_id))
            assert index.pop(message_id) is None
        if chosen.random() < 0.1:
            index.compact()
        assert len(index) == len(plain)
    expected = [told(reference) for reference in plain.values()]
    found, counts = index.finish()
    assert found.runs
    assert [told(reference) for reference in found] == expected
    assert len(found) == len(expected)
    sizes: Counter[int] = Counter()
    for location, size, _, _ in expected:
        sizes[location >> OFFSET_BITS] += size
    assert counts == sizes


def told(reference: Reference | None) -> tuple[int, int, int, int]:
    assert reference is not None
    return reference.location, reference.size, reference.priority, reference.state
