"""The records of one directory as plain values, in order: what histories are made of."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple

import pyarrow as pa

from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.partitions import plan_parts
from lockkeeper_analytics.reading.rows import read_part

COLLECTOR_THRESHOLDS = (100_000, 50, 100)
Place = tuple[str | None, str | None]
"""A destination: its kind, such as `queue`, and its name."""


class Entry(NamedTuple):
    """One record; times are in microseconds since the epoch, None where they are not known.

    Fields that were not asked for are None. `facts` are what else was asked for of messages.
    """

    file_id: int
    offset: int
    record_bytes: int
    kind: str
    destination_kind: str | None
    destination: str | None
    message_id: str | None
    subscription: str | None
    transaction: str | None
    written_after: int | None
    written_before: int | None
    stored_at: int | None
    message_bytes: int | None
    copy_of: str | None
    original_destination: str | None
    dead_letter_cause: str | None
    ack_type: str | None
    consumer_id: str | None
    ack_cause: str | None
    selector: str | None
    no_local: bool | None
    retroactive: bool | None
    facts: tuple[Any, ...]

    @property
    def place(self) -> Place:
        """The destination that the record is about."""
        return self.destination_kind, self.destination


MESSAGE_FIELDS = ("copy_of", "original_destination", "dead_letter_cause")
ACK_FIELDS = ("ack_type", "consumer_id", "ack_cause")
SUBSCRIPTION_FIELDS = ("selector", "no_local")
PLAIN_FIELDS = tuple(
    name
    for name in Entry._fields[:-1]
    if name not in (*MESSAGE_FIELDS, *ACK_FIELDS, *SUBSCRIPTION_FIELDS)
)


def read_entries(
    directory: str, options: ReadOptions, wanted: Sequence[str] = (), facts: Sequence[str] = ()
) -> Iterator[Entry]:
    """Yield the records of *directory* up to the option `until`, all destinations together.

    *wanted* names further fields, *facts* further columns of records. Raises what `read_part`
    and `plan_parts` raise.
    """
    named = [*PLAIN_FIELDS, *(field for field in wanted if field not in PLAIN_FIELDS)]
    columns = tuple(dict.fromkeys([*named, *facts]))
    asked = replace(options, columns=columns, destinations=(), since=0)
    with _few_collections():
        for part in plan_parts((directory,)):
            for batch in read_part(part, asked):
                told = {name: _values(batch.column(name)) for name in columns}
                several = zip(*(told[name] for name in facts), strict=True) if facts else repeat(())
                values = (
                    told[name] if name in named else repeat(None) for name in Entry._fields[:-1]
                )
                # What was not asked for repeats for ever, so the rows end with the shortest.
                yield from map(Entry, *values, several)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Have the garbage collector look rarely: histories hold many small values and no cycles."""
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return list(column.to_pylist())
