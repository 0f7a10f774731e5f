"""Searches in long buffers a piece at a time, so that other threads have their turn between them.

One call over a whole data file would hold the interpreter for a fifth of a second.
"""

from collections.abc import Iterator
from typing import Final

PIECE_BYTES: Final = 1 << 17
_FIRST_PIECE_BYTES: Final = 1 << 6
_ZEROS: Final = bytes(PIECE_BYTES)


def occurrences(
    view: memoryview, wanted: bytes, start: int, piece_bytes: int = PIECE_BYTES
) -> Iterator[int]:
    """Yield where *wanted* stands from *start* on."""
    reach = piece_bytes + len(wanted) - 1
    for begin in range(start, len(view), piece_bytes):
        piece = bytes(view[begin : begin + reach])
        at = piece.find(wanted)
        while at >= 0:
            yield begin + at
            at = piece.find(wanted, at + 1)


def end_of_zeros(view: memoryview, start: int, piece_bytes: int = PIECE_BYTES) -> int:
    """Return where the zeros end that begin at *start*: there, if there are none."""
    size = min(_FIRST_PIECE_BYTES, piece_bytes)
    while start < len(view):
        piece = bytes(view[start : start + size])
        # To compare takes a hundredth of what it takes to look where they end.
        if piece != _ZEROS[: len(piece)]:
            return start + len(piece) - len(piece.lstrip(b"\0"))
        start += len(piece)
        # Few zeros are as quickly looked through as many are.
        size = min(2 * size, piece_bytes)
    return start
