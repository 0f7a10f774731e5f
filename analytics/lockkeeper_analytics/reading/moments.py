"""Times that are told as how long ago they were."""

import re
from datetime import UTC, datetime, timedelta

_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?[dhms])+")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([dhms])")
FIRST = "0001-01-01"
"""What is longer ago than years count."""
_SECONDS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def moment(text: str, now: datetime) -> str:
    """Return *text* as the data source takes it; `24h` or `1h30m` is so long before *now*."""
    if not _DURATION.fullmatch(text):
        return text
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    try:
        then = now.astimezone(UTC) - timedelta(seconds=seconds)
    except OverflowError:
        return FIRST
    return then.isoformat(timespec="milliseconds")
