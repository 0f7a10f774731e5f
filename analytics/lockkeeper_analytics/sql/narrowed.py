"""Views that tell everything from whole tables, and show what is asked for.

With `destination` or `since` a query finds three schemas: its own, `main`, has the tables with the
rows that are asked for; `whole` has all rows, with all views over them; `counting` has the facts
that are counted from then on, over whole tables, with the reports that count them. A report of
`main` is that of one of these, and has only the rows that are asked for.
"""

from collections.abc import Iterable, Mapping

from lockkeeper_analytics.facts.narrowing import (
    COUNTING,
    FACTS,
    MADE_OF_COUNTED,
    REPORTS,
    SINCE,
    Kept,
    Narrowing,
)

WHOLE, COUNTED = "whole", "counting"
_REPORT = "_report"


def narrowed_views(
    views: Mapping[str, str], tables: Iterable[str], narrowing: Narrowing
) -> list[str]:
    """Return the statements that make *views* in `main` and what is behind them.

    The *tables* are in the schema `whole` already.
    """
    made = [f"CREATE OR REPLACE VIEW {COUNTED}.{name} AS FROM {WHOLE}.{name}" for name in tables]
    for name, text in views.items():
        made.append(f"CREATE OR REPLACE VIEW {WHOLE}.{name} AS {text}")
        made.append(f"CREATE OR REPLACE VIEW {COUNTED}.{name} AS {_counted(name, text, narrowing)}")
        made.append(f"CREATE OR REPLACE VIEW main.{name} AS {_shown(name, narrowing)}")
    return made


def _counted(name: str, text: str, narrowing: Narrowing) -> str:
    if name in _RULES:
        source = f"({text})" if name == _SUMMED_UP else f"{WHOLE}.{name}"
        return _kept(source, _RULES[name], narrowing)
    if name in MADE_OF_COUNTED or name.endswith(_REPORT):
        return text
    return f"FROM {WHOLE}.{name}"


def _shown(name: str, narrowing: Narrowing) -> str:
    """Return a report with the rows that are asked for, and anything else as it is."""
    if not name.endswith(_REPORT):
        return f"FROM {WHOLE}.{name}"
    report = name.removesuffix(_REPORT)
    place = COUNTED if report in COUNTING else WHOLE
    return _kept(f"{place}.{name}", REPORTS[report], narrowing)


def _kept(source: str, rule: Kept, narrowing: Narrowing) -> str:
    conditions = []
    if rule.since and narrowing.since:
        since = f"CAST(epoch_ms({narrowing.since}) AS TIMESTAMPTZ)"
        conditions.append(rule.since.replace(SINCE, since))
    if rule.destination and narrowing.destinations:
        kind, name = rule.destination
        pattern = narrowing.url_pattern.replace("'", "''")
        conditions.append(f"regexp_matches({kind} || '://' || {name}, '{pattern}')")
    where = f" WHERE {' AND '.join(f'({each})' for each in conditions)}" if conditions else ""
    return f"SELECT told.* FROM {source} told{where}"


# The facts that are counted, by their names in SQL; what moved is summed up of those that are.
_RULES = {{"statistics": "counted"}.get(name, name): rule for name, rule in FACTS.items()}
_SUMMED_UP = "moves"
