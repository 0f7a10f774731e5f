"""Steps of a message's life as rows, told by DuckDB or by Spark."""

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.reports.report import Row
from lockkeeper_analytics.sql.query import run
from lockkeeper_analytics.tables.database import MEMORY_LIMIT, quoted
from lockkeeper_analytics.values import values_of

TABLES = ("messages", "acks", "records")
FACTS = ("hops", "broker_ids", "broker_names", "bridges", "unattended")
PARTS = ("ids", "lives", "ends", "ways", "departures", "stays")
"""What the steps are made of, a few rows each; a part may read those before it."""


def trace(
    identifier: str,
    directories: Sequence[str],
    *,
    skip_corrupt: bool = False,
    memory_limit: str = MEMORY_LIMIT,
) -> list[Row]:
    """Return the steps of messages with *identifier*, a message id or a correlation id, in order.

    `steps.sql` says what they are; times are in UTC. None: no journal knows it. Raises
    NoJournalError, and AnalyticsError for a damaged journal.
    """
    if not identifier.strip():
        raise AnalyticsError("an empty id names no message")
    options = {"paths": json.dumps(list(directories)), "corrupt": "skip" if skip_corrupt else ""}
    rows: list[Row] = []
    for batch in run(question(identifier), options, memory_limit):
        values = zip(*map(values_of, batch.columns), strict=True)
        rows += (dict(zip(batch.schema.names, each, strict=True)) for each in values)
    return rows


def question(identifier: str) -> str:
    """Return DuckDB's question for the steps, with the parts that they read."""
    literal = quoted(identifier)
    views = ",\n".join(f"{part} AS (\n{_plain(part, literal)}\n)" for part in PARTS)
    return f"WITH {views}\n{_plain('steps', literal)}"


def part_text(part: str, literal: str) -> str:
    """Return the SQL of a part, or of `steps`, for the identifier as a *literal* of the engine.

    What it reads, tables, facts and the parts before it, has its name in braces.
    """
    return _text(part).replace("{id}", literal)


def _plain(part: str, literal: str) -> str:
    text = _text(part)
    for name in (*TABLES, *FACTS, *PARTS):
        text = text.replace(f"{{{name}}}", name)
    return text.replace("{id}", literal)


@cache
def _text(part: str) -> str:
    return files("lockkeeper_analytics.trace").joinpath(f"{part}.sql").read_text("utf-8").rstrip()
