"""Views that tell everything from whole tables, and show what is asked for.

With `destination`, `since` or `until` a query finds four schemas: its own, `main`, has the base
tables with the rows that are asked for; `whole` has all rows, with all views over them; `present`
the same up to the journal's end; `counting` has the facts that are counted from `since` on, over
whole tables, with the reports that count them. A report or a table of `main` is that of one of
these, and has only the rows that are asked for.
"""

from collections.abc import Iterable, Iterator, Mapping

from lockkeeper_analytics.narrowing import (
    COUNTING,
    PRESENT,
    REPORTS,
    TABLES,
    Narrowing,
    counted,
    counts_from_whole,
    kept,
)
from lockkeeper_analytics.tables.database import MAIN, Made, Place, quoted
from lockkeeper_analytics.texts import REPORT

WHOLE, COUNTED, NOW = "whole", "counting", "present"
FILLED = (MAIN, WHOLE, NOW)
"""The schemas whose base tables are read."""


def views_to_make(
    views: Mapping[str, str], tables: Iterable[str], narrowing: Narrowing | None
) -> Iterator[Made]:
    """Yield *views* in `main` and what is behind them, each before those that read it.

    The base *tables* are in `main` already, and where something is narrowed in all of FILLED.
    """
    if narrowing is None:
        for name, text in views.items():
            yield Made(Place(MAIN, name), text, _is_fact(name))
        return
    for name in tables:
        yield Made(Place(COUNTED, name), f"FROM {WHOLE}.{name}")
    for name, text in views.items():
        made = counted(name, text, f"{WHOLE}.{name}", narrowing, quoted)
        is_fact = _is_fact(name)
        yield Made(Place(WHOLE, name), text, is_fact)
        yield Made(Place(NOW, name), text, is_fact)
        yield Made(Place(COUNTED, name), made, is_fact and not counts_from_whole(name))
        yield Made(Place(MAIN, name), _shown(name, narrowing))


def _is_fact(view: str) -> bool:
    return not view.endswith(REPORT) and view not in TABLES


def _schema_of(view: str) -> str:
    if view in PRESENT:
        return NOW
    is_counted = view.endswith(REPORT) and view.removesuffix(REPORT) in COUNTING
    return COUNTED if is_counted else WHOLE


def _shown(name: str, narrowing: Narrowing) -> str:
    """Return a table or a report with the rows that are asked for, and a fact as it is."""
    source = f"{_schema_of(name)}.{name}"
    if _is_fact(name):
        return f"FROM {source}"
    rule = TABLES[name] if name in TABLES else REPORTS[name.removesuffix(REPORT)]
    return kept(source, rule, narrowing, quoted)
