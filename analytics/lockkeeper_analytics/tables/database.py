"""A database in memory that tells views from the tables of journals, by DuckDB.

A query is planned over empty tables first: then only the tables and columns that it needs are read,
itself or by a view. What DuckDB's memory does not hold is spilled to a folder.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from lockkeeper_analytics.errors import QueryError
from lockkeeper_analytics.packing import duckdb_macros
from lockkeeper_analytics.tables.shape import ROWS_PER_BATCH
from lockkeeper_analytics.texts import times_read

MEMORY_LIMIT = "1GB"
FACTS_MEMORY = "160MB"
"""So much at most is what tables and facts take; sorting them on disk takes hardly longer."""
MAIN = "main"
PLAIN = ("placed",)
"""Facts that are their tables once more, and so no tables of their own."""

_SOURCE = "_source"
# With these an empty table would be planned away, and the columns it needs with it.
_UNPLANNED = "statistics_propagation,empty_result_pullup"
_WORD = re.compile(r"\w+")
_LITERAL = re.compile(r"'(?:[^']|'')*'")

Columns = dict[str, str]
"""DuckDB's types of columns by their names."""


class Place(NamedTuple):
    """A table or view of a database: its schema and its name."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


class Made(NamedTuple):
    """A view to be made: where, of which SQL; *is_fact*: worth a table if it is read twice."""

    place: Place
    text: str
    is_fact: bool = False


Scans = dict[Place, list[set[str]]]
"""The columns of each scan of tables and views."""

ANSWER = Place(MAIN, "")
"""Stands for the query, where views do that scan."""

Fill = Callable[[Place, tuple[str, ...]], pa.RecordBatchReader]
"""Returns the rows of a table, with the columns named."""


@contextmanager
def database(memory_limit: str, scratch: Path | None) -> Iterator["Database"]:
    """Open a database that spills into a folder in *scratch* (None: where temporary files are).

    Raises QueryError.
    """
    with (
        TemporaryDirectory(prefix="lockkeeper-sql-", dir=scratch) as folder,
        _connect(folder, memory_limit) as connection,
    ):
        yield Database(connection)


@cache
def dialect() -> str:
    """Return the statements that make Spark's functions and our structs known to DuckDB."""
    path = files("lockkeeper_analytics").joinpath("sql", "dialect.sql")
    return f"{path.read_text('utf-8').strip()}\n\n{duckdb_macros()}"


class Database:
    """Tables and views, empty until `ask` reads what a query needs."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._columns: dict[Place, Columns] = {}
        self._inlined: set[Place] = set()
        connection.execute(dialect())

    def offer(self, schemas: Iterable[str], tables: Mapping[str, pa.Schema]) -> None:
        """Make *tables*, empty, in each of *schemas*; they are filled in this order."""
        for schema in schemas:
            self.connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            for name, arrow in tables.items():
                self.connection.register(_SOURCE, arrow.empty_table())
                self.connection.execute(f"CREATE TABLE {schema}.{name} AS FROM {_SOURCE}")
                self.connection.unregister(_SOURCE)
                self._note(Place(schema, name))

    def ask(self, query: str, views: list[Made], fill: Fill) -> pa.RecordBatchReader:
        """Return the answer to *query* over *views*, each of which stands before its readers.

        *fill* is asked for the tables that are needed. Raises what it raises, and DuckDB's errors.
        """
        needed, scans = self._planned_for(query, views)
        limit = self._bound_memory()
        used = [made for made in views if made.place in needed]
        there = {made.place for made in views}
        for place in self._columns:
            if place in needed and place not in there:
                self._fill(place, needed[place], fill)
        tables = _worth_tables(used, scans)
        last_reads = _last_reads(used, tables, scans)
        for made in used:
            self._make(made, needed[made.place] if made.place in tables else ())
            for place in last_reads.get(made.place, ()):
                self._forget(place)
        self.connection.execute(f"SET memory_limit = '{limit}'")
        return self.connection.sql(query).to_arrow_reader(ROWS_PER_BATCH)

    def needed(self, query: str, views: list[Made]) -> dict[Place, tuple[str, ...]]:
        """Return the tables and views behind *query*, each with the columns that it needs."""
        return self._planned_for(query, views)[0]

    def _planned_for(
        self, query: str, views: list[Made]
    ) -> tuple[dict[Place, tuple[str, ...]], dict[Place, Scans]]:
        for made in views:
            # Or a plan would hold every fact as often as it is read.
            self._make(made, None)
        return self._needed(query, views)

    def _bound_memory(self) -> str:
        """Have DuckDB take no more than FACTS_MEMORY, and return the limit that there was."""
        (limits,) = self.connection.execute(
            "SELECT current_setting('memory_limit'),"
            " parse_formatted_bytes(current_setting('memory_limit')) > parse_formatted_bytes(?)",
            [FACTS_MEMORY],
        ).fetchall()
        if limits[1]:
            self.connection.execute(f"SET memory_limit = '{FACTS_MEMORY}'")
        return str(limits[0])

    def _make(self, made: Made, columns: tuple[str, ...] | None) -> None:
        """Make a view; of a fact a table, which is worked out once, of *columns* (None: all)."""
        place = made.place
        if columns is None:
            self.connection.execute(f"CREATE VIEW {place} AS {made.text}")
            if made.is_fact:
                # By way of the view, which finds the tables of its own schema first.
                self._replace(place, f"FROM {place}")
            else:
                self._inlined.add(place)
            self._note(place)
            return
        kind = "TABLE" if made.is_fact else "VIEW"
        self.connection.execute(f"DROP {kind} {place}; CREATE VIEW {place} AS {made.text}")
        if columns:
            self._keep(place, columns, f"SELECT {listed(columns)} FROM {place}", "VIEW")

    def _fill(self, place: Place, columns: tuple[str, ...], fill: Fill) -> None:
        self.connection.register(_SOURCE, fill(place, columns))
        try:
            self._keep(place, columns, f"FROM {_SOURCE}", "TABLE")
        finally:
            self.connection.unregister(_SOURCE)

    def _keep(self, place: Place, columns: tuple[str, ...], rows: str, before: str) -> None:
        """Keep *rows* of *columns* and offer them as *place*, all other columns as null."""
        kept = _kept(place)
        self.connection.execute(f"CREATE TABLE {kept} AS {rows}; DROP {before} {place}")
        shown = ", ".join(
            f'"{name}"' if name in columns else f'CAST(NULL AS {kind}) AS "{name}"'
            for name, kind in self._columns[place].items()
        )
        self.connection.execute(f"CREATE VIEW {place} AS SELECT {shown} FROM {kept}")

    def _forget(self, place: Place) -> None:
        """Let go of the rows of a table that nothing reads any more."""
        self.connection.execute(f"DROP VIEW {place}; DROP TABLE {_kept(place)}")

    def _replace(self, place: Place, rows: str) -> None:
        kept = Place(place.schema, _SOURCE)
        self.connection.execute(f"CREATE TABLE {kept} AS {rows}; DROP VIEW {place}")
        self.connection.execute(f"ALTER TABLE {kept} RENAME TO {place.name}")

    def _note(self, place: Place) -> None:
        described = self.connection.execute(f"DESCRIBE {place}").fetchall()
        self._columns[place] = {row[0]: row[1] for row in described}

    def _needed(
        self, query: str, views: list[Made]
    ) -> tuple[dict[Place, tuple[str, ...]], dict[Place, Scans]]:
        """Return the tables and views behind *query*, each with the columns that it needs.

        And what each view and the query itself, ANSWER, scan.
        """
        scans = {ANSWER: self._scans(query, self.named(query), MAIN)}
        wanted = {place: set().union(*several) for place, several in scans[ANSWER].items()}
        for made in reversed(views):
            if made.place in wanted:
                columns = self._ordered(made.place, wanted[made.place])
                plan = Place(made.place.schema, "_plan")
                self.connection.execute(f"CREATE VIEW {plan} AS {made.text}")
                names = set(times_read(made.text))
                asked = f"SELECT {listed(columns)} FROM {plan}"
                scans[made.place] = self._scans(asked, names, made.place.schema)
                self.connection.execute(f"DROP VIEW {plan}")
                for place, several in scans[made.place].items():
                    wanted.setdefault(place, set()).update(*several)
        return {place: self._ordered(place, columns) for place, columns in wanted.items()}, scans

    def _scans(self, query: str, names: set[str], schema: str) -> Scans:
        """Return what the plan of *query* scans; of tables that it does not tell of, all.

        Views in *names* are in the plan as what they read.
        """
        found = self._planned(query)
        told = {place.name for place in found}
        for name in names - told:
            place = Place(schema, name)
            if place in self._columns and place not in self._inlined:
                found[place] = [set(self._columns[place])]
        return found

    def _ordered(self, place: Place, columns: set[str]) -> tuple[str, ...]:
        """Return those of *columns* that the table has, at least one, in its order."""
        offered = self._columns[place]
        return tuple(name for name in offered if name in columns) or tuple(offered)[:1]

    def named(self, query: str) -> set[str]:
        """Return the names of the tables and views that *query* reads, and perhaps more.

        DuckDB gives a SELECT as a tree; of what it cannot (`show tables`), all words outside of
        literals are taken.
        """
        tree = self._tree(query)
        return set(_tables_in(tree)) if not tree["error"] else words_in(_LITERAL.sub("", query))

    def given(self, query: str) -> set[str]:
        """Return the names that *query* itself gives, by WITH."""
        return set(_given_in(self._tree(query)))

    def _tree(self, query: str) -> Any:
        asked = self.connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query])
        return json.loads(asked.fetchall()[0][0])

    def _planned(self, query: str) -> Scans:
        """Return the columns of each scan of a table in the plan of *query*."""
        self.connection.execute(f"SET disabled_optimizers = '{_UNPLANNED}'")
        (told,) = self.connection.execute(f"EXPLAIN (FORMAT json) {query}").fetchall()
        self.connection.execute("SET disabled_optimizers = ''")
        found: Scans = {}
        with suppress(ValueError, AttributeError):
            for node in _nodes(json.loads(told[1])):
                extra = node.get("extra_info", {})
                if "Table" in extra and "Projections" in extra:
                    place = Place(*extra["Table"].replace('"', "").split(".")[-2:])
                    # What is only compared is among the filters, in words.
                    said = json.dumps([extra["Projections"], extra.get("Filters", "")])
                    found.setdefault(place, []).append(set(_WORD.findall(said)))
        return found


def _kept(place: Place) -> Place:
    """Return where the rows are that *place* offers."""
    return Place(place.schema, f"_{place.name}")


def _worth_tables(views: list[Made], scans: Mapping[Place, Scans]) -> set[Place]:
    """Return the facts among *views* that are scanned several times."""
    read = Counter(
        place for told in scans.values() for place, several in told.items() for _ in several
    )
    return {
        made.place
        for made in views
        if made.is_fact and read[made.place] > 1 and made.place.name not in PLAIN
    }


def _last_reads(
    views: list[Made], tables: set[Place], scans: Mapping[Place, Scans]
) -> dict[Place, list[Place]]:
    """Return for each view that becomes a table those tables that nothing behind it reads."""
    behind: dict[Place, set[Place]] = {}
    last: dict[Place, Place] = {}
    for place in [*(made.place for made in views), ANSWER]:
        behind[place] = set().union(*(behind.get(each, {each}) for each in scans[place]))
        if place in tables or place == ANSWER:
            last |= dict.fromkeys(behind[place], place)
            behind[place] = {place}
    found: dict[Place, list[Place]] = {}
    for place, reader in last.items():
        found.setdefault(reader, []).append(place)
    return found


def words_in(text: str) -> set[str]:
    """Return the words of *text*, in lower case."""
    return {word.lower() for word in _WORD.findall(text)}


def quoted(text: str) -> str:
    """Return *text* as a literal of DuckDB's SQL."""
    return "'" + text.replace("'", "''") + "'"


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


def listed(columns: Iterable[str]) -> str:
    """Return *columns* as a query lists them."""
    return ", ".join(f'"{name}"' for name in columns)


def _tables_in(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("type") == "BASE_TABLE":
            yield node["table_name"].lower()
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _tables_in(each)


def _given_in(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for each in node.get("cte_map", {}).get("map", ()):
            yield each["key"].lower()
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _given_in(each)


def _nodes(plan: Any) -> Iterator[dict[str, Any]]:
    for node in plan:
        yield node
        yield from _nodes(node.get("children", []))
