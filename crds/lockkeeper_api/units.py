"""Units of sizes and durations: text to numbers and back, without pydantic.

In Python a size is an int of bytes and a duration a timedelta.
"""

import re
from datetime import timedelta
from decimal import Decimal

KIBIBYTE = 1024
MEBIBYTE = 1024 * KIBIBYTE

_SIZE_UNITS = {
    "": 1,
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50,
}  # fmt: skip
_BINARY_UNITS = ("Pi", "Ti", "Gi", "Mi", "Ki")
_MICROSECONDS = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}

SIZE_PATTERN = r"^[0-9]+(\.[0-9]+)?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$"
DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(h|m|s|ms|us))+$"

_SIZE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?")
_DURATION_PART = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(h|ms|m|us|s)")


def parse_size(value: object) -> int:
    """Return the bytes that *value* says: `64Mi`, `1.5G`, or an integer of bytes.

    Raises ValueError for anything else, and for a fraction of a byte.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"expected a size such as 512Ki, 64Mi or 1Gi, found {value!r}")
    exact = Decimal(match[1]) * _SIZE_UNITS[match[2] or ""]
    if exact != exact.to_integral_value():
        raise ValueError(f"{value!r} is no whole number of bytes")
    return int(exact)


def format_size(size: int) -> str:
    """Return *size* bytes in the largest binary unit that needs no fraction."""
    for unit in _BINARY_UNITS:
        if size and size % _SIZE_UNITS[unit] == 0:
            return f"{size // _SIZE_UNITS[unit]}{unit}"
    return str(size)


def parse_duration(value: object) -> timedelta:
    """Return the time that *value* says: `500ms`, `30s`, `1h30m`; microseconds at the finest.

    Raises ValueError for anything else; a number without a unit is refused.
    """
    if isinstance(value, timedelta):
        return value
    parts = _DURATION_PART.findall(value) if isinstance(value, str) else []
    if not parts or "".join(number + unit for number, unit in parts) != value:
        raise ValueError(f"expected a duration such as 500ms, 30s or 5m, found {value!r}")
    exact = sum((Decimal(number) * _MICROSECONDS[unit] for number, unit in parts), Decimal())
    try:
        return timedelta(microseconds=int(exact))
    except OverflowError:
        raise ValueError(f"{value!r} is too long a duration") from None


def format_duration(duration: timedelta) -> str:
    """Return *duration* in its shortest form: `500ms`, `30s`, `1h30m`."""
    left = duration // timedelta(microseconds=1)
    if left == 0:
        return "0s"
    text = ""
    for unit, microseconds in _MICROSECONDS.items():
        count, left = divmod(left, microseconds)
        text += f"{count}{unit}" if count else ""
    return text
