"""Java's String.hashCode: s[0]·31^(n-1) + … + s[n-1] of a text's UTF-16 units, in 32 bits.

A unit at a time is slow in Python: 150 ms for a MiB, while nobody else has a turn. So the units of
a long text are laid out in rows, which are one number each with a lane of 64 bits for each unit:
all lanes are multiplied and added at once, and none overflows into the next.
"""

from collections.abc import Sequence
from struct import Struct, unpack
from typing import Final

_COLUMNS: Final = 128
_UNIT_BYTES: Final = 2
_LANE_BYTES: Final = 8
_ROW: Final = Struct(f">{_COLUMNS}Q")
_BITS: Final = (1 << 32) - 1
# The low half of each lane.
_LOW_HALVES: Final = int.from_bytes(_ROW.pack(*[_BITS] * _COLUMNS), "big")
_ROW_FACTOR: Final = pow(31, _COLUMNS, 1 << 32)
_LONG_BYTES: Final = 1 << 10


def java_hash(text: str) -> int:
    """Return the hash of a text, a number with a sign."""
    data = text.encode("utf-16-be", "surrogatepass")
    is_long = len(data) > _LONG_BYTES
    found = 0
    for value in _one_row(data) if is_long else unpack(f">{len(data) // _UNIT_BYTES}H", data):
        found = (found * 31 + value) & _BITS
    return found - (1 << 32) if found >> 31 else found


def _one_row(data: bytes) -> Sequence[int]:
    """Return a row of numbers that has the hash of all units."""
    # Zeros in front change nothing.
    units = bytes(-len(data) % (_UNIT_BYTES * _COLUMNS)) + data
    lanes = bytearray(_LANE_BYTES // _UNIT_BYTES * len(units))
    lanes[6::_LANE_BYTES], lanes[7::_LANE_BYTES] = units[0::2], units[1::2]
    row = 0
    for at in range(0, len(lanes), _ROW.size):
        added = int.from_bytes(lanes[at : at + _ROW.size], "big")
        row = (row * _ROW_FACTOR + added) & _LOW_HALVES
    return _ROW.unpack(row.to_bytes(_ROW.size, "big"))
