"""Tables that are told from all records of a directory, by the SQL of the same name.

Whether a message counts depends on what stands before it: everything is told from the first record
on, and `destination` and `since` choose rows. `until` leaves out the records behind it, so that
everything is told as of then; but for what is told of files, as they are now.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import duckdb
import pyarrow as pa

from lockkeeper.journal.errors import JournalError
from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.narrowing import PRESENT, TABLES, Narrowing, kept
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.schema import BROKER, COLUMNS, DIRECTORY, Column, Needs
from lockkeeper_analytics.tables.base import BASE
from lockkeeper_analytics.tables.data_files import plan_directories
from lockkeeper_analytics.tables.database import (
    MAIN,
    Database,
    Made,
    Place,
    database,
    listed,
    quoted,
)
from lockkeeper_analytics.tables.shape import Table, Type
from lockkeeper_analytics.texts import views_behind

RECORDS = "records"
READER_MEMORY = "512MB"
"""Upper bound of DuckDB's memory where a directory is one piece of a table; then it spills."""


def derived_table(
    name: str, meaning: str, *columns: tuple[str, Type, str], has_destinations: bool = True
) -> Table:
    """Return the table *name* with *columns*: the name, the type and the meaning of each."""
    told = {each: Column(each, *kind, Needs.RECORD, said) for each, kind, said in columns}
    told = {DIRECTORY: told[DIRECTORY], BROKER: COLUMNS[BROKER], **told}

    def read(directory: str, options: ReadOptions) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([(each, told[each].arrow) for each in options.columns])
        for batch in _answer(name, directory, options):
            arrays = [
                array.cast(field.type) for array, field in zip(batch.columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return Table(name, meaning, told, tuple(told), plan_directories, read, has_destinations)


def columns_behind(name: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of `records` that *columns* of the table *name* are told from."""
    with _opened() as told:
        needed = told.needed(f"SELECT {listed(columns)} FROM {name}", _views(name))
    return needed.get(Place(MAIN, RECORDS), ())


def filled(table: Table, options: ReadOptions, failures: list[Exception]) -> pa.RecordBatchReader:
    """Return the rows of *table* for DuckDB, and let *failures* know what went wrong meanwhile.

    It would come back as an error of DuckDB's.
    """

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from table.batches(options)
        except (JournalError, AnalyticsError, OSError) as error:
            failures.append(error)
            raise

    return pa.RecordBatchReader.from_batches(table.arrow(options.columns), batches())


def _answer(name: str, directory: str, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the table *name* for *directory*."""
    narrowing = Narrowing(options.destinations, options.since)
    rows = kept(name, TABLES[name], narrowing, quoted)
    asked = replace(options, directories=(directory,), destinations=(), since=0)
    if name in PRESENT:
        asked = replace(asked, until=0)
    failures: list[Exception] = []

    def fill(place: Place, needed: tuple[str, ...]) -> pa.RecordBatchReader:
        each = replace(asked, table=place.name, columns=needed)
        return filled(BASE[place.name], each, failures)

    with _opened() as told:
        query = f"SELECT {listed(options.columns)} FROM ({rows})"
        try:
            yield from told.ask(query, _views(name), fill)
        except duckdb.Error:
            if failures:
                raise failures[0] from None
            raise


@contextmanager
def _opened() -> Iterator[Database]:
    """Open a database with the base tables, which are empty."""
    with database(READER_MEMORY, None) as told:
        told.offer((MAIN,), {each: table.arrow(table.columns) for each, table in BASE.items()})
        yield told


def _views(name: str) -> list[Made]:
    """Return the views behind the table *name*, and its own."""
    return [
        Made(Place(MAIN, each), text, each not in TABLES)
        for each, text in views_behind({name}).items()
    ]
