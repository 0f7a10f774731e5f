"""Rows of reports, by whichever engine: when they say the same."""

import re
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

Row = dict[str, Any]
PERCENTILE = re.compile(r"p\d+_")


def assert_same(rows: Iterable[Row], others: Iterable[Row]) -> None:
    """Check that two reports have the same rows, in any order."""
    found, expected = comparable(rows), comparable(others)
    assert len(found) == len(expected), (found, expected)
    for row, other in zip(found, expected, strict=True):
        wrong = [each for each in row if not is_same(each, row[each], other[each])]
        assert not wrong, {each: (row[each], other[each]) for each in wrong} | {"of": other}


def plain(value: Any) -> Any:
    """Return *value* as both say it: numbers as such, times in ms."""
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    return value


def comparable(rows: Iterable[Row]) -> list[Row]:
    """Return *rows* in an order that does not depend on percentiles and fractions."""
    plainly = [{name: plain(value) for name, value in row.items()} for row in rows]
    return sorted(plainly, key=lambda row: [str(each) for each in row.values() if is_exact(each)])


def is_exact(value: Any) -> bool:
    """Tell whether both engines say *value* to the last digit."""
    return not isinstance(value, float)


def is_same(name: str, value: Any, other: Any) -> bool:
    """Tell whether two values of column *name* say the same, percentiles nearly."""
    if value is None or other is None or isinstance(value, str | bool | list | dict):
        return value == other
    if PERCENTILE.match(name):
        return value == pytest.approx(other, rel=0.02, abs=1)
    return value == pytest.approx(other, rel=1e-6, abs=1e-6)
