"""Python values of Arrow arrays: times outside the years 1 to 9999 are the nearest of these.

An answer may have such times even though columns have none: a query adds to them.
"""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from lockkeeper_analytics.reading.arrays import EARLIEST, LATEST

_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
_EPOCH = date(1970, 1, 1)
_DAYS_MIN, _DAYS_MAX = (date.min - _EPOCH).days, (date.max - _EPOCH).days


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the values of *column*."""
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        found = [_value(each) for each in column]
    return found


def _value(scalar: pa.Scalar) -> Any:
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_timestamp(kind):
        return _moment(scalar)
    if pa.types.is_date32(kind):
        return _EPOCH + timedelta(days=min(max(scalar.value, _DAYS_MIN), _DAYS_MAX))
    if pa.types.is_struct(kind):
        return {name: _value(each) for name, each in scalar.items()}
    if pa.types.is_map(kind):
        pairs = (each.values() for each in scalar.values)
        return [(_value(name), _value(value)) for name, value in pairs]
    if pa.types.is_list(kind):
        return [_value(each) for each in scalar.values]
    return scalar.as_py()


def _moment(scalar: pa.Scalar) -> datetime:
    microseconds = scalar.value * _NANOSECONDS[scalar.type.unit] // 1000
    epoch = datetime(1970, 1, 1, tzinfo=UTC if scalar.type.tz else None)
    return epoch + timedelta(microseconds=min(max(microseconds, EARLIEST), LATEST))
