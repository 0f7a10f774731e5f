"""Backups of one journal beside each other, each in a place that is named by its time."""

import re
import time

from lockkeeper.store.backup.manifest import MANIFEST_NAME, read_manifest, rfc3339
from lockkeeper.store.backup.places import Place
from lockkeeper.store.base import StoreError

_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"\d{8}T\d{6}Z", re.ASCII)


def next_of(series: Place) -> Place:
    """Return the place for a backup that begins now."""
    return series.below(time.strftime(_STAMP, time.gmtime()))


def delete_old(series: Place, keep: int) -> int:
    """Delete all but the newest *keep* backups, and what was broken off; returns how many.

    Raises StoreError, OSError.
    """
    if keep < 1:
        raise ValueError("at least one backup is kept")
    whole = [name for name in _names(series) if _is_whole(series.below(name))]
    kept = whole[-keep:]
    going = [name for name in _names(series) if kept and name < kept[-1] and name not in kept]
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


def _is_whole(backup: Place) -> bool:
    return MANIFEST_NAME in backup.names()


def _delete(backup: Place) -> None:
    """Delete a backup; its manifest first, without which it is none."""
    for name in sorted(backup.names(), key=lambda name: name != MANIFEST_NAME):
        backup.delete(name)
    backup.remove()
