"""Views that tell everything from whole tables, and show what is asked for.

With `destination`, `since` or `until` a query finds four schemas: its own, `main`, has the tables
with the rows that are asked for; `whole` has all rows, with all views over them; `present` the same
up to the journal's end; `counting` has the facts that are counted from `since` on, over whole
tables, with the reports that count them. A report of `main` is that of one of these, and has only
the rows that are asked for.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import NamedTuple

from lockkeeper_analytics.facts.narrowing import (
    COUNTING,
    PRESENT,
    REPORTS,
    Narrowing,
    counted,
    counts_from_whole,
    kept,
)
from lockkeeper_analytics.facts.texts import REPORT

MAIN, WHOLE, COUNTED, NOW = "main", "whole", "counting", "present"
SCHEMAS = (WHOLE, COUNTED, NOW)


class Made(NamedTuple):
    """A view to be made: where, under which name, of which SQL; *is_fact*: of its own text."""

    place: str
    name: str
    text: str
    is_fact: bool = False


def views_to_make(
    views: Mapping[str, str], tables: Iterable[str], narrowing: Narrowing | None
) -> Iterator[Made]:
    """Yield *views* in `main` and what is behind them, each before those that read it.

    The *tables* are in `main` already, and where something is narrowed in `whole` and `present`.
    """
    if narrowing is None:
        yield from (Made(MAIN, name, text, _is_fact(name)) for name, text in views.items())
        return
    for name in tables:
        yield Made(COUNTED, name, f"FROM {WHOLE}.{name}")
    for name, text in views.items():
        made = counted(name, text, f"{WHOLE}.{name}", narrowing, quoted)
        is_fact = _is_fact(name)
        yield Made(WHOLE, name, text, is_fact)
        yield Made(NOW, name, text, is_fact)
        yield Made(COUNTED, name, made, is_fact and not counts_from_whole(name))
        yield Made(MAIN, name, _shown(name, narrowing))


def places_of(names: Iterable[str], narrowing: Narrowing | None) -> Container[str]:
    """Return the schemas in which is told what a query for views *names* shows."""
    if narrowing is None:
        return {MAIN}
    places = {_place_of(name) for name in names}
    return places | ({WHOLE} if COUNTED in places else set())


def _is_fact(view: str) -> bool:
    return not view.endswith(REPORT)


def _place_of(view: str) -> str:
    report = view.removesuffix(REPORT)
    if _is_fact(view):
        return WHOLE
    return COUNTED if report in COUNTING else NOW if report in PRESENT else WHOLE


def is_of_now(view: str) -> bool:
    """Tell whether *view* tells of the journal's end, whatever is asked for."""
    return _place_of(view) == NOW


def _shown(name: str, narrowing: Narrowing) -> str:
    """Return a report with the rows that are asked for, and anything else as it is."""
    source = f"{_place_of(name)}.{name}"
    if _is_fact(name):
        return f"FROM {source}"
    return kept(source, REPORTS[name.removesuffix(REPORT)], narrowing, quoted)


def quoted(text: str) -> str:
    """Return *text* as a literal of DuckDB's SQL."""
    return "'" + text.replace("'", "''") + "'"
