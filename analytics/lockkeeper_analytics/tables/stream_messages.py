"""`stream_messages`: one row for each message that a stream got; the pieces are parts of files.

It is an add record of a segment's queue: whether retention has ended it since is not told here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from lockkeeper.journal.files import data_file_name
from lockkeeper.message.segments import lane_of, parse_key
from lockkeeper_analytics.reading.arrays import microseconds
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.beginnings import last_file_until
from lockkeeper_analytics.reading.partitions import Part
from lockkeeper_analytics.reading.rows import read_part
from lockkeeper_analytics.reading.schema import (
    BODY_COLUMNS,
    BYTES,
    COLUMNS,
    FLAG,
    INT,
    LONG,
    MAP,
    TEXT,
    TEXTS,
    TIME,
)
from lockkeeper_analytics.reading.stream_rows import (
    BORN_HOST,
    HIDDEN,
    KEYS,
    SYSTEM_FLAG,
    TAGS,
    UNIQUE_KEY,
    flag_of,
    inflated,
    is_compressed,
    segment_of,
    segments_of,
)
from lockkeeper_analytics.tables import records
from lockkeeper_analytics.tables.shape import Table, Type, fields

_PLACE = ("destination", "message_id")
_OWN = ("offset", "stored_at")
"""Columns that the key of a message tells, and no column of the same name in `records`."""
_READ: dict[str, tuple[str, ...]] = {
    "born_at": ("sent_at",),
    **dict.fromkeys(("tags", "keys", "unique_id", "born_host", "flag"), ("properties",)),
    "compressed": ("compressed", "properties"),
    "reconsumed": ("redeliveries",),
    "location": ("offset",),
    **dict.fromkeys(BODY_COLUMNS, ("properties", *BODY_COLUMNS)),
}
"""The columns of `records` that columns are told from, but for those of the same name."""


class _Message(NamedTuple):
    """One record: its place by stream, partition and offset, when it came, and `told` columns.

    `stored_ms` is in ms since the epoch.
    """

    stream: str
    partition: int
    offset: int
    stored_ms: int
    told: Mapping[str, Any]
    body_bytes_max: int

    @property
    def properties(self) -> dict[str, str | None]:
        """All properties that the record has."""
        return dict(self.told["properties"] or ())

    @property
    def content(self) -> bytes | None:
        """The body as readers of the stream see it, inflated."""
        content, text = self.told["content"], self.told["body"]
        octets = (
            text.encode("utf-8", "replace") if content is None and text is not None else content
        )
        if octets is None:
            return None
        return inflated(octets, self.properties.get(SYSTEM_FLAG) or "", self.body_bytes_max)

    @property
    def body(self) -> str | None:
        """The body as a text, where it is UTF-8."""
        content = self.content
        try:
            return None if content is None else content.decode()
        except UnicodeDecodeError:
            return None


def _same(name: str) -> Callable[[_Message], Any]:
    return lambda row: row.told[name]


def _kept(name: str) -> tuple[str, Type, Callable[[_Message], Any], str]:
    """Return a column that is that of the record."""
    column = COLUMNS[name]
    return name, (column.ddl, column.arrow), _same(name), column.meaning


def _property(name: str) -> Callable[[_Message], str | None]:
    return lambda row: row.properties.get(name)


def _stored_at(row: _Message) -> int:
    return microseconds(row.stored_ms)


def _is_compressed(row: _Message) -> bool:
    return row.told["compressed"] or is_compressed(row.properties.get(SYSTEM_FLAG) or "")


def _seen(row: _Message) -> list[tuple[str, str | None]]:
    return [(name, value) for name, value in row.properties.items() if name not in HIDDEN]


_FIELDS = fields(
    ("directory", TEXT, _same("directory"), "the journal directory, as it was named"),
    ("stream", TEXT, lambda row: row.stream, "name of the stream"),
    ("partition", INT, lambda row: row.partition, "number of its partition, from 0"),
    ("offset", LONG, lambda row: row.offset, "place of the message in its partition, from 0"),
    ("stored_at", TIME, _stored_at, "when the stream got the message"),
    ("born_at", TIME, _same("sent_at"), "when it was born, by the client's clock"),
    ("tags", TEXT, _property(TAGS), "its tag (`TAGS`)"),
    (
        "keys",
        TEXTS,
        lambda row: (row.properties.get(KEYS) or "").split(),
        "keys by which it can be found (`KEYS`)",
    ),
    ("unique_id", TEXT, _property(UNIQUE_KEY), "its unique id (`UNIQ_KEY`); JMSMessageID"),
    _kept("message_bytes"),
    _kept("message_type"),
    ("reconsumed", INT, _same("redeliveries"), "how often a group had given it back"),
    ("born_host", TEXT, _property(BORN_HOST), "who sent it, such as `10.0.0.7:40112`"),
    ("flag", INT, lambda row: flag_of(row.properties), "the application's flag"),
    ("compressed", FLAG, _is_compressed, "the body is stored compressed"),
    _kept("transaction"),
    ("properties", MAP, _seen, "its properties as readers see them, values as text"),
    _kept("written_after"),
    _kept("written_before"),
    _kept("file"),
    _kept("file_id"),
    ("location", LONG, _same("offset"), "where the record begins in its file, in bytes"),
    _kept("record_bytes"),
    ("body", TEXT, lambda row: row.body, "the body as a text, where it is UTF-8"),
    (
        "content",
        BYTES,
        lambda row: row.content,
        "the body as readers see it; inflated, where zlib compressed it",
    ),
)


def read(part: Part, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the messages of streams in *part*."""
    asked = replace(
        options,
        columns=_columns_behind(options.columns),
        kinds=frozenset({"add"}),
        destinations=segments_of(options.destinations, options.partitions),
    )
    for batch in read_part(part, asked):
        yield from _FIELDS.batches(_messages(batch, options), options.columns)


def _columns_behind(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of `records` that *columns* are told from."""
    own = (name for name in columns if name in COLUMNS and name not in (*_READ, *_OWN))
    told = (each for name in columns for each in _READ.get(name, ()))
    return tuple(dict.fromkeys((*_PLACE, *own, *told)))


def _messages(batch: pa.RecordBatch, options: ReadOptions) -> Iterator[_Message]:
    names = batch.schema.names
    for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        told = dict(zip(names, values, strict=True))
        segment = segment_of(told["destination"])
        if segment is None:
            continue
        key = parse_key((told["message_id"] or "").encode(), lane_of(*segment[:2]))
        if key is not None:
            offset, _, stored_ms = key
            yield _Message(*segment[:2], offset, stored_ms, told, options.body_bytes_max)


TABLE = Table(
    "stream_messages",
    "one row for each message that a stream got",
    _FIELDS.columns,
    tuple(name for name in _FIELDS.columns if name not in BODY_COLUMNS),
    records.plan,
    read,
    last_file=last_file_until,
    lost=lambda lost: {
        "file": data_file_name(lost.file_id),
        "offset": None,
        "location": lost.start,
    },
    is_pinnable=True,
)
