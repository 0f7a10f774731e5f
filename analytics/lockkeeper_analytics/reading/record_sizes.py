"""Places and sizes of the records of a chunk: each tells its size, so that one leads to the next.

Many batches are walked side by side, one record of each at a time, by numpy; a few of them, or
what is left of long ones, record by record.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

_HEADER = Struct(">iB")
_SIZE_MIN = 7
_KIND_AT = 4
_MANY = 128
"""From so many batches on, a step of numpy for all takes less than one of Python for each."""


class Sizes(NamedTuple):
    """Offset and size in bytes of every record, and which batch it is in, counted from 0."""

    offsets: Numbers
    sizes: Numbers
    batches: Numbers


def sizes_of(data: bytes, batches: Sequence[tuple[int, int]]) -> Sizes | None:
    """Return the records in all *batches* of *data*, in order; None unless they fill them.

    *batches* are the first byte and the one behind the last, in ascending order.
    """
    octets = np.frombuffer(data, np.uint8)
    starts, ends = np.array(batches, np.int64).reshape(-1, 2).T
    found: list[Numbers] = []
    at, stop = starts, ends
    while len(at) >= _MANY:
        is_open = at < stop
        at, stop = at[is_open], stop[is_open]
        if (at + _SIZE_MIN > stop).any():
            return None
        size = _sizes_at(octets, at)
        if ((size < _SIZE_MIN) | (octets[at + _KIND_AT] != 1)).any():
            return None
        found.append(at)
        at = at + size
        if (at > stop).any():
            return None
    rest = _walked(data, at.tolist(), stop.tolist())
    if rest is None:
        return None
    offsets = np.concatenate([*found, np.array(rest, np.int64)])
    offsets.sort()
    batch = np.searchsorted(starts, offsets, side="right") - 1
    # A record ends where the next one begins, or its batch ends.
    behind = np.minimum(np.append(offsets[1:], len(data)), ends[batch])
    return Sizes(offsets, behind - offsets, batch)


def _sizes_at(octets: npt.NDArray[np.uint8], at: Numbers) -> Numbers:
    """Return the numbers of four bytes, the highest first, at the places *at*."""
    places = at[:, None] + np.arange(4)
    found: Numbers = octets[places].view(">i4").ravel().astype(np.int64)
    return found


def _walked(data: bytes, positions: Sequence[int], ends: Sequence[int]) -> list[int] | None:
    """Return the records between *positions* and *ends*, None unless they fill what is between."""
    offsets: list[int] = []
    unpack = _HEADER.unpack_from
    for position, end in zip(positions, ends, strict=True):
        while position + _SIZE_MIN <= end:
            size, kind = unpack(data, position)
            if kind != 1 or size < _SIZE_MIN:
                return None
            offsets.append(position)
            position += size
        if position != end:
            return None
    return offsets
