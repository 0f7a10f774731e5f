"""The store of a broker under test: a KahaDB journal in memory, whose disk can be full."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lockkeeper.server.conversion import milliseconds
from lockkeeper.server.usage import measured
from lockkeeper.store.base import Store, StoreFullError
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper_api import BrokerSpec

if TYPE_CHECKING:
    from collections.abc import Callable

IN_MEMORY = Path("/dev/shm")
FILE_BYTES = 1 << 18
"""A journal file of tests: one of the default length takes as long to prepare as a short test."""


def directory_in_memory() -> Path | None:
    """Return where files lie in memory; None where no such place is known."""
    return IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None


class UnsyncedDisk:
    """Says at once that everything is durable; `lockkeeper.store.kahadb.disk.Disk` tells more.

    That is true of a process that is killed: what it wrote is the kernel's already.
    """

    def __init__(self, descriptor: int) -> None:
        self._eventfd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def submit(self, descriptor: int) -> None:
        """See `Disk.submit`."""
        os.eventfd_write(self._eventfd, 1)

    def completed(self) -> bool:
        """See `Disk.completed`."""
        try:
            os.eventfd_read(self._eventfd)
        except BlockingIOError:
            return False
        return True

    def wait(self) -> None:
        """See `Disk.wait`."""
        self.completed()

    def fileno(self) -> int:
        """See `Disk.fileno`."""
        return self._eventfd

    def close(self) -> None:
        """See `Disk.close`."""
        os.close(self._eventfd)


class FillableStore:
    """A KahaDB store; while `is_full` it refuses messages as one without room on its disk does.

    Acknowledgements go on, as they do there: data files are made in their full length beforehand.
    """

    def __init__(self, directory: Path, spec: BrokerSpec) -> None:
        """*directory* may hold a journal already; the limits of *spec* are honoured."""
        self.is_full = False
        self._directory = directory
        limits = measured(spec, directory)
        journal, usage = limits.journal, limits.system_usage
        is_given = "file_bytes" in journal.model_fields_set
        self._store = KahaDBStore(
            directory,
            file_bytes_max=journal.file_bytes if is_given else FILE_BYTES,
            cleanup_interval_ms=milliseconds(journal.cleanup_interval),
            archive=journal.archive,
            bytes_max=usage.store_usage.limit,
            spool_bytes_max=usage.temp_usage.limit,
            disk=UnsyncedDisk,
        )

    @property
    def face(self) -> Store:
        """Store that the core gets: this object, which leaves all else to the KahaDB store."""
        return cast("Store", self)

    def __getattr__(self, name: str) -> "Callable[..., Any]":
        method: Callable[..., Any] = getattr(self._store, name)
        return method

    def check_full(self) -> None:
        """See `Store.check_full`."""
        if self.is_full:
            raise StoreFullError(f"{self._directory}: no room on the disk (fill_disk)")
        self._store.check_full()
