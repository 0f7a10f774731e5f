"""Expressions of subscriptions as the core's filters."""

from typing import Final

from lockkeeper.broker.streams.errors import InvalidFilterError
from lockkeeper.broker.streams.filters import Filter, sql_filter, tags_filter
from lockkeeper.keeping import Kept

TAG, SQL = "TAG", "SQL92"
# A filter takes a hundred times its expression.
_filters: Final[Kept[tuple[str, str], Filter]] = Kept(1024, 128 << 10)


def filter_of(kind: str, expression: str) -> Filter:
    """Return the filter of an expression of a kind. Raises InvalidFilterError."""
    known = _filters.find((kind, expression))
    if known is not None:
        return known
    return _filters.keep((kind, expression), _made(kind, expression), len(expression))


def _made(kind: str, expression: str) -> Filter:
    if kind in (TAG, ""):
        return tags_filter(expression)
    if kind == SQL:
        return sql_filter(expression)
    raise InvalidFilterError(f"an expression of the type {kind[:40]}; there are TAG and SQL92")
