"""Labels of destinations: by name, and by their directory, too, where there are several."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from lockkeeper_analytics.reports.report import Row

Key = tuple[str, str, str]
Tables = dict[str, list[Row]]
Labels = Mapping[str, str]
"""What to put behind a name for each directory; nothing where there is only one."""


def key_of(row: Row) -> Key:
    """Return which destination *row* is about."""
    return row["directory"], row["destination_kind"], row["destination"]


def directory_labels(tables: Tables) -> dict[str, str]:
    """Return how the directories that rows are from are told apart: by their last part, if so."""
    found = {row["directory"] for rows in tables.values() for row in rows if "directory" in row}
    if len(found) < 2:
        return dict.fromkeys(found, "")
    last = {directory: PurePath(directory).name for directory in found}
    told_apart = len(set(last.values())) == len(found)
    return {each: f" ({last[each] if told_apart else each})" for each in found}


def name_of(row: Row, columns: Sequence[str], labels: Labels) -> str:
    """Return what *columns* call a row in a plot; the kind of a destination is left out."""
    shown = [
        str(row[name])
        for name in columns
        if name != "directory" and not name.endswith("_kind") and row[name] is not None
    ]
    last = labels.get(row["directory"], "") if "directory" in columns else ""
    return " \N{RIGHTWARDS ARROW} ".join(shown) + last if shown else last.strip(" ()")
