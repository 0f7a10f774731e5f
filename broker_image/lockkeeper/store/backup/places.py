"""Places of backups: a directory of this machine, or a URL that fsspec opens.

A place is flat: files by name. What is in a local one is durable when `write` returns.
"""

import os
from pathlib import Path
from typing import Any, Protocol

from lockkeeper.store.base import StoreError
from lockkeeper.store.kahadb.placing import make_file, sync_directory

FILE_SCHEME = "file://"


class Place(Protocol):
    """Files by name. Each method raises OSError, or StoreError with the way out."""

    def __str__(self) -> str:
        """Return where this is, for messages."""

    def names(self) -> list[str]:
        """Return the names of all that is here, none when the place is not there yet."""

    def read(self, name: str) -> bytes:
        """Return what is in a file. Raises FileNotFoundError when there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Make a new file."""

    def delete(self, name: str) -> None:
        """Take a file away."""

    def below(self, name: str) -> "Place":
        """Return the place of that name inside of this one."""

    def remove(self) -> None:
        """Take the place away when all of its files are."""


class LocalPlace:
    """A directory, made by the first write."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __str__(self) -> str:
        return str(self.directory)

    def names(self) -> list[str]:
        """Return the names of all that is here, none when the place is not there yet."""
        if not self.directory.exists():
            return []
        return sorted(path.name for path in self.directory.iterdir())

    def read(self, name: str) -> bytes:
        """Return what is in a file. Raises FileNotFoundError when there is none."""
        return (self.directory / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Make a new file, durably."""
        self.directory.mkdir(parents=True, exist_ok=True)
        descriptor = make_file(self.directory / name)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_directory(self.directory)

    def delete(self, name: str) -> None:
        """Take a file away."""
        (self.directory / name).unlink()

    def below(self, name: str) -> "LocalPlace":
        """Return the place of that name inside of this one."""
        return LocalPlace(self.directory / name)

    def remove(self) -> None:
        """Take the place away when all of its files are."""
        self.directory.rmdir()


class RemotePlace:
    """A folder of an fsspec file system: `s3://bucket/path`, `gs://…`, `abfs://…`."""

    def __init__(self, filesystem: Any, path: str, url: str) -> None:
        self._filesystem = filesystem
        self._path = path.rstrip("/")
        self._url = url.rstrip("/")

    def __str__(self) -> str:
        return self._url

    def names(self) -> list[str]:
        """Return the names of all that is here, none when the place is not there yet."""
        self._filesystem.invalidate_cache()
        try:
            found = self._filesystem.ls(self._path, detail=False)
        except FileNotFoundError:
            return []
        return sorted(path.rstrip("/").rpartition("/")[2] for path in found)

    def read(self, name: str) -> bytes:
        """Return what is in a file. Raises FileNotFoundError when there is none."""
        content: bytes = self._filesystem.cat_file(f"{self._path}/{name}")
        return content

    def write(self, name: str, content: bytes) -> None:
        """Make a new file."""
        self._filesystem.makedirs(self._path, exist_ok=True)
        self._filesystem.pipe_file(f"{self._path}/{name}", content)

    def delete(self, name: str) -> None:
        """Take a file away."""
        self._filesystem.rm_file(f"{self._path}/{name}")

    def below(self, name: str) -> "RemotePlace":
        """Return the place of that name inside of this one."""
        return RemotePlace(self._filesystem, f"{self._path}/{name}", f"{self._url}/{name}")

    def remove(self) -> None:
        """Take the place away where it is more than the beginning of names."""
        if self._filesystem.exists(self._path):
            self._filesystem.rmdir(self._path)


def open_place(text: str) -> Place:
    """Return the place that a path or a URL names. Raises StoreError."""
    local = text.removeprefix(FILE_SCHEME)
    if "://" not in local:
        return LocalPlace(Path(local))
    try:
        import fsspec
    except ImportError as error:
        way_out = "pip install 'lockkeeper-mq[backup]', or give a directory"
        raise StoreError(f"{text}: URLs need fsspec: {way_out}") from error
    try:
        filesystem, path = fsspec.core.url_to_fs(text)
    except (ImportError, ValueError) as error:
        raise StoreError(f"{text}: {error}") from error
    return RemotePlace(filesystem, path, text)
