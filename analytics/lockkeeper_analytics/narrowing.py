"""Rows of each fact and report that a narrowed run shows, in SQL that Spark and DuckDB both run.

State is always told from the whole journal: whether a message waits depends on all that stands
before it. `destination` and `since` choose among what was told so, and never what it is told from.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from lockkeeper.message.destination import ANY_CHILD, ANY_DESCENDANT, SCHEMES
from lockkeeper_analytics.reading.asked import Pattern
from lockkeeper_analytics.reading.stream_rows import STREAM
from lockkeeper_analytics.texts import REPORT

Quoted = Callable[[str], str]

SINCE = "{since}"
"""Stands for the bound in the conditions below."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What is asked for: destinations (none: all), from when on and until when (ms, 0: no bound).

    *until* is another matter than the others: everything is told as it stood then.
    """

    destinations: tuple[Pattern, ...] = ()
    since: int = 0
    until: int = 0

    @property
    def url_pattern(self) -> str:
        """The regular expression of the URLs asked for, such as `queue://ORDERS`, as a whole."""
        return r"\A(" + self._one_of("") + r")\z"

    @property
    def urls_pattern(self) -> str:
        """The regular expression of URLs with NULs between, of which one is asked for."""
        return r"(\A|\x00)(" + self._one_of(r"\x00") + r")(\z|\x00)"

    def _one_of(self, end: str) -> str:
        return "|".join(_expression(pattern, end) for pattern in self.destinations)


EVERYTHING = Narrowing()


@dataclass(frozen=True, slots=True)
class Kept:
    """Which rows stay when a run is narrowed.

    *destination* are the columns with the kind and the name of the destination that a row is of;
    None: it is of all. *since* is the condition for rows from SINCE on, in SQL that Spark and
    DuckDB both know, of the row `told`; empty: a row tells what is now, or of the whole journal.
    """

    destination: tuple[str, str] | None = ("destination_kind", "destination")
    since: str = ""
    urls: str = ""


_CELL = f"told.{{}} IS NULL OR told.{{}} + told.seconds * INTERVAL '1' SECOND > {SINCE}"
_IN_CELLS = Kept(since=_CELL.replace("{}", "time"))
_AT = f"told.at >= {SINCE}"
_HAPPENED = f"coalesce(told.happened_at, told.happened_before, {SINCE}) >= {SINCE}"
_LAST = f"coalesce(told.last_at, {SINCE}) >= {SINCE}"
_ORIGIN = ("origin_kind", "origin")
_WHOLE = Kept(None)
_STREAM = Kept((f"'{STREAM}'", "told.stream"))

# A row of which nothing tells when it was stays: it is not known to be older.
FACTS = {
    "applied_operations": Kept(None, _HAPPENED),
    "acknowledged": Kept(None, _HAPPENED),
    "counted": Kept(None, _AT),
    "message_lifetimes": Kept(None, f"coalesce(told.added_at, told.stored_at, {SINCE}) >= {SINCE}"),
    "deaths": Kept(None, _HAPPENED),
    "moves": Kept(),
}
"""The rows of facts that the reports of COUNTING count."""

MADE_OF_COUNTED = ("latency_buckets", "uncounted")
"""Facts that have only what is made of the rows of other facts that are asked for."""

_SUMMED_UP = "moves"
"""The fact that is made of counted ones and then narrowed."""

COUNTING = (
    "totals",
    "producers",
    "sizes",
    "skew",
    "pattern",
    "latency",
    "dead_letters",
    "redeliveries",
)
"""The reports whose figures count what happened from then on, and not what was before."""

PRESENT = (
    "garbage" + REPORT,
    "files",
    "kept_files",
    "file_links",
    "file_pins",
    "present_files",
)
"""The views that tell of files as they are now, until whenever is asked for: nobody is to remove
one that is needed for what came later."""

REPORTS = {
    "rates": _IN_CELLS,
    "totals": Kept(),
    "producers": Kept(),
    "sizes": Kept(),
    "skew": Kept(),
    "pattern": _WHOLE,
    "anomalies": Kept(since=_CELL.replace("{}", "period")),
    "latency": Kept(),
    "latency_over_time": _IN_CELLS,
    "consumers": Kept(
        since="told.verdict <> 'gone' OR coalesce("
        f"greatest(told.opened_at, told.closed_at, told.last_ack_at), {SINCE}) >= {SINCE}"
    ),
    "backlog": Kept(),
    "backlog_over_time": _IN_CELLS,
    "subscriptions": Kept(),
    "transactions": Kept(None, f"told.ended_at IS NULL OR told.ended_at >= {SINCE}"),
    "dead_letters": Kept(_ORIGIN),
    "redeliveries": Kept(),
    "poison": Kept(_ORIGIN, _LAST),
    "duplicates": Kept(since=_LAST),
    "brokers": _WHOLE,
    "network": _WHOLE,
    "takeovers": Kept(None, _AT),
    "garbage": _WHOLE,
    "inventory": _WHOLE,
    "bodies": Kept(),
    "groups": _STREAM,
    "lag_over_time": Kept(_STREAM.destination, _IN_CELLS.since),
    "retries": Kept(None, _LAST),
    "partitions": _STREAM,
}
"""The rows of every report; `pattern` sums up the destinations asked for by itself."""

_ENDED = f"coalesce(told.ended_latest, {SINCE}) >= {SINCE}"
TABLES = {
    "messages": Kept(since=_ENDED),
    "acks": Kept(since=f"coalesce(told.acked_at_latest, {SINCE}) >= {SINCE}"),
    "subscriptions": Kept(since=_ENDED),
    "destinations": Kept(),
    "files": _WHOLE,
    "transactions": Kept(None, _ENDED, urls="told.destinations"),
}
"""The rows of the tables that are told from all records: what was not over before."""


def counts_from_whole(name: str) -> bool:
    """Tell whether the reports of COUNTING read all rows of the fact or table *name*."""
    return not (name in FACTS or name in MADE_OF_COUNTED or name.endswith(REPORT))


def counted(name: str, text: str, whole: str, narrowing: Narrowing, quoted: Quoted) -> str:
    """Return the SQL of a view as the reports of COUNTING read it, of facts that are counted.

    *text* is that of the view *name*, of which *whole* has all rows.
    """
    if name == _SUMMED_UP:
        return kept(f"(\n{text}\n)", FACTS[name], narrowing, quoted)
    if name in FACTS:
        return kept(whole, FACTS[name], narrowing, quoted)
    return f"SELECT * FROM {whole}" if counts_from_whole(name) else text


def kept(source: str, rule: Kept, narrowing: Narrowing, quoted: Quoted) -> str:
    """Return the SQL of the rows of *source* that *rule* keeps when *narrowing* is asked for.

    *quoted* makes a text a literal of the engine that is asked.
    """
    conditions = []
    if rule.since and narrowing.since:
        since = f"timestamp_millis({narrowing.since})"
        conditions.append(rule.since.replace(SINCE, since))
    if rule.destination and narrowing.destinations:
        kind, name = rule.destination
        pattern = quoted(narrowing.url_pattern)
        conditions.append(f"regexp_like({kind} || '://' || {name}, {pattern})")
    if rule.urls and narrowing.destinations:
        # Names may have line breaks, but no NUL.
        pattern = quoted(narrowing.urls_pattern)
        conditions.append(f"regexp_like(array_join({rule.urls}, chr(0)), {pattern})")
    where = " AND ".join(f"({each})" for each in conditions) or "true"
    return f"SELECT told.* FROM {source} told WHERE {where}"


def _expression(pattern: Pattern, end: str) -> str:
    """Return the regular expression of one pattern's URLs, which may have all but *end* in them.

    `.` would be no line break, and `$` before the last one, too.
    """
    kinds = [name for name, kind in SCHEMES.items() if pattern.kind in (None, kind)]
    if pattern.kind is None:
        kinds = [STREAM] if pattern.is_stream else [*kinds, STREAM]
    path = list(pattern.path)
    is_open = ANY_DESCENDANT in path
    if is_open:
        path = path[: path.index(ANY_DESCENDANT)]
    anything = rf"[^{end}]*" if end else r"(?s:.*)"
    levels = [rf"[^.{end}]*" if level == ANY_CHILD else re.escape(level) for level in path]
    if not is_open:
        rest = ""
    elif levels:
        rest = rf"(\.{anything})?"
    else:
        rest = anything
    return f"({'|'.join(kinds)})://" + r"\.".join(levels) + rest
