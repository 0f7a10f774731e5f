"""Names of data files: `db-N.log`, N from 1 upwards, gaps allowed (kahadb.md section 1)."""

import errno
import re
from pathlib import Path
from typing import NamedTuple

FILE_ID_MAX = 2**31 - 1
_NAME = re.compile(r"db-(\d+)\.log", re.ASCII)


class DataFile(NamedTuple):
    """A data file of a directory: its number, where it is, its length in bytes."""

    file_id: int
    path: Path
    size: int


def data_file_name(file_id: int) -> str:
    """Return the name of data file *file_id*."""
    return f"db-{file_id}.log"


def data_file_id(name: str) -> int | None:
    """Return the number in a data file's *name*, or None when it is not one."""
    match = _NAME.fullmatch(name)
    if match is None or int(match[1]) > FILE_ID_MAX:
        return None
    return int(match[1])


def list_data_files(directory: Path) -> list[DataFile]:
    """Return the data files of *directory* in numeric order, without those of length zero.

    Raises OSError when the directory cannot be read, or when something else bears such a name: a
    link to a disk that is away must not be taken for messages that never were.
    """
    found = []
    for path in directory.iterdir():
        file_id = data_file_id(path.name)
        if file_id is None or not (path.is_symlink() or path.exists()):
            continue
        if not path.is_file():
            raise OSError(errno.EINVAL, "no file, but a data file's name", str(path))
        if path.name != data_file_name(file_id):
            reason = f"a data file must be called {data_file_name(file_id)}; rename it, or move it"
            raise OSError(errno.EINVAL, reason, str(path))
        if size := path.stat().st_size:
            found.append(DataFile(file_id, path, size))
    return sorted(found)
