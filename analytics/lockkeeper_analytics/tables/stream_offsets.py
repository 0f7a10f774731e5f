"""`stream_offsets`: how far groups are, each time that a broker wrote it; the pieces are parts."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from lockkeeper.message.segments import GROUP_PREFIX
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.partitions import Part
from lockkeeper_analytics.reading.schema import INT, LONG, TEXT, TIME
from lockkeeper_analytics.tables import records
from lockkeeper_analytics.tables.lines import number, text
from lockkeeper_analytics.tables.shape import Table, fields
from lockkeeper_analytics.tables.stream_states import State, is_asked_for, read_states

_DIGITS_MAX = 9


class _Row(NamedTuple):
    """A partition in one text; without one the group has none."""

    state: State
    stream: str | None = None
    partition: int | None = None
    offset: int | None = None
    owner: str | None = None

    @property
    def group(self) -> str:
        """The name of the group."""
        return self.state.name.removeprefix(GROUP_PREFIX)


_FIELDS = fields(
    ("directory", TEXT, lambda row: row.state.directory, "the journal directory, as it was named"),
    ("consumer_group", TEXT, lambda row: row.group, "name of the consumer group"),
    ("stream", TEXT, lambda row: row.stream, "name of the stream; null: it has no offset of any"),
    ("partition", INT, lambda row: row.partition, "number of its partition"),
    (
        "offset",
        LONG,
        lambda row: row.offset,
        "what the group consumes next; null: it holds a lock alone",
    ),
    ("locked_by", TEXT, lambda row: row.owner, "client id of the member that holds the partition"),
    ("written_at", TIME, lambda row: row.state.written_at, "when the broker wrote that"),
    (
        "transaction",
        TEXT,
        lambda row: row.state.transaction,
        "`TX:…` of the batch with what the group has consumed, of a queue that a stream feeds",
    ),
    ("file", TEXT, lambda row: row.state.file, "name of the data file, such as `db-3.log`"),
    ("file_id", INT, lambda row: row.state.file_id, "number of the data file"),
    (
        "location",
        LONG,
        lambda row: row.state.location,
        "where the record begins in its file, in bytes",
    ),
)


def read(part: Part, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the offsets in *part*."""
    yield from told_by(read_states(part, options), options)


def told_by(states: Iterable[State], options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the offsets in *states*."""
    yield from _FIELDS.batches(_rows(states, options), options.columns)


def _rows(states: Iterable[State], options: ReadOptions) -> Iterator[_Row]:
    for state in states:
        if not state.name.startswith(GROUP_PREFIX):
            continue
        offsets, owners = (_places(state.value.get(key)) for key in ("offsets", "locks"))
        places = sorted(offsets.keys() | owners.keys())
        rows = [
            _Row(state, *place, number(offsets.get(place)), text(owners.get(place)))
            for place in places
        ] or [_Row(state)]
        yield from (row for row in rows if _is_wanted(row, options))


def _is_wanted(row: _Row, options: ReadOptions) -> bool:
    is_there = not options.partitions or row.partition in options.partitions
    return is_there and is_asked_for(row.stream, options)


def _places(kept: object) -> dict[tuple[str, int], object]:
    """Return the values of a text by stream and partition."""
    if not isinstance(kept, dict):
        return {}
    return {
        (stream, int(each)): value
        for stream, several in kept.items()
        if isinstance(several, dict)
        for each, value in several.items()
        if each.isascii() and each.isdigit() and len(each) <= _DIGITS_MAX
    }


TABLE = Table(
    "stream_offsets",
    "how far consumer groups are in each partition, each time that it was written",
    _FIELDS.columns,
    tuple(_FIELDS.columns),
    records.plan_files,
    read,
    lost=lambda lost: {"offset": None, "location": lost.start},
    is_pinnable=True,
)
