"""The directory of a broker: is it one, who is its master, and the store in it."""

import time
from pathlib import Path

from lockkeeper.journal.files import list_data_files
from lockkeeper.server.cluster.lease import LeaseGuard
from lockkeeper.server.conversion import milliseconds
from lockkeeper.store.base import Store, StoreError
from lockkeeper.store.kahadb import BothGuards, DirectoryLock, Guard, KahaDBStore
from lockkeeper.store.kahadb.index import IndexFiles
from lockkeeper_api import BrokerSpec

# What lies in a KahaDB directory, or may lie beside it without harm.
_OWN_PATTERNS = ("db-*.log", "db-*.log.*", "db.data", "db.redo", "db.free", "lock", "data-archive")
_GLANCE_BYTES = 4096


class Storage:
    """One broker's directory; at most one process at a time is its master."""

    def __init__(self, directory: Path, lease: LeaseGuard | None = None) -> None:
        """Make the directory if need be. Raises StoreError when it belongs to something else.

        With a *lease*, who has the lock needs that, too.
        """
        self._directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{directory}: {error.strerror}; give another --data") from error
        _refuse_foreign(directory)
        self._lock = DirectoryLock(directory)
        self._lease = lease
        self._guard: Guard = self._lock if lease is None else BothGuards(self._lock, lease)

    def try_lock(self) -> bool:
        """Become the master if nobody is. Raises StoreError when locking does not work there.

        A process that cannot reach the lease leaves the lock to one that can.
        """
        if self._lease is not None and not self._lease.is_watched:
            self._lock.release()
            return False
        return self._guard.try_acquire(time.time_ns() // 1_000_000)

    @property
    def awaited_lease(self) -> LeaseGuard | None:
        """The lease that this process, which has the lock, still waits for."""
        return self._lease if self._lock.is_held else None

    def examine(self) -> None:
        """Look whether a process could read what is there, as far as a glance tells.

        Raises StoreError. It changes nothing, and is for a standby: it is to be known before
        the master is gone.
        """
        IndexFiles(self._directory).require_readable_version()
        try:
            files = list_data_files(self._directory)
            for file in files[-1:]:
                with file.path.open("rb") as data:
                    data.read(_GLANCE_BYTES)
        except OSError as error:
            raise StoreError(f"{error.filename or self._directory}: {error.strerror}") from error

    def open(self, spec: BrokerSpec) -> Store:
        """Return the store, to be opened by the core; the lock must be held.

        The limits of *spec* are in bytes (see `usage`).
        """
        journal, usage = spec.journal, spec.system_usage
        return KahaDBStore(
            self._directory,
            self._guard,
            file_bytes_max=journal.file_bytes,
            cleanup_interval_ms=milliseconds(journal.cleanup_interval),
            archive=journal.archive,
            keep_alive_ms=milliseconds(spec.locker.keep_alive_period),
            bytes_max=usage.store_usage.limit,
            spool_bytes_max=usage.temp_usage.limit,
            deadline=None if self._lease is None else self._lease.deadline,
        )

    def release(self) -> None:
        """Let another process become the master."""
        self._guard.release()


def _refuse_foreign(directory: Path) -> None:
    """Raise StoreError when the directory holds files that are not a journal's."""
    names = [path.name for path in directory.iterdir()]
    foreign = [name for name in names if not any(map(Path(name).match, _OWN_PATTERNS))]
    own = len(names) - len(foreign)
    if foreign and not own:
        shown = ", ".join(sorted(foreign)[:3])
        raise StoreError(
            f"{directory}: not a journal's directory, it holds other files ({shown}); give an "
            "empty directory, or one that Lockkeeper or ActiveMQ's KahaDB has written, as --data"
        )
