"""A backup put back into an empty directory, whole or not at all.

Files are fetched into a directory inside of it, which goes last: as long as it is there the
restore is not finished, and the next one begins anew. Meanwhile the directory is locked, as a
broker locks it: one that begins there stands by until the journal is whole.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lockkeeper.journal.files import data_file_id
from lockkeeper.store.backup.cutting import cut_at
from lockkeeper.store.backup.making import back_up
from lockkeeper.store.backup.manifest import MANIFEST_NAME, Manifest, read_manifest, rfc3339
from lockkeeper.store.backup.opening import count_pending, open_journal
from lockkeeper.store.backup.places import LocalPlace, Place
from lockkeeper.store.base import StoreError
from lockkeeper.store.kahadb.lock import LOCK_NAME, DirectoryLock
from lockkeeper.store.kahadb.placing import sync_directory

UNFINISHED_NAME = ".restoring"
IGNORED = frozenset(("lost+found", LOCK_NAME))
"""What a new file system has, and what no journal is in."""


def restore(place: Place, directory: Path, until: int | None = None) -> int:
    """Put the backup at *place* into *directory*, which is empty or not there yet.

    With *until* (ms since the epoch) the journal ends there. Returns how many messages a broker
    will find. Raises StoreError, OSError.
    """
    manifest = fetch_manifest(place)
    if until is not None and until > manifest.at:
        reason = f"{place}: ends at {rfc3339(manifest.at)}; take a later backup, or that time"
        raise StoreError(reason)
    with _alone(directory):
        unfinished = _begin(directory)
        for file in manifest.files:
            content = place.read(file.name)
            file.require(content, str(place))
            unfinished.write(file.name, content)
        return _opened(directory, unfinished, until)


def copy_journal(journal: Path, directory: Path, until: int | None = None) -> int:
    """Put the journal of a broker, which may write it, into *directory*; as `restore` otherwise."""
    with _alone(directory):
        unfinished = _begin(directory)
        back_up(journal, unfinished)
        unfinished.delete(MANIFEST_NAME)
        return _opened(directory, unfinished, until)


def holds_journal(directory: Path) -> bool:
    """Return whether a journal is in *directory*; one whose restore was broken off is none."""
    if not directory.is_dir() or (directory / UNFINISHED_NAME).exists():
        return False
    return any(data_file_id(path.name) is not None for path in directory.iterdir())


def fetch_manifest(place: Place) -> Manifest:
    """Return the manifest of the backup at *place*. Raises StoreError when there is none."""
    try:
        return read_manifest(place.read(MANIFEST_NAME), str(place))
    except FileNotFoundError as error:
        reason = f"{place}: no whole backup, {MANIFEST_NAME} is missing"
        raise StoreError(f"{reason}; name the place that `lockkeeper backup` was given") from error


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Lock the directory against brokers, and other restores. Raises StoreError."""
    lock = DirectoryLock(directory)
    try:
        if not lock.try_acquire(time.time_ns() // 1_000_000):
            reason = "a broker, or another restore, has the lock"
            raise StoreError(f"{directory}: {reason}; stop it, or give another directory")
        yield
    finally:
        lock.release()


def _begin(directory: Path) -> LocalPlace:
    """Make the directory for what is fetched; take away what an earlier restore left halfway."""
    directory.mkdir(parents=True, exist_ok=True)
    unfinished = LocalPlace(directory / UNFINISHED_NAME)
    if unfinished.directory.exists():
        for name in unfinished.names():
            unfinished.delete(name)
        for path in directory.iterdir():
            if data_file_id(path.name) is not None:
                path.unlink()
    strangers = {path.name for path in directory.iterdir()} - IGNORED - {UNFINISHED_NAME}
    if strangers:
        reason = f"{directory}: not empty, {min(strangers)} is there"
        raise StoreError(f"{reason}; give a directory that is not there yet")
    unfinished.directory.mkdir(exist_ok=True)
    sync_directory(directory)
    return unfinished


def _opened(directory: Path, unfinished: LocalPlace, until: int | None) -> int:
    """Open what was fetched, then give it its place; returns how many messages wait."""
    if until is not None:
        cut_at(unfinished.directory, until)
    recovered = open_journal(unfinished.directory)
    _finish(directory, unfinished)
    return count_pending(recovered)


def _finish(directory: Path, unfinished: LocalPlace) -> None:
    """Give the fetched files their names, durably."""
    for name in unfinished.names():
        (unfinished.directory / name).rename(directory / name)
    sync_directory(directory)
    unfinished.remove()
    sync_directory(directory)
