"""SQL over the tables of journals by DuckDB, without Spark: for a quick look.

A query is planned over empty tables first: a mistake in it is told before anything is read, and
then only the tables and columns that it uses are, itself or by a view.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa

from lockkeeper_analytics.errors import AnalyticsError, QueryError
from lockkeeper_analytics.narrowing import Narrowing
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.schema import BODY_COLUMNS
from lockkeeper_analytics.sql.narrowed import COUNTED, FILLED, NOW, views_to_make
from lockkeeper_analytics.tables.base import BASE
from lockkeeper_analytics.tables.database import (
    MAIN,
    MEMORY_LIMIT,
    Place,
    database,
    dialect,
    words_in,
)
from lockkeeper_analytics.tables.derived import filled
from lockkeeper_analytics.tables.options import parse_options
from lockkeeper_analytics.texts import view_texts, views_behind


def run(
    query: str,
    options: Mapping[str, str],
    memory_limit: str = MEMORY_LIMIT,
    scratch: Path | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the answer to *query*, one SELECT, as Arrow batches; at least one.

    *options* are those of the data source but for `table` and `columns`; `destination` leaves the
    table `files` whole. Of a report, which may be asked for by its text, too, they choose the rows:
    views tell everything from all records. DuckDB spills into a folder in *scratch* (None: where
    temporary files are). Raises QueryError, OptionError, NoJournalError, and AnalyticsError for a
    damaged journal.
    """
    narrowing = _narrowing(options)
    query = _named_view(query)
    failures: list[Exception] = []

    def fill(place: Place, columns: tuple[str, ...]) -> pa.RecordBatchReader:
        asked = _options_of(place, columns, options)
        return filled(BASE[place.name], asked, failures)

    with database(memory_limit, scratch) as told:
        try:
            _check_select(told.connection, query)
            words = words_in(query)
            schemas = (MAIN,) if narrowing is None else FILLED
            told.offer(schemas, {name: BASE[name].arrow(_offered(name, words)) for name in BASE})
            if narrowing is not None:
                told.offer((COUNTED,), {})
            views = views_behind(_views_for(told.named(query), told.given(query)))
            reader = told.ask(query, list(views_to_make(views, BASE, narrowing)), fill)
            yield pa.RecordBatch.from_pylist([], schema=reader.schema)
            yield from reader
        except duckdb.Error as error:
            for failure in failures:
                if isinstance(failure, AnalyticsError):
                    raise failure from None
                raise AnalyticsError(str(failure)) from failure
            raise QueryError(str(error)) from error


def _views_for(names: set[str], given: set[str]) -> Set[str]:
    """Return the views that a query of these *names* may read, of which it has *given* some itself.

    All of them if there is no name (`show tables`), or one that is not known: a mistake, for which
    DuckDB proposes the nearest.
    """
    views = view_texts().keys()
    return names & views if names and names <= views | BASE.keys() | given else views


def views_script() -> str:
    """Return all views as one SQL script for a database that has the base tables."""
    views = views_behind(view_texts().keys())
    tables = ", ".join(BASE)
    return "\n".join(
        [
            f"-- What is asked of journals, as views over the tables {tables}.",
            dialect(),
            *(f"\nCREATE OR REPLACE VIEW {name} AS\n{text};" for name, text in views.items()),
            "",
        ]
    )


def _narrowing(options: Mapping[str, str]) -> Narrowing | None:
    """Return what the rows of tables and reports are narrowed to; None: they are not."""
    if not any(options.get(name) for name in ("destination", "since", "until")):
        return None
    asked = parse_options({name: value for name, value in options.items() if value})
    return Narrowing(asked.destinations, asked.since, asked.until)


def _named_view(query: str) -> str:
    """Return *query*; when it is the text of a view, which the page shows, ask for that view."""
    text = query.strip().removesuffix(";").strip()
    names = (name for name, told in view_texts().items() if told == text)
    return next((f"FROM {name}" for name in names), query)


def _check_select(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type is not duckdb.StatementType.SELECT:
        raise QueryError("a query is one SELECT")


def _offered(name: str, words: set[str]) -> tuple[str, ...]:
    """Return the columns a table has for a query of these *words*: bodies only by name."""
    table = BASE[name]
    if not table.has_bodies:
        return table.default_columns
    return table.default_columns + tuple(column for column in BODY_COLUMNS if column in words)


def _options_of(place: Place, columns: tuple[str, ...], options: Mapping[str, str]) -> ReadOptions:
    """Return how to read the table at *place*: only in `main` as narrowed as it is asked for."""
    table = BASE[place.name]
    left_out = set() if table.has_destinations else {"destination"}
    if place.schema != MAIN:
        left_out |= {"destination", "since"} | ({"until"} if place.schema == NOW else set())
    given = {name: value for name, value in options.items() if value and name not in left_out}
    return replace(parse_options(given), table=table.name, columns=columns)
