"""SQL of the facts and reports: one text each, which Spark and DuckDB both run as it stands.

Texts of `facts/` are views of their own names, a report NAME of `reports/` is the view
NAME_report. They read the tables `records`, `statistics`, `events` and `files`, and each other.
"""

import re
from collections.abc import Set
from functools import cache
from importlib.resources import files

REPORT = "_report"
_SUFFIXES = {"facts": "", "tables": "", "reports": REPORT}
_COMMENT = re.compile(r"--[^\n]*")
_OWN = re.compile(r"\b(\w+) AS \(\s*SELECT\b")
_READ = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)")


@cache
def view_texts() -> dict[str, str]:
    """Return the text of every view by its name."""
    package = files("lockkeeper_analytics")
    return {
        path.name.removesuffix(".sql") + suffix: path.read_text("utf-8").strip()
        for room, suffix in _SUFFIXES.items()
        for path in sorted(package.joinpath(room).iterdir(), key=lambda path: path.name)
        if path.name.endswith(".sql")
    }


@cache
def times_read(text: str) -> tuple[str, ...]:
    """Return the names of the tables and views that *text* reads from, as often as it does."""
    said = _COMMENT.sub("", text)
    own = set(_OWN.findall(said))
    return tuple(name for name in _READ.findall(said) if name not in own)


def names_read(text: str) -> set[str]:
    """Return the names that *text* reads from."""
    return set(times_read(text))


def views_behind(names: Set[str]) -> dict[str, str]:
    """Return the views among *names* and those behind them, each before the ones that use it."""
    texts = view_texts()
    found: dict[str, str] = {}
    for name in sorted(names & texts.keys()):
        found |= views_behind(names_read(texts[name]))
        found[name] = texts[name]
    return found
