"""What is kept by texts of clients has bounds, and is what would be made without it."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lockkeeper.broker.streams.drafts import tag_hash_of
from lockkeeper.journal.encode import encode_destination
from lockkeeper.keeping import SHORT_CHARACTERS_MAX, Kept, kept_while_short
from lockkeeper.message.destination import queue
from lockkeeper.protocols.rocketmq.filters import SQL, TAG, filter_of
from lockkeeper.protocols.rocketmq.messages import NOWHERE, encode_topic, parse_host
from lockkeeper.store.producers import NAMES_BYTES_MAX, Producers

MIB = 1 << 20


@contextmanager
def memory_within(limit: int) -> Iterator[None]:
    """See that no more is in memory afterwards than before, but for *limit* bytes."""
    tracemalloc.start()
    try:
        yield
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < limit


def test_short_texts_are_kept_and_long_ones_made_anew() -> None:
    made: list[str] = []

    @kept_while_short(2)
    def shout(text: str) -> str:
        """Make a text loud."""
        made.append(text)
        return text.upper()

    short, long = "a" * SHORT_CHARACTERS_MAX, "b" * (SHORT_CHARACTERS_MAX + 1)
    said = [shout(text) for text in (short, short, long, long, "c", "d", short)]
    assert said == [text.upper() for text in (short, short, long, long, "c", "d", short)]
    assert made == [short, long, long, "c", "d", short]
    assert shout.__doc__ == "Make a text loud."


def test_what_is_kept_has_two_bounds() -> None:
    kept: Kept[str, int] = Kept(3, 100)
    for number, key in enumerate(("a", "b", "c")):
        assert kept.keep(key, number, 30) == number
    assert [kept.find(key) for key in "abcd"] == [0, 1, 2, None]
    # By number, by length, and never what is too long by itself.
    assert kept.keep("d", 3, 1) == 3
    assert (len(kept), kept.find("a"), kept.find("d")) == (1, None, 3)
    assert kept.keep("e", 4, 100) == 4
    assert (len(kept), kept.find("d"), kept.find("e")) == (1, None, 4)
    assert kept.keep("f", 5, 101) == 5
    assert (len(kept), kept.find("e"), kept.find("f")) == (1, 4, None)


@pytest.mark.parametrize(
    "make",
    [
        tag_hash_of,
        parse_host,
        encode_topic,
        lambda text: queue(text).wire,
        lambda text: encode_destination(queue(text)),
        lambda text: filter_of(TAG, text),
    ],
)
def test_long_texts_do_not_stay_in_memory(make: Callable[[str], Any]) -> None:
    with memory_within(2 * MIB):
        for number in range(100):
            make(f"{number:060000}")


def test_what_is_told_of_long_texts_is_right() -> None:
    name = "n" * 60_000
    assert queue(name).wire == b"\x01\x64\x01\xea\x60" + name.encode()
    assert encode_destination(queue(name)) == b"\x08\x00\x12\xe0\xd4\x03" + name.encode()
    assert encode_topic(name) == name.encode()
    assert parse_host(name) == NOWHERE
    assert parse_host(f"[fe80::1%{name}]:5").port == 5
    assert filter_of(SQL, f"a = '{name[:40_000]}'") is filter_of(SQL, f"a = '{name[:40_000]}'")


def test_names_of_producers_are_few_or_short() -> None:
    producers = Producers()
    with memory_within(2 * NAMES_BYTES_MAX):
        for number in range(1_000):
            producers.note_number(b"%060000d" % number, 7)
    held = [number for number in range(1_000) if producers.holds(b"%060000d" % number, 7)]
    assert held == [*range(1_000 - NAMES_BYTES_MAX // 60_000, 1_000)]
    for number in range(20_000):
        producers.note_number(b"%d" % number, 7)
    assert len(producers) == 10_000
    for number in range(60):
        producers.note_number(b"%060000d" % number, 7)
    # What was forgotten weighs no more.
    assert len(producers) == 10_000
