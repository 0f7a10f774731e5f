"""`lockkeeper trace`: the life of a message, through destinations, dead letters and brokers."""

from collections.abc import Sequence
from typing import Annotated, Any

import pyarrow as pa
import typer

from lockkeeper_analytics.arguments import Directories, SkipCorrupt
from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.reports.report import Row
from lockkeeper_analytics.sql.command import PRINTERS, Format, text_of

_CAUSE_CHARACTERS = 120


def trace(
    identifier: Annotated[
        str, typer.Argument(metavar="ID", help="A message id, or a correlation id.")
    ],
    directories: Directories,
    output: Annotated[
        Format, typer.Option("--format", "-f", help="csv and json have all columns.")
    ] = Format.TABLE,
    skip_corrupt: SkipCorrupt = False,
    memory: Annotated[
        str, typer.Option("--memory", help="Upper bound of DuckDB's memory; then it spills.")
    ] = "1GB",
) -> None:
    """Tell the life of a message, of its copies and dead letters, from broker to broker."""
    # DuckDB takes a moment to import, and `--help` does without.
    from lockkeeper_analytics.trace import steps

    found = steps.trace(identifier, directories, skip_corrupt=skip_corrupt, memory_limit=memory)
    if not found:
        raise AnalyticsError(
            f"no message {identifier!r} in {', '.join(directories)}: it was acknowledged before it "
            "was written, its file is gone, or its id is another"
        )
    rows = list(map(told, found)) if output is Format.TABLE else found
    schema = None if output is Format.TABLE else _schema(found)
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    PRINTERS[output](iter((batch.slice(0, 0), batch)))
    related = _correlations(identifier, found)
    if related and output is Format.TABLE:
        typer.echo(f"lockkeeper: what belongs to it: lockkeeper trace {related[0]} …", err=True)


def told(step: Row) -> dict[str, str]:
    """Return a step for people."""
    earliest, latest = text_of(step["earliest"]), text_of(step["latest"])
    exact = earliest == latest or not earliest or not latest
    return {
        "time": (earliest or latest) if exact else f"{earliest} to {latest}",
        "broker": step["broker"] if step["directory"] else f"{step['broker']} (not given)",
        "destination": f"{step['destination_kind']}://{step['destination']}",
        "step": step["step"].replace("_", " "),
        "message": step["message_id"],
        "detail": ", ".join(_details(step)),
    }


def _details(step: Row) -> list[str]:
    cause = step["cause"]
    if cause and len(cause) > _CAUSE_CHARACTERS:
        cause = f"{cause[:_CAUSE_CHARACTERS]}…"
    who = "from" if step["step"] == "arrived" else "by"
    parts: list[tuple[str, Any]] = [
        ("copy of {}", step["copy_of"]),
        ("retry of {}", step["retry_of"]),
        ("was in {}", step["destination_before"]),
        ("went to {}", step["target"]),
        ("subscription {}", step["subscription"]),
        ("redelivered {} times", step["redeliveries"]),
        ("from broker {}", step["from_broker"]),
        ("to broker {}", step["to_broker"]),
        ("over bridge {}", step["bridge"]),
        (who + " {}", step["client"]),
        ("in {}", step["transaction"]),
        ("cause: {}", cause),
    ]
    return [form.format(value) for form, value in parts if value]


def _correlations(identifier: str, found: Sequence[Row]) -> list[str]:
    """Return the correlation ids of what was found, but for the one that was asked for."""
    known = (row["correlation_id"] for row in found)
    return [each for each in dict.fromkeys(known) if each and each != identifier]


def _schema(found: Sequence[Row]) -> pa.Schema:
    """Return columns of which none is left out where the first rows have no value."""
    moments, numbers = ("earliest", "latest"), ("redeliveries", "file_id")
    kinds = dict.fromkeys(moments, pa.timestamp("us", "UTC")) | dict.fromkeys(numbers, pa.int64())
    return pa.schema([(name, kinds.get(name, pa.string())) for name in found[0]])
