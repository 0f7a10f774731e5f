"""`messages`: one row for each message, with what became of it.

The rows come as messages end, then those that are there still, in the order of their queues.
"""

from collections.abc import Iterator

import pyarrow as pa

from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.schema import COLUMNS, INT, LONG, TEXT, TIME
from lockkeeper_analytics.tables.entries import ACK_FIELDS, MESSAGE_FIELDS, read_entries
from lockkeeper_analytics.tables.filters import (
    RowFilter,
    batches_of,
    milliseconds_between,
    of,
    plan_directories,
)
from lockkeeper_analytics.tables.history import History
from lockkeeper_analytics.tables.lives import Message
from lockkeeper_analytics.tables.shape import TEXTS, Fields, Getter, Table, Type, fields

FACTS = (
    "message_type",
    "producer_id",
    "persistent",
    "priority",
    "sent_at",
    "expires_at",
    "correlation_id",
    "group_id",
    "group_sequence",
    "reply_to",
    "jms_type",
    "redeliveries",
    "user_id",
    "compressed",
    "properties",
)
"""Columns of records that a message keeps as they are; only those asked for are decoded."""

_ABOUT = (
    "`acknowledged`; `dead_lettered`; `expired`; `dropped` (its destination or its last "
    "subscription went); `unmatched` (no subscription wanted it); `unwanted` (a topic without "
    "subscriptions); `duplicate` (it was there already); `rolled_back`; `open` (its transaction "
    "has no outcome); `in_doubt` (a prepared transaction adds or consumes it); `pending`"
)


def _ended_earliest(message: Message) -> int | None:
    return message.over.earliest if message.over else None


def _ended_latest(message: Message) -> int | None:
    return message.over.latest if message.over else None


def _fact(name: str) -> tuple[str, Type, Getter, str]:
    column = COLUMNS[name]
    return name, (column.ddl, column.arrow), lambda _row: None, column.meaning


_FIELDS = fields(
    ("directory", TEXT, lambda row: row.directory, "the journal directory, as it was named"),
    ("destination_kind", TEXT, of(lambda m: m.entry.destination_kind), "`queue`, `topic`, …"),
    ("destination", TEXT, of(lambda m: m.entry.destination), "name of the destination"),
    (
        "message_id",
        TEXT,
        of(lambda m: m.entry.message_id),
        "JMSMessageID, or the broker's own id of a copy: see `copy_of`",
    ),
    (
        "copy_of",
        TEXT,
        of(lambda m: m.entry.copy_of),
        "JMSMessageID of a message with an id of the broker's own",
    ),
    ("outcome", TEXT, of(lambda m: m.outcome), _ABOUT),
    ("stored_at", TIME, of(lambda m: m.entry.stored_at), "when the broker got it (brokerInTime)"),
    ("added_earliest", TIME, of(lambda m: m.at.earliest), "it took effect at this time or later"),
    ("added_latest", TIME, of(lambda m: m.at.latest), "… and at this time or earlier"),
    ("ended_earliest", TIME, of(_ended_earliest), "it ended at this time or later; null: not yet"),
    ("ended_latest", TIME, of(_ended_latest), "… and at this time or earlier"),
    (
        "life_at_least_ms",
        LONG,
        of(lambda m: milliseconds_between(m.entry.stored_at, _ended_earliest(m))),
        "from `stored_at` to `ended_earliest`",
    ),
    (
        "life_at_most_ms",
        LONG,
        of(lambda m: milliseconds_between(m.entry.stored_at, _ended_latest(m))),
        "from `stored_at` to `ended_latest`",
    ),
    (
        "consumer_id",
        TEXT,
        of(lambda m: m.last and m.last.entry.consumer_id),
        "who ended it last, where the journal says so",
    ),
    (
        "acknowledged_by",
        TEXTS,
        of(lambda m: [end.entry.subscription for end in m.ends if end.entry.subscription]),
        "the durable subscriptions that are done with it",
    ),
    ("waiting_for", TEXTS, of(lambda m: list(m.waiting)), "the durable ones that are not"),
    (
        "dead_letter_destination",
        TEXT,
        of(lambda m: m.dead_letter and m.dead_letter.dead_letter),
        "where it went when it died, such as `queue://ActiveMQ.DLQ`",
    ),
    ("end_cause", TEXT, of(lambda m: m.last and m.last.cause), "why it died"),
    (
        "original_destination",
        TEXT,
        of(lambda m: m.entry.original_destination),
        "where it was before it was moved here",
    ),
    (
        "dead_letter_cause",
        TEXT,
        of(lambda m: m.entry.dead_letter_cause),
        "why it is a dead letter here",
    ),
    ("transaction", TEXT, of(lambda m: m.entry.transaction), "the transaction that added it"),
    (
        "end_transaction",
        TEXT,
        of(lambda m: m.last and m.last.entry.transaction),
        "the transaction that ended it",
    ),
    ("message_bytes", INT, of(lambda m: m.located.message_bytes), "size of the message in bytes"),
    ("file_id", INT, of(lambda m: m.located.file_id), "number of the data file that holds it"),
    ("offset", LONG, of(lambda m: m.located.offset), "where its record begins there, in bytes"),
    ("record_bytes", INT, of(lambda m: m.located.record_bytes), "size of its record"),
    *map(_fact, FACTS),
)


def read(directory: str, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the messages of *directory*; memory holds those that are live."""
    facts = [name for name in options.columns if name in FACTS]
    getters = dict(_FIELDS.getters)
    for index, name in enumerate(facts):
        getters[name] = _getter(index)
    told = Fields(_FIELDS.columns, getters)
    yield from batches_of(directory, _messages(directory, options, facts), told, options)


def _getter(index: int) -> Getter:
    return of(lambda message: message.facts[index])


def _messages(directory: str, options: ReadOptions, facts: list[str]) -> Iterator[Message]:
    history, row_filter = History("messages"), RowFilter(options)
    wanted = (*MESSAGE_FIELDS, *ACK_FIELDS)
    for _ in history.replay(read_entries(directory, options, wanted, facts)):
        while history.messages:
            message = history.messages.popleft()
            if row_filter.keeps(message.entry.place, _ended_latest(message)):
                yield message


TABLE = Table(
    "messages",
    "one row for each message, with what became of it",
    _FIELDS.columns,
    tuple(_FIELDS.columns),
    plan_directories,
    read,
)
