"""Steps of a message's life as rows, told by DuckDB or by Spark."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files

from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.reports.report import Row
from lockkeeper_analytics.sql.query import run
from lockkeeper_analytics.tables.database import MEMORY_LIMIT, quoted
from lockkeeper_analytics.values import values_of

TABLES = ("messages", "acks", "records")


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
    for batch in run(question(identifier, quoted), options, memory_limit):
        values = zip(*map(values_of, batch.columns), strict=True)
        rows += (dict(zip(batch.schema.names, each, strict=True)) for each in values)
    return rows


def question(identifier: str, literal: Callable[[str], str], name: str = "{}") -> str:
    """Return the SQL that asks for the steps.

    *literal* writes a text as the engine has it, *name* is how the query calls a table.
    """
    text = _text()
    for table in TABLES:
        text = text.replace(f"{{{table}}}", name.format(table))
    return text.replace("{id}", literal(identifier))


@cache
def _text() -> str:
    return files("lockkeeper_analytics.trace").joinpath("steps.sql").read_text("utf-8")
