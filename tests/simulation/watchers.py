"""What must hold at every moment: one writer for each file, accounts that the journal confirms."""

import contextlib
from typing import TYPE_CHECKING, Any

from simulation import threads
from simulation.faults import HARMLESS
from simulation.hub import SECOND, Process

from lockkeeper.journal.batch import EOF_RECORD
from lockkeeper.journal.errors import JournalError
from lockkeeper.store.base import StoreError
from lockkeeper.store.kahadb.audit import differences
from lockkeeper.store.kahadb.cleaner import JournalCleaner
from lockkeeper.store.kahadb.store import KahaDBStore

if TYPE_CHECKING:
    from simulation.life import Life

RECOUNT_EVERY = SECOND
RECOUNTS_MAX = 6
FRESH = 4 * SECOND
"""So much is left of a Lease that is renewed each second, and may be kept for 6 s."""
WAKING = SECOND // 20
"""What a broker says upon waking is with everybody by then."""


class Writers:
    """Who has written into each data file: one process, and after its end nobody.

    What a power cut left is nobody's. Only the mark of the end is set behind what is torn.

    Who was frozen right before a write, and has lost its lock as well, may carry that one out when
    there is a successor, in its own file: then it is `late_for` that one, which has read the file.
    """

    def __init__(self, life: "Life") -> None:
        self.late_for: Process | None = None
        self._pair = life.pair
        self._hub = life.world.hub
        self._disk = life.world.disk
        self._writers: dict[str, Process | None] = {}
        self._disk.on_write = self._wrote
        self._disk.on_name = self._named
        self._disk.on_power_cut = self._after_power_cut

    def _wrote(self, path: str, before: bytes, after: bytes) -> None:
        """Look who changes bytes."""
        process = self._hub.process()
        if not _is_data_file(path) or process is None:
            return
        if process.has_lost_locks and process is not self._pair.reader:
            self.late_for = self._pair.reader
        writer = self._writers.setdefault(path, process)
        if writer is not process and before != after and after != EOF_RECORD:
            whose = "a power cut" if writer is None else f"{writer.name} (process {writer.number})"
            name = path.rpartition("/")[2]
            self._hub.problem(f"{process.name} changes {name}, which is of {whose}")
            self._writers[path] = process

    def _named(self, old: str | None, new: str | None) -> None:
        """Follow a file to its next name; None is for no file."""
        writer = self._writers.pop(old, None) if old is not None else None
        if new is not None and _is_data_file(new):
            self._writers[new] = writer or self._hub.process()

    def _after_power_cut(self, paths: list[str]) -> None:
        """Note that nobody may write any more into what is there."""
        self._writers = {path: None for path in paths if _is_data_file(path)}


class Recounts:
    """Recounts from the journal alone what its files keep, after clean-ups."""

    def __init__(self, life: "Life") -> None:
        self._life = life
        self._hub = life.world.hub
        self.count = 0
        recounts = self
        maintain, delete = KahaDBStore._maintain, JournalCleaner._delete

        def note(self: JournalCleaner, file_ids: set[int]) -> bool:
            is_done = delete(self, file_ids)
            if file_ids:
                self.__dict__["has deleted"] = True
            return is_done

        def look(self: KahaDBStore, now: int) -> None:
            maintain(self, now)
            recounts.look(self)

        JournalCleaner._delete = note  # type: ignore[method-assign]
        KahaDBStore._maintain = look  # type: ignore[method-assign]
        self._next = 0

    def look(self, store: Any) -> None:
        """Recount, if a clean-up asks for it and all that was handed over is written."""
        cleaner, commit = store._cleaner, store._commit
        is_due = cleaner.__dict__.get("has deleted") and self._hub.now >= self._next
        if not is_due or commit.is_writing or commit.items or self.count >= RECOUNTS_MAX:
            return
        if self._life.writers.late_for is self._hub.process():
            return
        with contextlib.suppress(StoreError, OSError):
            # Who has been superseded knows nothing of what its successor does.
            store.lock.check_lock()
            self._recount(store)

    def _recount(self, store: Any) -> None:
        self.count += 1
        self._next = self._hub.now + RECOUNT_EVERY
        store._cleaner.__dict__["has deleted"] = False
        try:
            found = differences(store._directory, store._file_references)
        except JournalError as error:
            found = [str(error)]
        if found:
            self._hub.problem(f"accounts differ from the journal: {found[:3]}")


class Lateness:
    """Tells the books what was said by who could not know better, and came, or was read, late."""

    def __init__(self, life: "Life") -> None:
        self._pair = life.pair
        self._hub = life.world.hub
        life.books.comes_late = self._comes_late
        life.books.has_just_woken = self._has_just_woken

    def _comes_late(self) -> bool:
        """Tell whether what is read now was sent by a master that has a successor."""
        wire = getattr(threads.current_thread(), "wire", None)
        return wire is not None and wire._socket.end.peer.process is not self._pair.reader

    def _has_just_woken(self) -> bool:
        """Tell whether a broker was stopped until a moment ago."""
        now = self._hub.now
        return any(
            each.stopped_until and each.stopped_until + WAKING > now
            for each in self._pair.processes()
        )


class Steadiness:
    """Sees to it that a master stays for as long as nothing happens that it should end by."""

    def __init__(self, life: "Life") -> None:
        self._life = life
        self._master = life.pair.master()
        self._process = None if self._master is None else self._master.process
        # Who sleeps still does what it was about to do, once it wakes.
        now = life.world.hub.now
        self._is_calm = all(
            each.stopped_until <= now and not each.has_lost_locks for each in life.pair.processes()
        )
        # Who could not renew its Lease of late may lose it, though all is well from now on.
        engine = life.engine()
        deadline = None if engine is None else engine._deadline
        if deadline is not None and deadline.remaining < FRESH:
            self._is_calm = False

    def check(self, kinds: set[str]) -> None:
        """See that the master is the same as before, if only *kinds* of faults that allow it."""
        if self._master is None or not self._is_calm or kinds - HARMLESS:
            return
        if self._master.process is not self._process or not self._master.is_master:
            self._life.world.hub.problem(
                f"{self._master.name} does not stay the master, with nothing worse than {kinds}"
            )


def _is_data_file(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith("db-") and name.endswith(".log")
