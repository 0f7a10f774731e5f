"""Leftovers of processes that were killed, which only a master may delete.

Each of these names was used by one process only, and never by a data file: so a superseded master
that wakes in the middle of this deletes, at worst, what its successor has prepared, and the
successor makes another one.
"""

from collections.abc import Callable
from pathlib import Path

from lockkeeper.store.base import StoreError
from lockkeeper.store.kahadb.preallocation import SPARE_PREFIX, SPARE_SUFFIX
from lockkeeper.store.kahadb.rewriting import COPY_PREFIX, COPY_SUFFIX
from lockkeeper.store.kahadb.salvage import MENDED_PREFIX, MENDED_SUFFIX
from lockkeeper.store.spool import NAME_PREFIX, NAME_SUFFIX

COPY_PATTERN = f"{COPY_PREFIX}*{COPY_SUFFIX}"
LEFTOVER_PATTERNS = (
    COPY_PATTERN,
    f"{SPARE_PREFIX}*{SPARE_SUFFIX}",
    f"{NAME_PREFIX}*{NAME_SUFFIX}",
    f"{MENDED_PREFIX}*{MENDED_SUFFIX}",
    "next.zeros",  # what versions before called the spare file
)


def delete_leftovers(directory: Path, check: Callable[[], None]) -> None:
    """Delete what earlier masters prepared; *check* raises when this is none. Raises OSError."""
    for pattern in LEFTOVER_PATTERNS:
        _delete(directory, pattern, check)


def delete_copies(directory: Path, check: Callable[[], None]) -> None:
    """Delete the copies of data files that earlier masters made, before the journal is read.

    From then on no earlier master can put one in the place of a file. Raises StoreError.
    """
    try:
        _delete(directory, COPY_PATTERN, check)
    except OSError as error:
        raise StoreError(f"{directory}: {error.strerror}") from error


def _delete(directory: Path, pattern: str, check: Callable[[], None]) -> None:
    for path in directory.glob(pattern):
        if path.is_dir() and not path.is_symlink():
            # Somebody else's: there is no such directory of ours.
            continue
        check()
        path.unlink(missing_ok=True)
