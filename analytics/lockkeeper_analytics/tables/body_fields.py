"""`body_fields`: fields that bodies of messages have, without their values; the pieces are parts.

Of each part of a file the first `body_samples` bodies of each destination are looked at: a sample
over the whole journal.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from lockkeeper.message.segments import SEGMENT_PREFIX
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.partitions import Part
from lockkeeper_analytics.reading.rows import read_part
from lockkeeper_analytics.reading.schema import LONG, TEXT
from lockkeeper_analytics.reading.stream_rows import STREAM, segment_of, segments_of
from lockkeeper_analytics.shapes.json_shape import ROOT
from lockkeeper_analytics.shapes.shape import Shape, shape_of
from lockkeeper_analytics.tables import records
from lockkeeper_analytics.tables.shape import Table, fields

_READ = ("destination_kind", "destination", "message_type", "body", "content")
_ADDED = frozenset({"add"})


class _Found(NamedTuple):
    """A field of bodies of a destination, of one type, or (None) of any."""

    directory: str
    kind: str
    destination: str
    format: str
    field: str
    type: str | None


Row = tuple[_Found, int]

_FIELDS = fields(
    ("directory", TEXT, lambda row: row[0].directory, "the journal directory, as it was named"),
    ("destination_kind", TEXT, lambda row: row[0].kind, "`queue`, `topic`, `stream`, …"),
    ("destination", TEXT, lambda row: row[0].destination, "name of the destination or stream"),
    (
        "format",
        TEXT,
        lambda row: row[0].format,
        "`json`, `xml`, `avro`, `map`, `stream`, `java`, `text`, `binary`, …",
    ),
    (
        "field",
        TEXT,
        lambda row: row[0].field,
        "place in the body: a JSONPath or an XPath; `$`, the body itself",
    ),
    ("type", TEXT, lambda row: row[0].type, "its type in these bodies; null: of any type"),
    ("messages", LONG, lambda row: row[1], "sampled bodies that have it"),
)


def read(part: Part, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the fields of the bodies in *part*."""
    asked = replace(options, columns=_READ, kinds=_ADDED)
    if options.destinations:
        streams = segments_of(options.destinations, ())
        asked = replace(asked, destinations=(*options.destinations, *streams))
    rows = _rows(part.directory, read_part(part, asked), options)
    yield from _FIELDS.batches(rows, options.columns)


def _rows(directory: str, batches: Iterable[pa.RecordBatch], options: ReadOptions) -> Iterator[Row]:
    """Yield each field with how many of the sampled bodies have it."""
    seen: Counter[tuple[str, str]] = Counter()
    found: Counter[_Found] = Counter()
    for batch in batches:
        columns = (batch.column(name) for name in _READ)
        for kind, destination, message_type, text, octets in zip(*columns, strict=True):
            place = _place(kind.as_py(), destination.as_py())
            if place is None or seen[place] >= options.body_samples:
                continue
            shape = shape_of(message_type.as_py(), text.as_py(), octets.as_py(), options.body_masks)
            if shape is not None:
                seen[place] += 1
                found.update(_told(directory, place, shape))
    yield from sorted(found.items(), key=lambda row: [each or "" for each in row[0]])


def _place(kind: str, destination: str) -> tuple[str, str] | None:
    """Return whose a body is: a stream's, where the queue is one of its segments.

    None: of what streams keep of themselves.
    """
    if kind != "queue" or not destination.startswith(SEGMENT_PREFIX):
        return kind, destination
    segment = segment_of(destination)
    return None if segment is None else (STREAM, segment.stream)


def _told(directory: str, place: tuple[str, str], shape: Shape) -> Iterator[_Found]:
    # The body itself is a field of its own, which the XPaths of a document do not have.
    for field, types in {ROOT: {"document"}, **shape.fields}.items():
        for each in (None, *types):
            yield _Found(directory, *place, shape.format, field, each)


TABLE = Table(
    "body_fields",
    "fields that sampled bodies of messages have, and never their values",
    _FIELDS.columns,
    tuple(_FIELDS.columns),
    records.plan,
    read,
    is_pinnable=True,
)
