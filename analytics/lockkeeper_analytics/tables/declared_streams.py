"""`declared_streams`: streams as they were declared, each time; the pieces are parts of files."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lockkeeper.message.segments import PARTITIONS_MAX, STREAM_PREFIX
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.partitions import Part
from lockkeeper_analytics.reading.schema import FLAG, INT, LONG, TEXT, TEXTS, TIME
from lockkeeper_analytics.tables import records
from lockkeeper_analytics.tables.lines import number
from lockkeeper_analytics.tables.shape import Getter, Table, fields
from lockkeeper_analytics.tables.stream_states import State, is_asked_for, read_states


def _stream(state: State) -> str:
    return state.name.removeprefix(STREAM_PREFIX)


def _number(key: str) -> Getter:
    return lambda state: number(state.value.get(key))


def _partitions(state: State) -> int | None:
    count = number(state.value.get("partitions"))
    return count if count is not None and 1 <= count <= PARTITIONS_MAX else None


def _names(key: str) -> Getter:
    def get(state: State) -> list[str]:
        found = state.value.get(key)
        return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []

    return get


_FIELDS = fields(
    ("directory", TEXT, lambda state: state.directory, "the journal directory, as it was named"),
    ("stream", TEXT, _stream, "name of the stream"),
    ("partitions", INT, _partitions, "how many partitions it has from then on"),
    ("ordered", FLAG, lambda state: state.value.get("ordered") is True, "it is consumed in order"),
    ("retention_ms", LONG, _number("timeMs"), "its messages end at that age; 0: no limit"),
    ("retention_bytes", LONG, _number("bytes"), "so many bytes a partition keeps; 0: no limit"),
    ("retention_messages", LONG, _number("messages"), "so many messages; 0: no limit"),
    ("from_topics", TEXTS, _names("fromTopics"), "topics that it takes in"),
    ("to_queues", TEXTS, _names("toQueues"), "queues that it feeds"),
    ("written_at", TIME, lambda state: state.written_at, "when the broker wrote that"),
    ("file", TEXT, lambda state: state.file, "name of the data file, such as `db-3.log`"),
    ("file_id", INT, lambda state: state.file_id, "number of the data file"),
    (
        "location",
        LONG,
        lambda state: state.location,
        "where the record begins in its file, in bytes",
    ),
)


def read(part: Part, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the declarations in *part*."""
    yield from told_by(read_states(part, options), options)


def told_by(states: Iterable[State], options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the declarations in *states*."""
    asked = (
        state
        for state in states
        if state.name.startswith(STREAM_PREFIX) and is_asked_for(_stream(state), options)
    )
    yield from _FIELDS.batches(asked, options.columns)


TABLE = Table(
    "declared_streams",
    "streams as they were declared, each time",
    _FIELDS.columns,
    tuple(_FIELDS.columns),
    records.plan_files,
    read,
    lost=lambda lost: {"location": lost.start},
    is_pinnable=True,
)
