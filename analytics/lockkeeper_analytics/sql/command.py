"""`lockkeeper sql`: ask journals in SQL, without Spark."""

import csv
import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lockkeeper_analytics.arguments import Destination, Directories, Since, SkipCorrupt
from lockkeeper_analytics.reading.moments import moment
from lockkeeper_analytics.values import values_of

WIDTH_UNBOUND = 1_000_000
ROWS_SHOWN_MAX = 10_000
"""Of a table for people; csv and json print everything."""


class Format(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def _print_views(is_wanted: bool) -> None:
    if is_wanted:
        from lockkeeper_analytics.sql.query import views_script

        print(views_script(), end="")
        raise typer.Exit


def sql(
    query: Annotated[
        str,
        typer.Argument(metavar="QUERY", help="One SELECT; `show tables` and `describe messages`."),
    ],
    directories: Directories,
    output: Annotated[
        Format, typer.Option("--format", "-f", help="json: an object a line.")
    ] = Format.TABLE,
    destination: Destination = "",
    since: Since = "",
    until: Annotated[
        str, typer.Option("--until", help="Everything as it stood then, in the same way.")
    ] = "",
    skip_corrupt: SkipCorrupt = False,
    memory: Annotated[
        str, typer.Option("--memory", help="Upper bound of DuckDB's memory; then it spills.")
    ] = "1GB",
    views: Annotated[
        bool,
        typer.Option(
            "--views",
            help="Print the views as a script, and end: to keep, to change, for another database.",
            is_eager=True,
            callback=_print_views,
        ),
    ] = False,
) -> None:
    """Ask journals in SQL (DuckDB's); docs/reference/tables.md lists tables and columns."""
    # DuckDB takes a moment to import, and `--help` does without.
    from lockkeeper_analytics.sql import query as asked

    now = datetime.now(UTC)
    options = {
        "paths": json.dumps(directories),
        "destination": destination,
        "since": moment(since, now),
        "until": moment(until, now),
        "corrupt": "skip" if skip_corrupt else "",
    }
    PRINTERS[output](asked.run(query, options, memory))


def _print_table(batches: Iterator[pa.RecordBatch]) -> None:
    first = next(batches)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for field in first.schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(field.name, justify="right" if is_number else "left", overflow="fold")
    for number, row in enumerate(_rows(batches)):
        if number == ROWS_SHOWN_MAX:
            typer.echo(f"lockkeeper: only the first {number:,} rows are shown", err=True)
            break
        table.add_row(*(Text(text_of(value)) for value in row))
    console = Console(highlight=False)
    if not console.is_terminal:
        # Nothing is folded where a program reads along.
        console.width = WIDTH_UNBOUND
    console.print(table)


def _print_csv(batches: Iterator[pa.RecordBatch]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(next(batches).schema.names)
    for row in _rows(batches):
        writer.writerow(map(text_of, row))


def _print_json(batches: Iterator[pa.RecordBatch]) -> None:
    names = next(batches).schema.names
    for row in _rows(batches):
        told = dict(zip(names, row, strict=True))
        print(json.dumps(told, default=_as_json, ensure_ascii=False))


PRINTERS: dict[Format, Callable[[Iterator[pa.RecordBatch]], None]] = {
    Format.TABLE: _print_table,
    Format.CSV: _print_csv,
    Format.JSON: _print_json,
}


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        columns = (
            [
                dict(value) if pa.types.is_map(column.type) and value is not None else value
                for value in values_of(column)
            ]
            for column in batch.columns
        )
        yield from zip(*columns, strict=True)


def _as_json(value: object) -> object:
    """Return *value* in a form that JSON has: sums are whole decimals in DuckDB."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return text_of(value)


def text_of(value: object) -> str:
    """Return *value* for people: times in UTC to the ms, lists and maps as JSON."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | dict):
        return json.dumps(value, default=text_of, ensure_ascii=False)
    return str(value)
