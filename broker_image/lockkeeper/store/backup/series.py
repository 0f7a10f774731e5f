"""Backups of one journal beside each other, each in a place that is named by its time."""

import calendar
import re
import time

from lockkeeper.store.backup.manifest import MANIFEST_NAME, read_manifest, rfc3339
from lockkeeper.store.backup.places import Place
from lockkeeper.store.base import StoreError

_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"\d{8}T\d{6}Z", re.ASCII)
BROKEN_OFF_SECONDS = 86_400.0
"""A backup that is not whole for so long is none any more; another one may take hours."""


def next_of(series: Place) -> Place:
    """Return the place for a backup that begins now."""
    return series.below(time.strftime(_STAMP, time.gmtime()))


def delete_old(series: Place, keep: int) -> int:
    """Delete all but the newest *keep* backups, and what was broken off; returns how many.

    One that is not whole may still be made, by another process. Raises StoreError, OSError.
    """
    if keep < 1:
        raise ValueError("at least one backup is kept")
    names = _names(series)
    whole = [name for name in names if _is_whole(series.below(name))]
    if not whole:
        return 0
    others = [name for name in names if name not in whole and name < whole[-1]]
    going = [*whole[:-keep], *filter(_is_broken_off, others)]
    for name in going:
        _delete(series.below(name))
    return len(going)


def choose(place: Place, until: int | None) -> Place:
    """Return the backup to restore: *place* itself, or one of the series that it is.

    That is the newest, or the first that was taken at the time *until* (ms since the epoch) or
    later: of what was consumed after that time it misses least. Raises StoreError.
    """
    names = place.names()
    whole = [name for name in _names(place) if _is_whole(place.below(name))]
    if MANIFEST_NAME in names or not whole:
        return place
    if until is None:
        return place.below(whole[-1])
    for name in whole:
        one = place.below(name)
        if read_manifest(one.read(MANIFEST_NAME), str(one)).at >= until:
            return one
    raise StoreError(f"{place}: no backup was taken at {rfc3339(until)} or later")


def _names(series: Place) -> list[str]:
    """Return the names of the backups in a series, oldest first."""
    return [name for name in series.names() if _NAME.fullmatch(name)]


def _is_broken_off(name: str) -> bool:
    """Return whether a backup that is not whole is made by nobody any more."""
    try:
        begun = calendar.timegm(time.strptime(name, _STAMP))
    except ValueError:
        return True  # No time at all: nobody began it then.
    return time.time() - begun > BROKEN_OFF_SECONDS


def _is_whole(backup: Place) -> bool:
    return MANIFEST_NAME in backup.names()


def _delete(backup: Place) -> None:
    """Delete a backup; its manifest first, without which it is none."""
    for name in sorted(backup.names(), key=lambda name: name != MANIFEST_NAME):
        backup.delete(name)
    backup.remove()
