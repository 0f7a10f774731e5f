"""Choice between two sources: records, or the histograms of the flight recorder."""

from lockkeeper_analytics.reports.report import Row

TRUSTED_SHARE = 0.99
"""Records that hold so much of what statistics count are as good, and tell more exactly."""

Key = tuple[str, str, str]


def trusted(rows: list[Row]) -> list[Row]:
    """Return of each destination the rows of one source: records, unless they hold too little."""
    counts: dict[tuple[Key, str], int] = {}
    for row in rows:
        each = _key(row), row["source"]
        counts[each] = counts.get(each, 0) + row["acknowledged"]
    return [row for row in rows if row["source"] == _trusted(counts, _key(row))]


def _trusted(counts: dict[tuple[Key, str], int], key: Key) -> str:
    recorded, counted = counts.get((key, "records"), 0), counts.get((key, "statistics"), 0)
    return "records" if recorded and recorded >= TRUSTED_SHARE * counted else "statistics"


def _key(row: Row) -> Key:
    return row["directory"], row["destination_kind"], row["destination"]
