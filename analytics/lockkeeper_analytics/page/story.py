"""Summary of the reports in a few figures: the tiles and the balance."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lockkeeper_analytics.page.labels import Key, Tables, key_of
from lockkeeper_analytics.reports.report import Row

NEEDED = ("inventory", "totals", "rates", "backlog", "takeovers")
"""The reports that the story is told from."""
_TELLING = ("totals", "rates", "backlog_over_time")
"""Those that tell dead letter queues from others."""


@dataclass(frozen=True, slots=True)
class Story:
    """The figures of a whole report; counts are messages, times UTC, None is not known.

    `waiting` leaves out dead letters, which are `waiting_letters`: nobody has taken them away.
    """

    first_at: datetime | None
    last_at: datetime | None
    sent: int
    acknowledged: int
    dead_lettered: int
    waiting: int
    waiting_letters: int
    in_doubt: int
    redelivered: int | None
    takeovers: int
    longest_silence_ms: float | None
    oldest_waiting: datetime | None
    peak_per_second: float
    balance: tuple[tuple[str, int], ...]


def tell(tables: Tables) -> Story:
    """Return the story of the reports in *tables*, rows by the name of the report.

    Those that are NEEDED must be there.
    """
    totals, backlog = tables["totals"], tables["backlog"]
    dead = dead_letter_queues(tables)
    first, last = span_of(tables)
    living = [row for row in totals if key_of(row) not in dead]
    starts = [row for row in tables["takeovers"] if row["silent_ms"] is not None]
    silences = [row["silent_ms"] for row in starts if row["event"] == "takeover"]
    redelivered = [row["redelivered"] for row in totals if row["redelivered"] is not None]
    waiting = [row for row in backlog if row["waiting"] > row["dead_letters"]]
    return Story(
        first_at=first,
        last_at=last,
        sent=_sum(totals, "enqueued") - _sum(totals, "dead_lettered"),
        acknowledged=_sum(living, "acknowledged"),
        dead_lettered=_sum(totals, "dead_lettered"),
        waiting=_sum(backlog, "waiting") - _sum(backlog, "dead_letters"),
        waiting_letters=_sum(backlog, "dead_letters"),
        in_doubt=_sum(backlog, "in_doubt"),
        redelivered=sum(redelivered) if redelivered else None,
        takeovers=sum(row["event"] == "takeover" for row in tables["takeovers"]),
        longest_silence_ms=max(silences, default=None),
        oldest_waiting=min((row["oldest_at"] for row in waiting if row["oldest_at"]), default=None),
        peak_per_second=_peak(tables["rates"]),
        balance=_balance(totals, backlog, dead),
    )


def dead_letter_queues(tables: Tables) -> set[Key]:
    """Return the dead letter queues among the destinations that the reports tell of."""
    told = (row for name in _TELLING for row in tables.get(name, []))
    return {key_of(row) for row in told if row["is_dead_letter_queue"]}


def _balance(totals: list[Row], backlog: list[Row], dead: set[Key]) -> tuple[tuple[str, int], ...]:
    """Return where the messages sent to queues went; the parts add up to all of them."""
    queues = [row for row in totals if row["destination_kind"].endswith("queue")]
    living = [row for row in queues if key_of(row) not in dead]
    left = [row for row in backlog if row["destination_kind"].endswith("queue")]
    parts = {
        "acknowledged": _sum(living, "acknowledged"),
        "dead letters": _sum(queues, "dead_lettered"),
        "waiting": _sum(left, "waiting") - _sum(left, "dead_letters") + _sum(left, "in_doubt"),
    }
    sent = _sum(queues, "enqueued") - _sum(queues, "dead_lettered")
    # Expired without a dead letter, purged, or taken before the recorder could count it.
    parts["otherwise gone"] = max(0, sent - sum(parts.values()))
    return tuple((name, number) for name, number in parts.items() if number > 0)


def span_of(tables: Tables) -> tuple[datetime | None, datetime | None]:
    """Return the first and the last time that the reports tell of, as far as these are there."""
    inventory = tables.get("inventory", [])
    cells = [*tables.get("rates", []), *tables.get("lag_over_time", [])]
    firsts = _known(row["first_at"] for row in inventory) or _known(row["time"] for row in cells)
    lasts = _known(row["last_at"] for row in inventory) or _known(row["time"] for row in cells)
    events = _known(row["at"] for row in tables.get("takeovers", []))
    return min(firsts + events, default=None), max(lasts + events, default=None)


def _known(moments: Iterable[datetime | None]) -> list[datetime]:
    return [moment for moment in moments if moment is not None]


def _sum(rows: list[Row], name: str) -> int:
    return int(sum(row[name] or 0 for row in rows))


def _peak(rates: list[Row]) -> float:
    cells: dict[datetime, float] = {}
    for row in rates:
        came = row["enqueued"] - row["dead_lettered"]
        cells[row["time"]] = cells.get(row["time"], 0.0) + came / row["seconds"]
    return max(cells.values(), default=0.0)
