"""Figures as people read them: counts, durations, sizes, moments (UTC), or a dash."""

from datetime import UTC, datetime

UNKNOWN = "\N{EN DASH}"
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")


def count(number: float | None) -> str:
    """Return a count such as `336,776`."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def decimal(number: float | None) -> str:
    """Return a number such as `0.25`, `3.1` or `1,204`: with a fraction where that says much."""
    if number is None:
        return UNKNOWN
    return f"{number:,.0f}" if abs(number) >= 100 or number == int(number) else f"{number:.3g}"


def share(part: float, whole: float) -> str:
    """Return *part* of *whole* in percent, with a digit more where it is small."""
    if not whole:
        return UNKNOWN
    percent = 100 * part / whole
    if percent and percent < 0.1:
        return "< 0.1 %"
    return f"{percent:.0f} %" if percent >= 99.95 or percent < 0.05 else f"{percent:.1f} %"


def milliseconds(value: float | None) -> str:
    """Return a duration such as `1.2 ms`, `113 ms`, `2.16 s`, `5 min 3 s` or `2 h 5 min`."""
    if value is None:
        return UNKNOWN
    if value < 9.95:
        return f"{value:.1f} ms".replace(".0 ", " ")
    if value < 999.5:
        return f"{value:.0f} ms"
    if value < 59_950:
        return f"{value / 1000:.3g} s"
    seconds = round(value / 1000)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    if seconds < 86_400:
        return f"{seconds // 3600} h {seconds % 3600 // 60} min"
    return f"{seconds // 86_400} d {seconds % 86_400 // 3600} h"


def size(amount: float | None) -> str:
    """Return a number of bytes such as `32 MiB`."""
    if amount is None:
        return UNKNOWN
    unit = 0
    while amount >= 1000 and unit < len(_SIZES) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.3g} {_SIZES[unit]}" if unit else f"{amount:.0f} B"


def clock(moment: datetime | None) -> str:
    """Return the time of day such as `11:52:14`."""
    return UNKNOWN if moment is None else f"{moment.astimezone(UTC):%H:%M:%S}"


def day(moment: datetime) -> str:
    """Return the date such as `21 November 2026`."""
    return f"{moment.astimezone(UTC).day} {moment.astimezone(UTC):%B %Y}"


def moment(value: datetime | None) -> str:
    """Return date and time such as `21 November 2026, 11:52:14`."""
    return UNKNOWN if value is None else f"{day(value)}, {clock(value)}"


def short(value: datetime) -> str:
    """Return date and time for a table, such as `21 Nov 11:52:14`."""
    moment = value.astimezone(UTC)
    return f"{moment.day} {moment:%b %H:%M:%S}"


def span(first: datetime | None, last: datetime | None) -> str:
    """Return two moments with the date said once where it is the same."""
    if first is None or last is None:
        return moment(first or last)
    same = first.astimezone(UTC).date() == last.astimezone(UTC).date()
    return f"{moment(first)} {UNKNOWN} {clock(last) if same else moment(last)}"
