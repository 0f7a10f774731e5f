"""The directory of a broker: is it one, who is its master, and the store in it."""

import time
from collections.abc import Sequence
from pathlib import Path

from lockkeeper.journal.files import list_data_files
from lockkeeper.server.cluster.lease import LeaseGuard
from lockkeeper.server.conversion import milliseconds
from lockkeeper.store.base import Store, StoreError
from lockkeeper.store.kahadb import DirectoryLock, KahaDBStore
from lockkeeper.store.kahadb.compaction import Settings as Compacting
from lockkeeper.store.kahadb.index import IndexFiles
from lockkeeper.store.kahadb.leftovers import LEFTOVER_PATTERNS
from lockkeeper.store.locker import BothGuards, Locker
from lockkeeper_api import Broker, BrokerSpec
from lockkeeper_api.pod_names import ACCEPT_LOSS_ANNOTATION, ACCEPT_LOSS_FILE

# What lies in a KahaDB directory, or may lie beside it without harm.
_OWN_PATTERNS = (
    "db-*.log",
    "db-*.log.*",
    "db.data",
    "db.redo",
    "db.free",
    "lock",
    "data-archive",
    "damaged",
    *LEFTOVER_PATTERNS,
)
_ON_EMPTY_VOLUMES = "lost+found"
_GLANCE_BYTES = 4096


class Storage:
    """One broker's directory; at most one process at a time is its master."""

    def __init__(
        self, directory: Path, lease: LeaseGuard | None = None, accept_loss: bool = False
    ) -> None:
        """Make the directory if need be. Raises StoreError when it belongs to something else.

        With a *lease*, who has the lock needs that, too. A damaged journal is served without
        what is damaged only to *accept loss*.
        """
        self._directory = directory
        self._accept_loss = accept_loss
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{directory}: {error.strerror}; give another --data") from error
        _refuse_foreign(directory)
        self._lock = DirectoryLock(directory)
        self._lease = lease
        self._locker: Locker = self._lock if lease is None else BothGuards(self._lock, lease)

    def try_lock(self) -> bool:
        """Become the master if nobody is. Raises StoreError when locking does not work there.

        A process that cannot reach the lease leaves the lock to one that can.
        """
        lease = self._lease
        if lease is not None and not lease.is_watched:
            self._lock.release()
            lease.withdraw()
            return False
        is_master = self._locker.try_acquire(time.time_ns() // 1_000_000)
        if lease is not None and not self._lock.is_held:
            lease.withdraw()
        return is_master

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
            self._locker,
            file_bytes_max=journal.file_bytes,
            cleanup_interval_ms=milliseconds(journal.cleanup_interval),
            archive=journal.archive,
            compaction=Compacting(
                journal.enable_ack_compaction,
                journal.compact_acks_after_no_gc,
                journal.compact_acks_ignores_store_growth,
                in_own_process=True,
            ),
            keep_alive_ms=milliseconds(spec.locker.keep_alive_period),
            bytes_max=usage.store_usage.limit,
            spool_bytes_max=usage.temp_usage.limit,
            deadline=None if self._lease is None else self._lease.deadline,
            accept_loss=self._accept_loss,
        )

    def release(self) -> None:
        """Let another process become the master."""
        self._locker.release()


def accepts_loss(resource: Broker, files: Sequence[Path]) -> bool:
    """Tell whether a person wants what is sound of a damaged journal to be served.

    The resource says so, or, in a pod, a file beside its configuration.
    """
    told = resource.metadata.annotations.get(ACCEPT_LOSS_ANNOTATION) == "true"
    return told or any((path.parent / ACCEPT_LOSS_FILE).is_file() for path in files)


def _refuse_foreign(directory: Path) -> None:
    """Raise StoreError when the directory holds files that are not a journal's."""
    names = [path.name for path in directory.iterdir() if path.name != _ON_EMPTY_VOLUMES]
    foreign = [name for name in names if not any(map(Path(name).match, _OWN_PATTERNS))]
    own = len(names) - len(foreign)
    if foreign and not own:
        shown = ", ".join(sorted(foreign)[:3])
        raise StoreError(
            f"{directory}: not a journal's directory, it holds other files ({shown}); give an "
            "empty directory, or one that Lockkeeper or ActiveMQ's KahaDB has written, as --data"
        )
