"""Columns that several reports need: keys of destinations and messages, cells of time."""

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

DESTINATION = ("directory", "destination_kind", "destination")
MESSAGE = (*DESTINATION, "message_id")
SUBSCRIPTION = (*DESTINATION, "subscription")
"""Where messages wait: for a queue itself `subscription` is null."""

CELLS_MAX = 300
CELL_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400)


def cell_seconds(moments: Sequence[datetime | None]) -> int:
    """Return how long a cell of time is, in seconds, so that few cells span all *moments*."""
    known = [moment for moment in moments if moment is not None]
    span = (max(known) - min(known)).total_seconds() if known else 0
    for seconds in CELL_SECONDS:
        if span / seconds <= CELLS_MAX:
            return seconds
    days = span / CELLS_MAX / CELL_SECONDS[-1]
    return (int(days) + 1) * CELL_SECONDS[-1]


def cell_of(moment: Column, seconds: int) -> Column:
    """Return when the cell of *moment* begins."""
    return F.timestamp_seconds(F.floor(F.unix_seconds(moment) / seconds) * seconds)


def kind_in(url: Column) -> Column:
    """Return the kind of the destination that *url* names: `queue` of `queue://ORDERS`."""
    return F.substring_index(url, "://", 1)


def name_in(url: Column) -> Column:
    """Return the name of the destination that *url* names: `ORDERS` of `queue://ORDERS`."""
    return F.regexp_replace(url, "^[a-z-]+://", "")


def dead_letters_of(effects: DataFrame) -> DataFrame:
    """Return the adds of dead letters, with `origin_kind` and `origin`: where they were meant for.

    Those from before any move that the journal tells of come from where they are.
    """
    origin = F.col("original_destination")
    return effects.where((F.col("kind") == "add") & F.col("dead_letter_cause").isNotNull()).select(
        "*",
        F.coalesce(kind_in(origin), F.col("destination_kind")).alias("origin_kind"),
        F.coalesce(name_in(origin), F.col("destination")).alias("origin"),
    )
