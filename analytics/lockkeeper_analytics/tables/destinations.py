"""`destinations`: one row for each destination that records of the journal name."""

from collections.abc import Iterator

import pyarrow as pa

from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.schema import FLAG, LONG, TEXT, TIME
from lockkeeper_analytics.tables import lives
from lockkeeper_analytics.tables.entries import ACK_FIELDS, MESSAGE_FIELDS
from lockkeeper_analytics.tables.filters import batches_of, of, plan_directories, whole
from lockkeeper_analytics.tables.lives import DestinationLife, Message
from lockkeeper_analytics.tables.shape import Getter, Table, fields


def _there(state: str) -> Getter:
    return lambda life: [each for each in life.live.values() if each.state == state]


_pending = _there(lives.PENDING)


def _oldest(life: DestinationLife) -> int | None:
    pending: list[Message] = _pending(life)
    return pending[0].entry.stored_at if pending else None


def _ended(outcome: str) -> Getter:
    return of(lambda life: life.ends.get(outcome, 0))


_FIELDS = fields(
    ("directory", TEXT, lambda row: row.directory, "the journal directory, as it was named"),
    ("destination_kind", TEXT, of(lambda d: d.place[0]), "`queue`, `topic`, …"),
    ("destination", TEXT, of(lambda d: d.place[1]), "name of the destination"),
    ("is_removed", FLAG, of(lambda d: d.is_removed), "it was removed, and nothing came since"),
    ("stored", LONG, of(lambda d: d.stored), "messages that came, transactions by their commit"),
    ("stored_bytes", LONG, of(lambda d: d.stored_bytes), "their size"),
    ("first_stored_at", TIME, of(lambda d: d.first), "when the first one came"),
    ("last_stored_at", TIME, of(lambda d: d.last), "when the last one came"),
    ("acknowledged", LONG, _ended(lives.ACKNOWLEDGED), "messages that ended so; see `messages`"),
    ("dead_lettered", LONG, _ended(lives.DEAD_LETTERED), "messages that ended so"),
    ("expired", LONG, _ended(lives.EXPIRED), "messages that ended so"),
    ("dropped", LONG, _ended(lives.DROPPED), "messages that ended so"),
    ("unmatched", LONG, _ended(lives.UNMATCHED), "messages that ended so"),
    ("unwanted", LONG, _ended(lives.UNWANTED), "messages that ended so"),
    ("duplicate", LONG, _ended(lives.DUPLICATE), "messages that came again"),
    ("pending", LONG, of(lambda d: len(_pending(d))), "messages that are there"),
    (
        "pending_bytes",
        LONG,
        of(lambda d: sum(each.located.message_bytes or 0 for each in _pending(d))),
        "their size",
    ),
    ("oldest_pending_at", TIME, of(_oldest), "when the first of them was stored"),
    (
        "in_doubt",
        LONG,
        of(lambda d: len(_there(lives.IN_DOUBT)(d))),
        "messages that a prepared transaction consumes",
    ),
    ("subscriptions", LONG, of(lambda d: len(d.subscriptions)), "durable subscriptions now"),
)


def read(directory: str, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the destinations of *directory*, in the order of their first record."""
    history, row_filter = whole(directory, options, (*MESSAGE_FIELDS, *ACK_FIELDS))
    named = (life for life in history.destinations.values() if row_filter.keeps(life.place))
    yield from batches_of(directory, named, _FIELDS, options)


TABLE = Table(
    "destinations",
    "one row for each destination",
    _FIELDS.columns,
    tuple(_FIELDS.columns),
    plan_directories,
    read,
)
