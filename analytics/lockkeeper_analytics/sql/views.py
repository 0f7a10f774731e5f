"""Views that a query may name beside the tables: facts and reports.

Their texts are data files: those of `facts/` are views of their own names, a report NAME of
`reports/` is the view NAME_report. All are DuckDB's SQL, over the tables and each other.
"""

from collections.abc import Callable, Set
from functools import cache
from importlib.resources import files

_SUFFIXES = {"facts": "", "reports": "_report"}


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


def views_behind(names: Set[str], named: Callable[[str], set[str]]) -> dict[str, str]:
    """Return the views among *names* and those behind them, each before the ones that use it.

    *named* tells the names that a text uses.
    """
    texts = view_texts()
    found: dict[str, str] = {}
    for name in sorted(names & texts.keys()):
        found |= views_behind(named(texts[name]) - {name}, named)
        found[name] = texts[name]
    return found
