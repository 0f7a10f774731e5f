"""`transactions`: one row for each transaction, as they end; then those without an outcome."""

from collections.abc import Iterator

import pyarrow as pa

from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.schema import INT, LONG, TEXT, TIME
from lockkeeper_analytics.tables.entries import read_entries
from lockkeeper_analytics.tables.filters import RowFilter, batches_of, of, plan_directories
from lockkeeper_analytics.tables.history import History
from lockkeeper_analytics.tables.lives import Transaction
from lockkeeper_analytics.tables.shape import NUMBERS, TEXTS, Table, fields

XA_PREFIX = "XID:"
_Named = tuple[str, Transaction]


def _bytes(named: _Named) -> int:
    return sum(operation.message_bytes or 0 for operation in named[1].operations)


def _destinations(named: _Named) -> list[str]:
    places = (each.place for each in named[1].operations)
    return [f"{kind}://{name}" for kind, name in dict.fromkeys(places)]


_FIELDS = fields(
    ("directory", TEXT, lambda row: row.directory, "the journal directory, as it was named"),
    ("transaction", TEXT, of(lambda t: t[0]), "`TX:…` or `XID:…`"),
    (
        "kind",
        TEXT,
        of(lambda t: "xa" if t[0].startswith(XA_PREFIX) else "local"),
        "`local` or `xa`",
    ),
    (
        "outcome",
        TEXT,
        of(lambda t: t[1].outcome),
        "`committed`, `rolled_back`, `prepared` (in doubt) or `open` (goes at the next start)",
    ),
    ("adds", LONG, of(lambda t: t[1].count("add")), "messages sent in it"),
    ("removes", LONG, of(lambda t: t[1].count("remove")), "acknowledgements in it"),
    ("message_bytes", LONG, of(_bytes), "size of the messages sent in it"),
    ("destinations", TEXTS, of(_destinations), "such as `queue://ORDERS`"),
    ("began_earliest", TIME, of(lambda t: t[1].first.written_after), "first record: then or later"),
    ("began_latest", TIME, of(lambda t: t[1].first.written_before), "… and then or earlier"),
    (
        "prepared_earliest",
        TIME,
        of(lambda t: t[1].prepared and t[1].prepared.written_after),
        "it was prepared then or later; null: it was not",
    ),
    (
        "prepared_latest",
        TIME,
        of(lambda t: t[1].prepared and t[1].prepared.written_before),
        "… and then or earlier",
    ),
    (
        "ended_earliest",
        TIME,
        of(lambda t: t[1].settled and t[1].settled.written_after),
        "it ended then or later; null: it did not",
    ),
    (
        "ended_latest",
        TIME,
        of(lambda t: t[1].settled and t[1].settled.written_before),
        "… and then or earlier",
    ),
    ("file_id", INT, of(lambda t: t[1].first.file_id), "data file of its first record"),
    ("files", NUMBERS, of(lambda t: sorted(t[1].files)), "data files with what it did"),
)


def read(directory: str, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the transactions of *directory*; memory holds the open ones and live messages."""
    yield from batches_of(directory, _transactions(directory, options), _FIELDS, options)


def _transactions(directory: str, options: ReadOptions) -> Iterator[_Named]:
    history, row_filter = History("transactions"), RowFilter(options)
    for _ in history.replay(read_entries(directory, options)):
        while history.transactions:
            named = history.transactions.popleft()
            ended = named[1].settled and named[1].settled.written_before
            places = {each.place for each in named[1].operations}
            if any(row_filter.keeps(place, ended) for place in places):
                yield named


TABLE = Table(
    "transactions",
    "one row for each transaction",
    _FIELDS.columns,
    tuple(_FIELDS.columns),
    plan_directories,
    read,
)
