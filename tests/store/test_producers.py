"""Which numbers of which producers are known as stored."""

import random

import pytest

from lockkeeper.store import producers as module
from lockkeeper.store.producers import GAPS_MAX, PRODUCERS_MAX, Producers


def test_a_number_below_the_last_one_is_unknown_until_it_is_noted() -> None:
    known = Producers()
    for number in (3, 4, 7):
        known.note_number(b"P", number)
    assert [number for number in range(10) if known.holds(b"P", number)] == [3, 4, 7]
    for number in (6, 1, 6, 4):
        known.note_number(b"P", number)
    assert [number for number in range(10) if known.holds(b"P", number)] == [1, 3, 4, 6, 7]
    assert known.stored() == {b"P": (0, 7, ((2, 2), (5, 5)))}


def test_any_order_of_numbers_is_known_exactly() -> None:
    random.seed(13)
    for _ in range(200):
        numbers = [random.randrange(60) for _ in range(random.randrange(1, 50))]
        known = Producers()
        for number in numbers:
            known.note_number(b"P", number)
        assert [n for n in range(-2, 63) if known.holds(b"P", n)] == sorted(set(numbers))


def test_numbers_in_a_row_take_no_room_and_great_leaps_little() -> None:
    known = Producers()
    for number in range(1, 10_000):
        known.note_number(b"P", number)
    assert known.stored() == {b"P": (0, 9_999, ())}
    known.note_number(b"P", 1 << 62)
    assert known.stored() == {b"P": (0, 1 << 62, ((10_000, (1 << 62) - 1),))}
    assert not known.holds(b"P", 1 << 61)


def test_of_too_many_gaps_the_oldest_is_forgotten_and_nothing_before_it_is_known() -> None:
    known = Producers()
    for number in range(0, 2 * GAPS_MAX + 4, 2):
        known.note_number(b"P", number)
    (floor, last, gaps) = known.stored()[b"P"]
    assert (floor, last, len(gaps)) == (1, 2 * GAPS_MAX + 2, GAPS_MAX)
    assert not known.holds(b"P", 0)
    assert known.holds(b"P", 2)
    known.note_number(b"P", 0)
    assert known.stored()[b"P"] == (floor, last, gaps)


def test_the_producers_heard_of_last_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PRODUCERS_MAX", 3)
    known = Producers()
    for name in (b"A", b"B", b"C", b"A", b"D"):
        known.note_number(name, 1 + known.holds(name, 1))
    assert list(known.stored()) == [b"C", b"A", b"D"]
    assert known.holds(b"A", 2)
    assert not known.holds(b"B", 1)
    assert PRODUCERS_MAX == 10_000


def test_a_key_that_is_no_producers_says_nothing() -> None:
    known = Producers()
    for key in (b"foreign", b":7", b"ID:a:1:1:x", b"ID:a:1:1:-4", b""):
        known.note_key(key)
    assert len(known) == 0
    known.note_key(b"ID:a:1:1:7")
    assert known.stored() == {b"ID:a:1:1": (6, 7, ())}
