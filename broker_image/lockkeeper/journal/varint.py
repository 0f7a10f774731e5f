"""Protobuf varints: seven bits a byte, low bits first, negative numbers as 64 bits."""

from typing import Final

from lockkeeper.journal.errors import BadRecordError

VARINT_BYTES_MAX: Final = 10
_MASK: Final = (1 << 64) - 1
_SIGN: Final = 1 << 63


def encode_varint(value: int) -> bytes:
    """Return *value* (-2**63 to 2**64 - 1) as a varint; a negative one takes ten bytes."""
    value &= _MASK
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return the unsigned value of the varint at *position* and the position after it.

    Raises BadRecordError when it reaches *end* or is longer than ten bytes.
    """
    value = shift = 0
    for at in range(position, min(end, position + VARINT_BYTES_MAX)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, at + 1
        shift += 7
    raise BadRecordError("a varint does not end", offset=position)


def signed(value: int) -> int:
    """Return the 64-bit two's complement meaning of an unsigned varint *value*."""
    return value - (1 << 64) if value & _SIGN else value


SMALL_VARINTS = [encode_varint(value) for value in range(4096)]
"""The varints that nearly every record needs, made once."""


def varint(value: int) -> bytes:
    """Return *value* as a varint, from the table of small ones where it can."""
    if 0 <= value < 4096:
        return SMALL_VARINTS[value]
    return encode_varint(value)
