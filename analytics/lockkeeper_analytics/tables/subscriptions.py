"""`subscriptions`: one row for each durable subscription of the journal, ended ones too."""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.schema import FLAG, INT, LONG, TEXT, TIME
from lockkeeper_analytics.tables.entries import ACK_FIELDS, SUBSCRIPTION_FIELDS, Entry
from lockkeeper_analytics.tables.filters import RowFilter, batches_of, of, plan_directories, whole
from lockkeeper_analytics.tables.history import History
from lockkeeper_analytics.tables.lives import Subscription
from lockkeeper_analytics.tables.shape import Table, fields


class _Row(NamedTuple):
    """A subscription with what waits for it."""

    life: Subscription
    pending: int = 0
    pending_bytes: int = 0
    oldest: int | None = None

    @property
    def entry(self) -> Entry:
        """The create record."""
        return self.life.entry

    @property
    def ended(self) -> Entry | None:
        """The record that ended it."""
        return self.life.end


_FIELDS = fields(
    ("directory", TEXT, lambda row: row.directory, "the journal directory, as it was named"),
    ("subscription", TEXT, of(lambda s: s.entry.subscription), "`clientId:name`"),
    ("destination_kind", TEXT, of(lambda s: s.entry.destination_kind), "`topic`"),
    ("destination", TEXT, of(lambda s: s.entry.destination), "name of the topic"),
    (
        "state",
        TEXT,
        of(lambda s: s.life.state),
        "`live`, `deleted`, `replaced` (made again) or `dropped` (its topic went)",
    ),
    ("selector", TEXT, of(lambda s: s.entry.selector), "what it wants of the topic"),
    ("no_local", FLAG, of(lambda s: s.entry.no_local), "not what its own connection sends"),
    ("retroactive", FLAG, of(lambda s: s.entry.retroactive), "what was stored already, too"),
    ("created_earliest", TIME, of(lambda s: s.entry.written_after), "at this time or later"),
    ("created_latest", TIME, of(lambda s: s.entry.written_before), "… and at this or earlier"),
    (
        "ended_earliest",
        TIME,
        of(lambda s: s.ended and s.ended.written_after),
        "it ended at this time or later; null: it is live",
    ),
    (
        "ended_latest",
        TIME,
        of(lambda s: s.ended and s.ended.written_before),
        "… and at this time or earlier",
    ),
    ("pending", LONG, of(lambda s: s.pending), "messages that wait for it"),
    ("pending_bytes", LONG, of(lambda s: s.pending_bytes), "their size"),
    ("oldest_pending_at", TIME, of(lambda s: s.oldest), "when the first of them was stored"),
    ("acknowledged", LONG, of(lambda s: s.life.acknowledged), "messages it was done with"),
    ("unmatched", LONG, of(lambda s: s.life.unmatched), "messages its selector did not want"),
    (
        "last_ack_earliest",
        TIME,
        of(lambda s: s.life.last and s.life.last.at.earliest),
        "its last acknowledgement was at this time or later",
    ),
    (
        "last_ack_latest",
        TIME,
        of(lambda s: s.life.last and s.life.last.at.latest),
        "… and at this time or earlier",
    ),
    ("file_id", INT, of(lambda s: s.entry.file_id), "data file of its create record"),
)


def read(directory: str, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the subscriptions of *directory*: what ended first, then what is live."""
    history, row_filter = whole(directory, options, (*ACK_FIELDS, *SUBSCRIPTION_FIELDS))
    yield from batches_of(directory, _rows(history, row_filter), _FIELDS, options)


def _rows(history: History, row_filter: RowFilter) -> Iterator[_Row]:
    for life in history.ended_subscriptions:
        if row_filter.keeps(life.entry.place, life.end and life.end.written_before):
            yield _Row(life)
    for (_, key), life in history.subscriptions.items():
        if row_filter.keeps(life.entry.place):
            place = history.destinations[life.entry.place]
            waiting = [each for each in place.live.values() if key in each.waiting]
            size = sum(each.located.message_bytes or 0 for each in waiting)
            oldest = waiting[0].entry.stored_at if waiting else None
            yield _Row(life, len(waiting), size, oldest)


TABLE = Table(
    "subscriptions",
    "one row for each durable subscription and topic, ended ones too",
    _FIELDS.columns,
    tuple(_FIELDS.columns),
    plan_directories,
    read,
)
