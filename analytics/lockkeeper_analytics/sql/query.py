"""SQL over the tables of journals by DuckDB, without Spark: for a quick look.

A query is planned over empty tables first: a mistake in it is told before anything is read, and
then only the tables and columns that it uses are, itself or by a view. These are copied into a
database in memory, which spills to a temporary folder beyond its limit.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

from lockkeeper.journal.errors import JournalError
from lockkeeper_analytics.errors import AnalyticsError, QueryError
from lockkeeper_analytics.facts.narrowing import Narrowing
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.schema import BODY_COLUMNS
from lockkeeper_analytics.sql.narrowed import COUNTED, WHOLE, narrowed_views
from lockkeeper_analytics.sql.views import view_texts, views_behind
from lockkeeper_analytics.tables import RECORDS, TABLES
from lockkeeper_analytics.tables.options import parse_options

MEMORY_LIMIT = "1GB"
ROWS_PER_BATCH = 8192
FILES = "files"
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
            behind = set().union(*(_named(connection, text) for text in views.values()))
            for name, columns in _needed(connection, query, views).items():
                if name in direct or narrowing is None:
                    _fill(connection, _options_of(name, columns, options))
                if name in behind and narrowing is not None:
                    whole = _whole_options(name, options)
                    _fill(connection, _options_of(name, columns, whole), WHOLE)
            _create(connection, views, narrowing)
            reader = connection.sql(query).to_arrow_reader(ROWS_PER_BATCH)
            yield pa.RecordBatch.from_pylist([], schema=reader.schema)
            yield from reader
        except duckdb.Error as error:
            raise QueryError(str(error)) from error


def views_script() -> str:
    """Return all views as one SQL script for a database that has the tables."""
    with duckdb.connect(":memory:") as connection:
        views = views_behind(view_texts().keys(), lambda text: _named(connection, text))
    tables = ", ".join(TABLES)
    return "\n".join(
        [
            f"-- What is asked of journals, as views over the tables {tables}.",
            *(f"\nCREATE OR REPLACE VIEW {name} AS\n{text};" for name, text in views.items()),
            "",
        ]
    )


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


def _whole_options(name: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the *options* for a table from which views tell everything.

    What keeps files is told of now: somebody may remove them by it.
    """
    left_out = {"destination", "since"} | ({"until"} if name == FILES else set())
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
    if narrowing is not None:
        connection.execute(f"CREATE SCHEMA {WHOLE}; CREATE SCHEMA {COUNTED}")
    for name in TABLES:
        empty = TABLES[name].arrow(_offered(name, words)).empty_table()
        connection.register(_SOURCE, empty)
        for place in ("main", WHOLE) if narrowing is not None else ("main",):
            connection.execute(f"CREATE TABLE {place}.{name} AS SELECT * FROM {_SOURCE}")
        connection.unregister(_SOURCE)

    def named(text: str) -> set[str]:
        return _named(connection, text)

    _create(connection, views_behind(view_texts().keys(), named), narrowing)
    return views_behind(named(query), named)


def _create(
    connection: duckdb.DuckDBPyConnection, views: Mapping[str, str], narrowing: Narrowing | None
) -> None:
    if narrowing is not None:
        for statement in narrowed_views(views, TABLES, narrowing):
            connection.execute(statement)
        return
    for name, text in views.items():
        connection.execute(f"CREATE OR REPLACE VIEW {name} AS {text}")


def _needed(
    connection: duckdb.DuckDBPyConnection, query: str, views: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the tables that *query* reads, each with the columns that it needs of them."""
    words = _words(query).union(*map(_words, views.values()))
    offered = {name: _offered(name, words) for name in TABLES}
    used = offered.keys() & _named(connection, query).union(
        *(_named(connection, text) for text in views.values())
    )
    if not used:
        return {}
    planned = _planned(connection, query)
    return {
        name: tuple(
            column
            for column in offered[name]
            if name not in planned or column in planned[name] or column in words
        )
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
