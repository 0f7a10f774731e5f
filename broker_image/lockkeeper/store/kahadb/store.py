"""The KahaDB store: one directory from open to close, behind the store's interface."""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId, XATransactionId
from lockkeeper.store.base import (
    SKIPPED,
    WAITING,
    WRITTEN,
    Add,
    DamagedError,
    Identity,
    Operation,
    Receipt,
    Recovered,
    Reference,
    Run,
    StoreError,
    StoreFile,
    StoreFullError,
    StoreUsage,
    Subscription,
)
from lockkeeper.store.kahadb.alarm import Alarm, EitherReadable
from lockkeeper.store.kahadb.appender import JournalAppender
from lockkeeper.store.kahadb.atomic_batch import IN_ATOMIC_BATCH
from lockkeeper.store.kahadb.cleaner import JournalCleaner
from lockkeeper.store.kahadb.cleanup import described
from lockkeeper.store.kahadb.commit import GroupCommit
from lockkeeper.store.kahadb.commit_delay import HOLD_MICROSECONDS, CommitDelay
from lockkeeper.store.kahadb.compaction import Compaction, Settings
from lockkeeper.store.kahadb.disk import Disk, disk_for, open_disk
from lockkeeper.store.kahadb.existing import ExistingQueues
from lockkeeper.store.kahadb.extracts import read_extract
from lockkeeper.store.kahadb.file_references import OFFSET_BITS
from lockkeeper.store.kahadb.files import JournalFiles
from lockkeeper.store.kahadb.index import IndexFiles
from lockkeeper.store.kahadb.keep_alive import KeepAlive
from lockkeeper.store.kahadb.leftovers import delete_copies
from lockkeeper.store.kahadb.lock import DirectoryLock
from lockkeeper.store.kahadb.paging import BodyReader
from lockkeeper.store.kahadb.recovery import Replayed, no_extract, replay_directory
from lockkeeper.store.kahadb.salvage import accept_loss
from lockkeeper.store.kahadb.segment_files import SegmentFiles
from lockkeeper.store.kahadb.streams import KahaDBStreams
from lockkeeper.store.kahadb.term import Term, term_line
from lockkeeper.store.kahadb.unsynced import make_durable
from lockkeeper.store.locker import Deadline, Locker, StoreLockedError, boot_milliseconds
from lockkeeper.store.spool import Spool

logger = logging.getLogger(__name__)

FILE_BYTES_MAX: Final = 32 << 20
BATCH_BYTES_MAX: Final = 4 << 20
CLEANUP_INTERVAL_MS: Final = 30_000
KEEP_ALIVE_MS: Final = 1_000
REMOVES_MAX: Final = 256
NO_WISHES: Final = Settings()
REMOVES_DELAY_MICROSECONDS = 10_000


class KahaDBStore:
    """Keeps messages in a KahaDB directory that ActiveMQ can take back at any time.

    Until the first write nothing in the directory changes but the lock. Removals without a
    receipt wait for company: at most 10 ms, or until 256 operations wait.
    """

    # Python looks up methods of an instance slowly that has more than 30 attributes otherwise.
    __slots__ = (
        "_accept_loss",
        "_alarm",
        "_alarm_rang",
        "_appender",
        "_archive",
        "_batch_bytes_max",
        "_bodies",
        "_bytes_max",
        "_cleaner",
        "_cleanup_interval_ms",
        "_clock",
        "_commit",
        "_commit_delay",
        "_compaction",
        "_deadline",
        "_directory",
        "_disk",
        "_existing",
        "_file_bytes_max",
        "_file_references",
        "_files",
        "_is_open",
        "_is_over_limit",
        "_keep_alive",
        "_make_disk",
        "_measured_files",
        "_readable",
        "_segment_files",
        "_settings",
        "_spool",
        "_term",
        "lock",
        "streams",
    )

    def __init__(
        self,
        directory: Path,
        lock: Locker | None = None,
        file_bytes_max: int = FILE_BYTES_MAX,
        batch_bytes_max: int = BATCH_BYTES_MAX,
        cleanup_interval_ms: int = CLEANUP_INTERVAL_MS,
        archive: bool = False,
        keep_alive_ms: int = KEEP_ALIVE_MS,
        bytes_max: int | None = None,
        spool_bytes_max: int | None = None,
        disk: Callable[[int], Disk] = open_disk,
        deadline: Deadline | None = None,
        clock: Callable[[], int] = boot_milliseconds,
        accept_loss: bool = False,
        compaction: Settings = NO_WISHES,
    ) -> None:
        """*lock* may be held already; `open` takes it otherwise, `close` gives it back.

        Nothing is written, and no receipt given back, past the *deadline*. What is due is told
        by *clock*, in ms: one that nobody sets, and that goes on while the machine sleeps.

        A journal that is damaged is refused, unless it *accepts loss*: then the damaged bytes are
        set aside, and the rest is served. *compaction* tells when files with little in them
        are copied without the rest.

        *disk* makes what syncs the files; it gets a descriptor in the directory to try on.
        """
        self.lock: Locker = DirectoryLock(directory) if lock is None else lock
        self._deadline = deadline
        self._clock = clock
        self._accept_loss = accept_loss
        self._settings = compaction
        self._directory = directory
        self._file_bytes_max = file_bytes_max
        self._batch_bytes_max = batch_bytes_max
        self._cleanup_interval_ms = cleanup_interval_ms
        self._make_disk = disk
        self._archive = archive
        self._keep_alive = KeepAlive(keep_alive_ms)
        self._bytes_max = bytes_max
        self._is_over_limit = False
        self._measured_files = 0
        self._spool = Spool(directory, spool_bytes_max)
        self._segment_files = SegmentFiles(directory, self._require_mastery)
        self._is_open = False
        self._alarm_rang = False
        self._commit_delay = CommitDelay()

    def open(self) -> Recovered:
        """See `Store.open`; raises StoreLockedError when another process is master."""
        if not self.lock.try_acquire(time.time_ns() // 1_000_000):
            raise StoreLockedError(f"{self._directory} is locked by another broker")
        try:
            IndexFiles(self._directory).require_readable_version()
            delete_copies(self._directory, self._require_mastery)
            replayed = self._replay()
            self.lock.check_lock()
            if replayed.last_batch is not None:
                make_durable(replayed.last_batch)
            self._begin(replayed)
        except BaseException:
            self.lock.release()
            raise
        for record, files in replayed.rollbacks:
            self._appender.roll_back(record, files)
        return replayed.recovered

    def _replay(self) -> Replayed:
        """Read the journal, without what is damaged if that is accepted. Raises StoreError.

        Whoever accepts loss has everything read: extracts hide what is damaged behind them.
        """
        find = no_extract if self._accept_loss else read_extract
        try:
            return replay_directory(self._directory, self._segment_files.make, find)
        except DamagedError:
            if not self._accept_loss:
                raise
        for loss in accept_loss(self._directory, self._require_mastery):
            logger.error("loss accepted: %s", loss)
        return replay_directory(self._directory, self._segment_files.make)

    def _begin(self, replayed: Replayed) -> None:
        """Get ready to write behind what was read."""
        files = self._files = JournalFiles(
            self._directory, self._file_bytes_max, self._archive, self._require_mastery
        )
        file_references = self._file_references = replayed.file_references
        self._disk = disk_for(self._directory, self._make_disk)
        self._alarm = Alarm()
        self._readable = EitherReadable(self._disk.fileno(), self._alarm.fileno())
        bodies = self._bodies = BodyReader(self._directory)
        commit = self._commit = GroupCommit(
            files, file_references, self._disk, self._batch_bytes_max, self._deadline
        )
        appender = self._appender = JournalAppender(file_references, commit, bodies)
        self._term = Term(files, commit, appender)
        self.streams = KahaDBStreams(self._segment_files, replayed, files, appender, bodies)
        known, are_told = replayed.recovered.existing, replayed.are_queues_told
        self._existing = ExistingQueues(files, appender, known, are_told)
        self._compaction = Compaction(file_references, files, commit, bodies, self._settings)
        every, compaction = self._cleanup_interval_ms, self._compaction
        self._cleaner = JournalCleaner(file_references, files, commit, appender, every, compaction)
        files.resume(replayed.last_file_id, replayed.tails)
        self._is_open = True

    def close(self) -> None:
        """See `Store.close`. Raises StoreError when not everything became durable."""
        if not self._is_open:
            self.lock.release()
            return
        self._is_open = False
        try:
            self._compaction.close()
            self._commit.drain()
        finally:
            self._readable.close()
            self._alarm.close()
            self._disk.close()
            self._files.close()
            self._spool.close()
            self.streams.close()
            self.lock.release()

    # Operations

    def add(self, destination: Destination, reference: Reference, receipt: Receipt | None) -> None:
        """See `Store.add`."""
        reference.state = WAITING
        reference.receipt = receipt
        entry = self._file_references.destination(destination)
        commit = self._commit
        commit.items.append(reference)
        commit.kinds.append(entry)
        commit.urgent += 1
        for subscription in entry.subscriptions.values():
            subscription.pending += 1

    def add_run(self, destination: Destination, references: Sequence[Reference]) -> None:
        """See `Store.add_run`."""
        self._appender.add_run(destination, references)

    def add_together(self, adds: Sequence[Add], receipt: Receipt | None) -> None:
        """See `Store.add_together`."""
        self._appender.add_together(adds)
        self._commit.urgent += 1
        self._appender.answer(receipt)

    def remove(
        self,
        destination: Destination,
        reference: Reference,
        receipt: Receipt | None = None,
        subscription: Subscription | None = None,
        skip_unwritten: bool = True,
    ) -> Receipt | None:
        """See `Store.remove`."""
        state = reference.state
        freed: Receipt | None = None
        if (
            state == WAITING
            and skip_unwritten
            and subscription is None
            and reference.location != IN_ATOMIC_BATCH
        ):
            reference.state = SKIPPED
            freed, reference.receipt = reference.receipt, None
        elif state in (WAITING, WRITTEN):
            self._appender.remove(destination, reference, subscription)
            self._commit.is_lazy = True
        if receipt is not None:
            self._appender.answer(receipt)
        return freed

    def remove_run(self, destination: Destination, references: Sequence[Reference]) -> None:
        """See `Store.remove_run`."""
        self._appender.remove_run(destination, references)
        self._commit.is_lazy = True

    def commit(
        self, transaction: TransactionId, operations: Sequence[Operation], receipt: Receipt | None
    ) -> None:
        """See `Store.commit`."""
        self._appender.commit(transaction, operations)
        self._appender.answer(receipt)

    def prepare(
        self, transaction: XATransactionId, operations: Sequence[Operation], receipt: Receipt | None
    ) -> None:
        """See `Store.prepare`."""
        self._appender.prepare(transaction, operations)
        self._appender.answer(receipt)

    def commit_prepared(
        self, transaction: XATransactionId, operations: Sequence[Operation], receipt: Receipt | None
    ) -> None:
        """See `Store.commit_prepared`."""
        self._appender.commit_prepared(transaction, operations)
        self._appender.answer(receipt)

    def rollback_prepared(
        self, transaction: XATransactionId, operations: Sequence[Operation], receipt: Receipt | None
    ) -> None:
        """See `Store.rollback_prepared`."""
        self._appender.rollback_prepared(transaction, operations)
        self._appender.answer(receipt)

    def subscribe(self, subscription: Subscription, receipt: Receipt | None) -> None:
        """See `Store.subscribe`."""
        self._appender.subscribe(subscription)
        self._appender.answer(receipt)

    def unsubscribe(self, subscription: Subscription, receipt: Receipt | None) -> None:
        """See `Store.unsubscribe`."""
        self._appender.unsubscribe(subscription)
        self._appender.answer(receipt)

    def release(self, reference: Reference) -> None:
        """See `Store.release`."""
        self._appender.release(reference)

    def release_run(self, run: Run) -> None:
        """See `Store.release_run`."""
        self._appender.release_run(run)

    def remove_destination(self, destination: Destination, receipt: Receipt | None) -> None:
        """See `Store.remove_destination`."""
        self._existing.forget(destination)
        self._appender.remove_destination(destination)
        self._appender.answer(receipt)

    def remember_queue(self, destination: Destination) -> None:
        """See `Store.remember_queue`."""
        self._commit.is_lazy |= self._existing.add(destination)

    def trace(self, text: str) -> None:
        """See `Store.trace`."""
        self._appender.trace(text)

    def begin_term(self, epoch: int, now: int, broker: Identity, replica: str) -> None:
        """See `Store.begin_term`."""
        line = term_line(epoch, now, broker, replica)
        self._term.begin(epoch, line, at_once=self._deadline is not None)

    def load(self, references: Sequence[Reference], next_sequence: int) -> None:
        """See `Store.load`."""
        self._bodies.load(references, next_sequence)
        if self._spool.used:
            self._spool.load(references, next_sequence)

    def spool(self, references: Sequence[Reference]) -> int:
        """See `Store.spool`."""
        return self._spool.put(references)

    def unspool(self, references: Sequence[Reference]) -> None:
        """See `Store.unspool`."""
        self._spool.forget(references)

    def is_spool_full(self) -> bool:
        """See `Store.is_spool_full`."""
        return self._spool.is_full

    # Writing

    def flush(self) -> Sequence[Receipt]:
        """See `Store.flush`."""
        commit = self._commit
        if commit.is_writing:
            return ()
        if commit.urgent:
            return () if self._holds_back(commit) else self._write()
        if commit.is_lazy and len(commit.items) >= REMOVES_MAX:
            return self._write()
        if commit.is_lazy and not self._alarm.is_set:
            self._alarm.set(REMOVES_DELAY_MICROSECONDS)
        return ()

    def _write(self) -> Sequence[Receipt]:
        receipts = self._commit.begin()
        if len(self._file_references.files) != self._measured_files:
            self._measure()
        return receipts

    def _measure(self) -> None:
        self._measured_files = len(self._file_references.files)
        if self._bytes_max is not None:
            self._is_over_limit = self.usage().bytes_on_disk > self._bytes_max

    def _holds_back(self, commit: GroupCommit) -> bool:
        """Tell whether to wait for acknowledgements that may make this write needless."""
        commit_delay = self._commit_delay
        if commit_delay.should_hold(commit.items, commit.kinds):
            if not commit_delay.is_holding:
                commit_delay.is_holding = True
                self._alarm.set(HOLD_MICROSECONDS)
            return True
        if commit_delay.is_holding:
            commit_delay.end(paid=True)
            if not commit.is_lazy:
                self._alarm.cancel()
        return False

    def waiting(self) -> int:
        """See `Store.waiting`."""
        return len(self._commit.items)

    def urgent(self) -> int:
        """See `Store.urgent`."""
        return self._commit.urgent

    def is_behind(self) -> bool:
        """See `Store.is_behind`."""
        commit = self._commit
        return commit.urgent > 0 or commit.is_lazy

    def completed(self) -> Sequence[Receipt]:
        """See `Store.completed`."""
        commit = self._commit
        self._alarm_rang |= self._alarm.has_rung()
        receipts = commit.completed()
        if commit.is_writing:
            return receipts
        is_late = self._alarm_rang and (commit.is_lazy or self._commit_delay.is_holding)
        if self._alarm_rang and self._commit_delay.is_holding:
            self._commit_delay.end(paid=False)
        self._alarm_rang = False
        return [*receipts, *(self._write() if is_late else self.flush())]

    def fileno(self) -> int | None:
        """See `Store.fileno`."""
        return self._readable.fileno()

    def check_full(self) -> None:
        """See `Store.check_full`."""
        self._files.check_full()
        if self._is_over_limit:
            raise StoreFullError(
                f"{self._directory}: the journal has reached systemUsage.storeUsage "
                f"({self._bytes_max} bytes); consume messages, or raise the limit"
            )

    def maintain(self, now: int) -> None:
        """See `Store.maintain`. Everything is due by the store's own clock."""
        steady = self._clock()
        try:
            if self._keep_alive.is_due(steady, now):
                self._require_mastery()
                self._term.require_last()
            self._maintain(steady)
        except StoreFullError:
            raise
        except StoreError as error:
            self._commit.give_up(error)
            raise

    def _maintain(self, now: int) -> None:
        """Do what is due at *now*, by the store's own clock."""
        if self._deadline is not None:
            self._deadline.check()
        # The cleaner deletes a file once all that was handed over before it looked is durable.
        self._term.repeat_in_new_file()
        self._commit.is_lazy |= self._existing.repeat()
        self._files.retry_spare()
        self._cleaner.run(now, in_haste=self._is_over_limit)
        self.streams.maintain()
        self._measure()

    def _require_mastery(self) -> None:
        """Raise LockLostError when this process may not change the directory; asks the disk."""
        if self._deadline is not None:
            self._deadline.check()
        self.lock.check_lock()

    def usage(self) -> StoreUsage:
        """See `Store.usage`."""
        files = self._file_references.files.values()
        size = sum(file.size for file in files)
        return StoreUsage(len(files), size, self.waiting(), self._spool.used)

    def files(self) -> Sequence[StoreFile]:
        """See `Store.files`."""
        files = self._files
        return described(self._file_references, files.file_id, files.kept_from)

    def file_of(self, reference: Reference) -> int:
        """See `Store.file_of`."""
        return reference.location >> OFFSET_BITS if reference.state == WRITTEN else 0
