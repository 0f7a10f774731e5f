"""`acks`: one row for each acknowledgement that took effect, in the order of the journal.

One in a transaction counts where its commit is; one without a commit is not there.
"""

from collections.abc import Iterator

import pyarrow as pa

from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.schema import FLAG, INT, LONG, TEXT, TIME
from lockkeeper_analytics.tables.entries import ACK_FIELDS, MESSAGE_FIELDS, read_entries
from lockkeeper_analytics.tables.filters import (
    RowFilter,
    batches_of,
    milliseconds_between,
    of,
    plan_directories,
)
from lockkeeper_analytics.tables.history import History
from lockkeeper_analytics.tables.lives import End, Message
from lockkeeper_analytics.tables.shape import Table, fields

_Ack = tuple[Message | None, End]


def _stored_at(ack: _Ack) -> int | None:
    return ack[0].entry.stored_at if ack[0] is not None else None


def _is_exact(ack: _Ack) -> bool:
    return ack[1].at.earliest is not None and ack[1].at.earliest == ack[1].at.latest


_FIELDS = fields(
    ("directory", TEXT, lambda row: row.directory, "the journal directory, as it was named"),
    ("destination_kind", TEXT, of(lambda a: a[1].entry.destination_kind), "`queue`, `topic`, …"),
    ("destination", TEXT, of(lambda a: a[1].entry.destination), "name of the destination"),
    ("message_id", TEXT, of(lambda a: a[1].entry.message_id), "JMSMessageID"),
    (
        "subscription",
        TEXT,
        of(lambda a: a[1].entry.subscription),
        "the durable subscription that acknowledged, `clientId:name`",
    ),
    (
        "outcome",
        TEXT,
        of(lambda a: a[1].outcome),
        "`acknowledged`, `unmatched`, `dead_lettered` or `expired`",
    ),
    ("acked_at_earliest", TIME, of(lambda a: a[1].at.earliest), "at this time or later"),
    ("acked_at_latest", TIME, of(lambda a: a[1].at.latest), "… and at this time or earlier"),
    ("is_exact", FLAG, of(_is_exact), "the two are one: a clock line tells the time"),
    ("stored_at", TIME, of(_stored_at), "when the broker got the message; null: its file is gone"),
    (
        "latency_at_least_ms",
        LONG,
        of(lambda a: milliseconds_between(_stored_at(a), a[1].at.earliest)),
        "from `stored_at` to `acked_at_earliest`",
    ),
    (
        "latency_at_most_ms",
        LONG,
        of(lambda a: milliseconds_between(_stored_at(a), a[1].at.latest)),
        "from `stored_at` to `acked_at_latest`",
    ),
    (
        "ack_type",
        TEXT,
        of(lambda a: a[1].entry.ack_type),
        "`standard`, `poison`, … where it is said",
    ),
    ("consumer_id", TEXT, of(lambda a: a[1].entry.consumer_id), "who did, where it is said"),
    ("cause", TEXT, of(lambda a: a[1].cause), "why the message died"),
    ("transaction", TEXT, of(lambda a: a[1].entry.transaction), "the transaction it was done in"),
    ("file_id", INT, of(lambda a: a[1].entry.file_id), "number of the data file that says so"),
    ("offset", LONG, of(lambda a: a[1].entry.offset), "where its record begins there, in bytes"),
    (
        "message_file_id",
        INT,
        of(lambda a: a[0] and a[0].located.file_id),
        "number of the data file that held the message",
    ),
)


def read(directory: str, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the acknowledgements of *directory*; memory holds the messages that are live."""
    yield from batches_of(directory, _acks(directory, options), _FIELDS, options)


def _acks(directory: str, options: ReadOptions) -> Iterator[_Ack]:
    history, row_filter = History("acks"), RowFilter(options)
    wanted = (*MESSAGE_FIELDS, *ACK_FIELDS)
    for _ in history.replay(read_entries(directory, options, wanted)):
        while history.acks:
            ack = history.acks.popleft()
            if row_filter.keeps(ack[1].entry.place, ack[1].at.latest):
                yield ack


TABLE = Table(
    "acks",
    "one row for each acknowledgement that took effect",
    _FIELDS.columns,
    tuple(_FIELDS.columns),
    plan_directories,
    read,
)
