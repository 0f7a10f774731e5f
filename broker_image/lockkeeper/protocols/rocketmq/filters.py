"""Expressions of subscriptions as the core's filters."""

from functools import lru_cache
from typing import Final

from lockkeeper.broker.streams.errors import InvalidFilterError
from lockkeeper.broker.streams.filters import Filter, sql_filter, tags_filter

TAG, SQL = "TAG", "SQL92"
_KEPT: Final = 1024


@lru_cache(maxsize=_KEPT)
def filter_of(kind: str, expression: str) -> Filter:
    """Return the filter of an expression of a kind. Raises InvalidFilterError."""
    if kind in (TAG, ""):
        return tags_filter(expression)
    if kind == SQL:
        return sql_filter(expression)
    raise InvalidFilterError(f"an expression of the type {kind[:40]}; there are TAG and SQL92")
