"""Storage of journals and histories: folders of this machine, URLs that pyarrow or fsspec open.

Everything here only reads. Files may come and go meanwhile: a broker is at work.
"""

import io
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from lockkeeper.journal.files import data_file_id
from lockkeeper_analytics.errors import NoJournalError

ARCHIVE = "data-archive"
"""Where a broker moves files that it no longer needs, when it is told to keep them."""

BUFFER_BYTES = 256 * 1024
"""What is read ahead of a remote file: hopping from batch to batch takes many small reads."""

ARROW_SCHEMES = ("file", "s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class DataFile(NamedTuple):
    """A data file: its number, where it is, its length in bytes, and its last change in ms.

    When it was changed is infinite where nobody knows.
    """

    file_id: int
    path: str
    size: int
    changed: float = float("inf")

    @property
    def name(self) -> str:
        """Return its name, such as `db-3.log`."""
        return name_of(self.path)

    @property
    def is_archived(self) -> bool:
        """Tell whether it is in the archive."""
        return name_of(without_query(self.path)[0].rpartition("/")[0]) == ARCHIVE


def name_of(path: str) -> str:
    """Return the last part of a path or URL."""
    return without_query(path)[0].rstrip("/").rpartition("/")[2]


def is_url(path: str) -> bool:
    """Tell whether *path* is a URL, and no path of this machine."""
    return _URL.match(path) is not None


def parent_of(path: str) -> str:
    """Return the folder that *path*, a path or URL, is in."""
    place, query = without_query(path)
    if not query and not is_url(path):
        return str(Path(place).parent)
    return place.rstrip("/").rpartition("/")[0] + query


def there_is(path: str) -> bool:
    """Tell whether there is a file or a folder at *path*, a path or URL. Raises NoJournalError."""
    if not is_url(path):
        return Path(path).exists()
    from pyarrow.fs import FileType

    filesystem, inner = file_system(path)
    try:
        return filesystem.get_file_info(inner).type is not FileType.NotFound
    except OSError as error:
        raise NoJournalError(f"{path}: {error}") from error


def beside(path: str, name: str) -> str:
    """Return the path or URL of *name* in the folder *path*."""
    folder, query = without_query(path)
    return f"{folder.rstrip('/')}/{name}{query}"


def sibling_in_archive(path: str) -> str:
    """Return where the file at *path* is once it was archived."""
    place, query = without_query(path)
    folder, _, name = place.rpartition("/")
    return f"{folder or '.'}/{ARCHIVE}/{name}{query}"


def without_query(path: str) -> tuple[str, str]:
    """Return a URL without its query, and the query with its mark; paths have none."""
    place, mark, query = path.partition("?") if is_url(path) else (path, "", "")
    return place, mark + query


def list_folder(folder: str) -> list[DataFile]:
    """Return the data files in *folder* that are not empty, in no order.

    Raises NoJournalError when there is no such folder or it cannot be read.
    """
    try:
        return _list_remote(folder) if is_url(folder) else _list_local(folder)
    except FileNotFoundError:
        raise NoJournalError(f"{folder}: no such directory") from None
    except NotADirectoryError:
        reason = "not a directory; name the one that holds db-1.log"
        raise NoJournalError(f"{folder}: {reason}") from None
    except OSError as error:
        raise NoJournalError(f"{folder}: {error.strerror or error}") from error


def open_file(path: str | Path, ahead_bytes: int = BUFFER_BYTES) -> BinaryIO:
    """Open the file at *path* to be read; of a URL, *ahead_bytes* at least at a time.

    Raises OSError.
    """
    if isinstance(path, Path) or not is_url(path):
        # Through a buffer, a small read would fetch what is then read once more.
        return open(path, "rb", buffering=0)  # noqa: PTH123  # the caller closes it
    filesystem, inner = file_system(path)
    return io.BufferedReader(filesystem.open_input_file(inner), ahead_bytes)


def _list_local(folder: str) -> list[DataFile]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            file_id = data_file_id(entry.name)
            if file_id is None:
                continue
            try:
                state = entry.stat()
            except FileNotFoundError:
                continue
            if state.st_size and entry.is_file():
                path = beside(folder, entry.name)
                found.append(DataFile(file_id, path, state.st_size, state.st_mtime * 1000))
    return found


def _list_remote(folder: str) -> list[DataFile]:
    from pyarrow.fs import FileSelector, FileType

    filesystem, inner = file_system(folder)
    if filesystem.get_file_info(inner).type is FileType.File:
        raise NotADirectoryError(folder)
    found = []
    for entry in filesystem.get_file_info(FileSelector(inner)):
        file_id = data_file_id(entry.base_name)
        if file_id is not None and entry.type is FileType.File and entry.size:
            path = beside(folder, entry.base_name)
            changed = (entry.mtime_ns or 0) / 1e6
            found.append(DataFile(file_id, path, entry.size, changed or float("inf")))
    return found


@lru_cache(maxsize=64)
def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of *url* and the path in it. Raises NoJournalError."""
    from pyarrow import ArrowException
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

    scheme = url.partition("://")[0].lower()
    try:
        if scheme in ARROW_SCHEMES:
            found: tuple[Any, str] = FileSystem.from_uri(url)
            return found
        import fsspec

        filesystem, path = fsspec.core.url_to_fs(url)
    except (ArrowException, ImportError, ValueError) as error:
        raise NoJournalError(f"{url}: {error}") from error
    return PyFileSystem(FSSpecHandler(filesystem)), path
