"""Poison messages: those that died after deliveries, some again and again."""

import re
from typing import Any

from lockkeeper_analytics.reports.messages import OF_CAUSE
from lockkeeper_analytics.reports.report import Column, Report, Row, Tone, Unit

_MESSAGE_ID = re.compile(r"ID:[^],}) \t\n\v\f\r]+")
"""As in dead_letters.sql: causes that differ only in a message id count as one."""

_SAME = ("directory", "origin_kind", "origin", "dead_letter_queue")


def grouped(rows: list[Row]) -> list[Row]:
    """Return a row for each cause of a destination, with the ids of its messages, worst first."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        cause = None if row["cause"] is None else _MESSAGE_ID.sub("ID:…", row["cause"])
        found.setdefault((*(row[name] for name in _SAME), cause), []).append(row)
    groups = [_group(key, alike) for key, alike in found.items()]
    return sorted(groups, key=lambda row: (-row["dead_lettered"], -row["messages"]))


def _group(key: tuple[Any, ...], rows: list[Row]) -> Row:
    return {
        **dict(zip((*_SAME, "cause"), key, strict=True)),
        "messages": len(rows),
        "dead_lettered": sum(row["dead_lettered"] for row in rows),
        "retried": sum(row["retried"] for row in rows),
        "redeliveries": max((row["redeliveries"] or 0 for row in rows), default=0),
        "first_at": min((row["first_at"] for row in rows if row["first_at"]), default=None),
        "last_at": max((row["last_at"] for row in rows if row["last_at"]), default=None),
        "message_ids": [row["message_id"] for row in rows],
    }


REPORT = Report(
    name="poison",
    title="Poison messages",
    question="Which messages can nobody consume?",
    columns=(
        Column("origin", "Meant for", Unit.DESTINATION),
        Column("cause", "Last cause", Unit.CAUSE),
        Column("messages", "Messages", Unit.COUNT, Tone.BAD),
        Column("dead_lettered", "Died", Unit.COUNT),
        Column("retried", "Sent back", Unit.COUNT),
        Column("redeliveries", "Redeliveries", Unit.COUNT),
        Column("first_at", "Died first", Unit.TIME),
        Column("last_at", "Died last", Unit.TIME),
        Column("message_ids", "Ids", Unit.LIST),
    ),
    plots=(),
    nothing="No message died of failed deliveries.",
    shown=grouped,
    note="The worst 1,000 messages, a row for each cause; poison.json has a row for each message.",
    messages=OF_CAUSE,
    is_retried=True,
)
