"""Giving a file its name in a directory so that no file which is there already is ever replaced.

A process that was stopped at any moment, and superseded meanwhile, goes on with the system call
before which it stood. So what it makes has a name of its own until it is finished, and gets its
real one by a call that fails when that name is taken.
"""

import errno
import os
import secrets
from pathlib import Path
from typing import Final

NO_LINKS = frozenset((errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV))
_TOKEN_BYTES: Final = 8


def unique_path(directory: Path, prefix: str, suffix: str) -> Path:
    """Return a path that no other process, and no other call, will ever return."""
    return directory / f"{prefix}{secrets.token_hex(_TOKEN_BYTES)}{suffix}"


def make_file(path: Path) -> int:
    """Make a new file and return its descriptor. Raises OSError, also when it is there."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return os.open(path, flags, 0o644)


def place(source: Path, target: Path) -> bool:
    """Call the file *source* *target* from now on.

    Raises FileExistsError when there is another one. False when the file system knows no second
    names, or the first one is gone: a new master deletes what its predecessors prepared.
    """
    try:
        os.link(source, target)
    except FileExistsError:
        # A network file system may have done it, and lost the answer.
        if not target.samefile(source):
            raise
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno in NO_LINKS:
            return False
        raise
    source.unlink(missing_ok=True)
    return True


def sync_directory(directory: Path) -> None:
    """Make the names in *directory* durable. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
