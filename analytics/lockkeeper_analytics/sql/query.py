"""SQL over the tables of journals by DuckDB, without Spark: for a quick look.

A query is planned over empty tables first: a mistake in it is told before anything is read, and
then only the tables and columns that it uses are, itself or by a view. These are copied into a
database in memory, which spills to a temporary folder beyond its limit.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

from lockkeeper.journal.errors import JournalError
from lockkeeper_analytics.errors import AnalyticsError, QueryError
from lockkeeper_analytics.facts.narrowing import Narrowing
from lockkeeper_analytics.facts.texts import (
    names_read,
    times_read,
    view_texts,
    views_behind,
)
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.schema import BODY_COLUMNS
from lockkeeper_analytics.sql.narrowed import (
    NOW,
    SCHEMAS,
    WHOLE,
    Made,
    is_of_now,
    places_of,
    views_to_make,
)
from lockkeeper_analytics.tables import RECORDS, TABLES
from lockkeeper_analytics.tables.options import parse_options

MEMORY_LIMIT = "1GB"
ROWS_PER_BATCH = 8192
_SOURCE = "_source"
# With these an empty table would be planned away, and the columns it needs with it.
_UNPLANNED = "statistics_propagation,empty_result_pullup"
_WORD = re.compile(r"\w+")
_LITERAL = re.compile(r"'(?:[^']|'')*'")


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
    with (
        TemporaryDirectory(prefix="lockkeeper-sql-", dir=scratch) as folder,
        _connect(folder, memory_limit) as connection,
    ):
        try:
            views = _prepared(connection, query, narrowing)
            direct = _named(connection, query)
            behind = {} if narrowing is None else _places_behind(views)
            for name, columns in _needed(connection, query, views).items():
                if name in direct or narrowing is None:
                    _fill(connection, _options_of(name, columns, options))
                for place in behind.get(name, ()):
                    whole = _whole_options(place, options)
                    _fill(connection, _options_of(name, columns, whole), place)
            places = places_of(direct & views.keys(), narrowing)
            shared = _shared(views)
            for made in views_to_make(views, TABLES, narrowing):
                if made.is_fact:
                    connection.execute(f"DROP TABLE {made.place}.{made.name}")
                _make(connection, made, made.place in places and made.name in shared)
            reader = connection.sql(query).to_arrow_reader(ROWS_PER_BATCH)
            yield pa.RecordBatch.from_pylist([], schema=reader.schema)
            yield from reader
        except duckdb.Error as error:
            raise QueryError(str(error)) from error


def views_script() -> str:
    """Return all views as one SQL script for a database that has the tables."""
    views = views_behind(view_texts().keys())
    tables = ", ".join(TABLES)
    return "\n".join(
        [
            f"-- What is asked of journals, as views over the tables {tables}.",
            dialect(),
            *(f"\nCREATE OR REPLACE VIEW {name} AS\n{text};" for name, text in views.items()),
            "",
        ]
    )


@cache
def dialect() -> str:
    """Return the statements that make Spark's functions known to DuckDB."""
    path = files("lockkeeper_analytics.sql").joinpath("dialect.sql")
    return path.read_text("utf-8").strip()


def _connect(folder: str, memory_limit: str) -> duckdb.DuckDBPyConnection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "python_enable_replacements": "false",
        "memory_limit": memory_limit,
        "temp_directory": folder,
    }
    try:
        connection = duckdb.connect(":memory:", config=config)
    except duckdb.Error as error:
        raise QueryError(str(error)) from error
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _narrowing(options: Mapping[str, str]) -> Narrowing | None:
    """Return what the rows of reports are narrowed to; None: they are not."""
    if not any(options.get(name) for name in ("destination", "since", "until")):
        return None
    asked = parse_options({name: value for name, value in options.items() if value})
    return Narrowing(asked.destinations, asked.since, asked.until)


def _places_behind(views: Mapping[str, str]) -> dict[str, set[str]]:
    """Return where each table behind *views* is read as a whole."""
    places: dict[str, set[str]] = {}
    for view in views:
        place = NOW if is_of_now(view) else WHOLE
        for text in views_behind({view}).values():
            for name in names_read(text) & TABLES.keys():
                places.setdefault(name, set()).add(place)
    return places


def _whole_options(place: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the *options* for a table in *place*, from which views tell everything."""
    left_out = {"destination", "since"} | ({"until"} if place == NOW else set())
    return {option: value for option, value in options.items() if option not in left_out}


def _named_view(query: str) -> str:
    """Return *query*; when it is the text of a view, which the page shows, ask for that view."""
    text = query.strip().removesuffix(";").strip()
    names = (name for name, told in view_texts().items() if told == text)
    return next((f"FROM {name}" for name in names), query)


def _prepared(
    connection: duckdb.DuckDBPyConnection, query: str, narrowing: Narrowing | None
) -> dict[str, str]:
    """Make all tables and views, empty, and return the views that *query* uses."""
    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type is not duckdb.StatementType.SELECT:
        raise QueryError("a query is one SELECT")
    words = _words(query)
    connection.execute(dialect())
    for place in SCHEMAS if narrowing is not None else ():
        connection.execute(f"CREATE SCHEMA {place}")
    for name in TABLES:
        empty = TABLES[name].arrow(_offered(name, words)).empty_table()
        connection.register(_SOURCE, empty)
        for place in ("main", WHOLE, NOW) if narrowing is not None else ("main",):
            connection.execute(f"CREATE TABLE {place}.{name} AS SELECT * FROM {_SOURCE}")
        connection.unregister(_SOURCE)

    for made in views_to_make(views_behind(view_texts().keys()), TABLES, narrowing):
        # Or a plan would hold every fact as often as it is read.
        _make(connection, made, is_table=made.is_fact)
    return views_behind(_named(connection, query))


def _make(connection: duckdb.DuckDBPyConnection, made: Made, is_table: bool) -> None:
    """Make a view, or a table of a fact, which is worked out once."""
    name = f"{made.place}.{made.name}"
    connection.execute(f"CREATE OR REPLACE VIEW {name} AS {made.text}")
    if is_table and made.is_fact:
        # By way of the view, which finds the tables of its own schema first.
        rows = f"{made.place}.{_SOURCE}"
        connection.execute(f"CREATE TABLE {rows} AS FROM {name}; DROP VIEW {name}")
        connection.execute(f"ALTER TABLE {rows} RENAME TO {made.name}")


def _shared(views: Mapping[str, str]) -> set[str]:
    """Return the names of those *views* that are read several times."""
    read = Counter(name for text in views.values() for name in times_read(text))
    return {name for name in views if read[name] > 1}


def _needed(
    connection: duckdb.DuckDBPyConnection, query: str, views: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the tables that *query* reads, each with the columns that it needs of them."""
    words = _words(query).union(*map(_words, views.values()))
    offered = {name: _offered(name, words) for name in TABLES}
    behind = set().union(*map(names_read, views.values()))
    used = offered.keys() & (_named(connection, query) | behind)
    if not used:
        return {}
    planned = _planned(connection, query)
    # What is asked of a fact may be a column of a table behind it.
    asked = set().union(*planned.values())
    needed = {
        name: words
        | planned.get(name, set() if name in behind else set(offered[name]))
        | (asked if name in behind else set())
        for name in used
    }
    return {
        name: tuple(column for column in offered[name] if column in needed[name])
        or offered[name][:1]
        for name in sorted(used)
    }


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _named(connection: duckdb.DuckDBPyConnection, query: str) -> set[str]:
    """Return the names of the tables and views that *query* reads, and perhaps more.

    DuckDB gives a SELECT as a tree; of what it cannot (`show tables`), all words outside of
    literals are taken.
    """
    (told,) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
    tree = json.loads(told[0])
    return set(_tables_in(tree)) if not tree["error"] else _words(_LITERAL.sub("", query))


def _tables_in(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("type") == "BASE_TABLE":
            yield node["table_name"].lower()
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _tables_in(each)


def _offered(name: str, words: set[str]) -> tuple[str, ...]:
    """Return the columns a table has for a query of these *words*: bodies only by name."""
    columns = TABLES[name].default_columns
    if name != RECORDS:
        return columns
    return columns + tuple(column for column in BODY_COLUMNS if column in words)


def _planned(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, set[str]]:
    """Return the columns of each table that the plan of *query* scans.

    A table of which the plan does not tell is missing: all of it is to be read.
    """
    connection.execute(f"SET disabled_optimizers = '{_UNPLANNED}'")
    (told,) = connection.execute(f"EXPLAIN (FORMAT json) {query}").fetchall()
    connection.execute("SET disabled_optimizers = ''")
    found: dict[str, set[str]] = {}
    with suppress(ValueError, AttributeError):
        for node in _nodes(json.loads(told[1])):
            extra = node.get("extra_info", {})
            if "Table" in extra and "Projections" in extra:
                scanned = found.setdefault(extra["Table"].rpartition(".")[2], set())
                # What is only compared is among the filters, in words.
                said = json.dumps([extra["Projections"], extra.get("Filters", "")])
                scanned.update(_WORD.findall(said))
    return found


def _nodes(plan: Any) -> Iterator[dict[str, Any]]:
    for node in plan:
        yield node
        yield from _nodes(node.get("children", []))


def _options_of(name: str, columns: tuple[str, ...], options: Mapping[str, str]) -> ReadOptions:
    table = TABLES[name]
    given = {
        option: value
        for option, value in options.items()
        if value and (option != "destination" or table.has_destinations)
    }
    return replace(parse_options({**given, "table": name}), columns=columns)


def _fill(connection: duckdb.DuckDBPyConnection, options: ReadOptions, place: str = "main") -> None:
    """Read a table into the schema *place* of the database, instead of the empty one.

    What goes wrong while it is read would come back as DuckDB's error, so it is kept aside.
    """
    table = TABLES[options.table]
    failures: list[Exception] = []

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from table.batches(options)
        except (JournalError, AnalyticsError, OSError) as error:
            failures.append(error)
            raise

    schema = table.arrow(options.columns)
    connection.register(_SOURCE, pa.RecordBatchReader.from_batches(schema, batches()))
    try:
        connection.execute(
            f"CREATE OR REPLACE TABLE {place}.{table.name} AS SELECT * FROM {_SOURCE}"
        )
    except duckdb.Error:
        if not failures:
            raise
    finally:
        connection.unregister(_SOURCE)
    for failure in failures:
        if isinstance(failure, AnalyticsError):
            raise failure
        raise AnalyticsError(str(failure)) from failure
