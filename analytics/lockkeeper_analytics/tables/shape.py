"""Shape of a table: its columns, how a row tells each, and how it is cut into pieces."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from lockkeeper_analytics.reading.arrays import array_of, repeated
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.schema import (
    BODY_COLUMNS,
    BROKER,
    COLUMNS,
    DIRECTORY,
    Column,
    Needs,
)
from lockkeeper_analytics.reading.storage import DataFile
from lockkeeper_analytics.streams.offsets import Lost

ROWS_PER_BATCH = 8192

NUMBERS = ("array<bigint>", pa.list_(pa.int64()))
COUNTS = ("map<string,bigint>", pa.map_(pa.string(), pa.int64()))

Type = tuple[str, pa.DataType]
Getter = Callable[[Any], Any]
Row = TypeVar("Row")


class Table(NamedTuple):
    """A table; `plan` cuts what is asked for into pieces, and `read` yields a piece's batches.

    A piece is small and can be pickled. Tables without `has_destinations` take no `destination`.
    Those with `lost` can be streamed: it tells the row that stands for what was removed unread.
    Those that are `is_pinnable` are read as a run saw their files.
    Where not every row tells its own time, `last_file` returns which of a journal's files is the
    last one with rows until a time.
    """

    name: str
    meaning: str
    columns: Mapping[str, Column]
    default_columns: tuple[str, ...]
    plan: Callable[[ReadOptions], Sequence[Any]]
    read: Callable[[Any, ReadOptions], Iterator[pa.RecordBatch]]
    has_destinations: bool = True
    last_file: Callable[[Sequence[DataFile], int], int] | None = None
    lost: Callable[[Lost], Mapping[str, Any]] | None = None
    is_pinnable: bool = False

    @property
    def has_bodies(self) -> bool:
        """Whether there are columns of bodies, for those who ask for them by name."""
        return all(name in self.columns for name in BODY_COLUMNS)

    def ddl(self, columns: Iterable[str]) -> str:
        """Return the Spark schema of *columns*."""
        return ", ".join(f"`{name}` {self.columns[name].ddl}" for name in columns)

    def arrow(self, columns: Iterable[str]) -> pa.Schema:
        """Return the Arrow schema of *columns*."""
        return pa.schema([(name, self.columns[name].arrow) for name in columns])

    def batches(self, options: ReadOptions) -> Iterator[pa.RecordBatch]:
        """Yield all rows that are asked for, piece by piece."""
        for piece in self.plan(options):
            yield from self.rows(piece, options)

    def rows(self, piece: Any, options: ReadOptions) -> Iterator[pa.RecordBatch]:
        """Yield the rows of *piece* that are asked for, with the broker they are of."""
        if BROKER not in options.columns:
            yield from self.read(piece, options)
            return
        others = tuple(name for name in options.columns if name != BROKER)
        asked = replace(options, columns=others or (DIRECTORY,))
        name = options.broker_of(piece if isinstance(piece, str) else piece.directory)
        for batch in self.read(piece, asked):
            told = {each: batch.column(each) for each in others}
            told[BROKER] = repeated(name, batch.num_rows, self.columns[BROKER].arrow)
            arrays = [told[each] for each in options.columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.arrow(options.columns))

    def lost_row(self, lost: Lost, options: ReadOptions) -> pa.RecordBatch:
        """Return the row that says what was removed before it was read."""
        assert self.lost is not None
        told = {
            DIRECTORY: lost.directory,
            BROKER: options.broker_of(lost.directory),
            "file_id": lost.file_id,
            "offset": lost.start,
            **self.lost(lost),
        }
        schema = self.arrow(options.columns)
        arrays = [array_of([told.get(field.name)], field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


class Fields(NamedTuple):
    """The columns of a table whose rows are Python objects, with what tells each of a row."""

    columns: dict[str, Column]
    getters: dict[str, Getter]

    def batches(self, rows: Iterable[Row], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield *rows* as Arrow batches of the columns *names*."""
        schema = pa.schema([(name, self.columns[name].arrow) for name in names])
        source = iter(rows)
        while some := list(islice(source, ROWS_PER_BATCH)):
            arrays = []
            for name in names:
                get = self.getters[name]
                arrays.append(array_of([get(row) for row in some], self.columns[name].arrow))
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def fields(*entries: tuple[str, Type, Getter, str]) -> Fields:
    """Return the fields listed as name, type, what tells it of a row, and meaning."""
    columns = {
        name: Column(name, *kind, Needs.RECORD, meaning) for name, kind, _, meaning in entries
    }
    # The broker is the same for all rows of a piece, so that no row tells it (see `rows`).
    columns = {DIRECTORY: columns[DIRECTORY], BROKER: COLUMNS[BROKER], **columns}
    return Fields(columns, {name: get for name, _, get, _ in entries})
