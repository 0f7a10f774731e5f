"""Inputs made from others: every one follows from its corpus and the state of its `Random`."""

from collections.abc import Callable, Sequence
from random import Random

BYTES_MAX = 64 << 10
"""What grows beyond this is cut: longer inputs cost time and find nothing more."""
EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
WIDTHS = (1, 2, 4, 8)

Change = Callable[[Random, bytearray, bytes], None]
Words = Sequence[bytes]


def mutated(chance: Random, corpus: Sequence[bytes], words: Words = (), changes: int = 4) -> bytes:
    """Return one of *corpus* with one to *changes* changes; *words* are what may stand in it."""
    data = bytearray(chance.choice(corpus))
    for _ in range(chance.randint(1, changes)):
        if words and chance.random() < 0.3:
            _put_word(chance, data, chance.choice(words))
        else:
            chance.choice(_CHANGES)(chance, data, chance.choice(corpus))
    return bytes(data[:BYTES_MAX])


def noise(chance: Random, length: int) -> bytes:
    """Return *length* bytes that mean nothing."""
    return chance.randbytes(length)


def _place(chance: Random, data: bytes | bytearray) -> int:
    # What is read first decides most, so it is hit more often.
    return int(len(data) * chance.random() ** 2)


def _put_word(chance: Random, data: bytearray, word: bytes) -> None:
    at = _place(chance, data)
    data[at : at + (len(word) if chance.random() < 0.5 else 0)] = word


def _flip(chance: Random, data: bytearray, _: bytes) -> None:
    if data:
        data[_place(chance, data)] ^= 1 << chance.randrange(8)


def _overwrite(chance: Random, data: bytearray, _: bytes) -> None:
    if data:
        data[_place(chance, data)] = chance.randrange(256)


def _edge(chance: Random, data: bytearray, _: bytes) -> None:
    width = chance.choice(WIDTHS)
    value = chance.choice(EDGES) & ((1 << 8 * width) - 1)
    at = _place(chance, data)
    data[at : at + width] = value.to_bytes(width, chance.choice(("big", "little")))


def _count(chance: Random, data: bytearray, _: bytes) -> None:
    """Make a number a little larger or smaller."""
    width = chance.choice(WIDTHS)
    at = _place(chance, data)
    value = int.from_bytes(data[at : at + width], "big") + chance.choice((-2, -1, 1, 2, 256))
    data[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "big")


def _delete(chance: Random, data: bytearray, _: bytes) -> None:
    at = _place(chance, data)
    del data[at : at + chance.randint(1, 1 + len(data) // 4)]


def _cut(chance: Random, data: bytearray, _: bytes) -> None:
    del data[chance.randint(0, len(data)) :]


def _repeat(chance: Random, data: bytearray, _: bytes) -> None:
    at = _place(chance, data)
    piece = data[at : at + chance.randint(1, 64)]
    data[at:at] = piece * chance.choice((1, 1, 2, 8, 64))


def _insert(chance: Random, data: bytearray, _: bytes) -> None:
    at = _place(chance, data)
    data[at:at] = noise(chance, chance.randint(1, 8))


def _splice(chance: Random, data: bytearray, other: bytes) -> None:
    """Put a piece of another input over, or between, what is there."""
    start = _place(chance, other)
    piece = other[start : start + chance.randint(1, 1 + len(other) // 2)]
    at = _place(chance, data)
    data[at : at + (len(piece) if chance.random() < 0.5 else 0)] = piece


_CHANGES: tuple[Change, ...] = (
    _flip, _flip, _overwrite, _overwrite, _edge, _edge, _count, _count,
    _delete, _cut, _repeat, _insert, _splice,
)  # fmt: skip
