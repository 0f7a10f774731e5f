"""Group commit: one batch is being synced, everything that arrives meanwhile is the next one.

A batch is written with one system call behind the last one of the current file, then synced
without waiting. Only one sync is outstanding, so that at most one batch can be torn. A transaction
or a message that is much larger than a batch should be is written in pieces: see `writing_ahead`.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from zlib import adler32

from lockkeeper.journal.batch import (
    CONTROL,
    CONTROL_SIZE,
    CONTROL_START,
    EOF_RECORD,
    EOF_SIZE,
    control_record,
)
from lockkeeper.store.base import Receipt, StoreError, StoreFullError
from lockkeeper.store.kahadb.disk import Disk
from lockkeeper.store.kahadb.file_references import FileEntry, FileReferences
from lockkeeper.store.kahadb.files import JournalFiles
from lockkeeper.store.kahadb.waiting import (
    Batch,
    gather,
    needs_writing,
    settle,
    undo,
)
from lockkeeper.store.kahadb.writing_ahead import WritingAhead, write_all
from lockkeeper.store.locker import Deadline

logger = logging.getLogger(__name__)

LARGE_FACTOR: Final = 4
"""What is so many times a batch is written in pieces; each takes a sync of its own."""
JOINED_BYTES_MAX: Final = 256 << 10
JOINED_PART_BYTES_MAX: Final = 16 << 10
"""Of batches and of their parts on average: more is not copied to be written at once."""
BUFFERS_MAX: Final = 1000
"""The system takes 1024 buffers at once."""
FRAME_BYTES: Final = CONTROL_SIZE + EOF_SIZE
ATOMIC_BATCH_BYTES_MAX = 2**31 - 2**20
"""What one batch may hold at most: offsets in a file are 32 bits."""


class GroupCommit:
    """Writes what waits. Raises StoreError for good once the journal cannot be trusted.

    `items` and `kinds` are what waits (see `waiting`). `urgent` counts operations that
    somebody waits for, `is_lazy` that what waits should be written soon without that.
    `trace_bytes` is the size of the trace records among it.
    """

    def __init__(
        self,
        files: JournalFiles,
        file_references: FileReferences,
        disk: Disk,
        batch_bytes_max: int,
        deadline: Deadline | None = None,
    ) -> None:
        """Past the *deadline* nothing is written, and nothing is durable any more."""
        self.items: list[Any] = []
        self.kinds: list[Any] = []
        self.urgent = 0
        self.is_lazy = False
        self.trace_bytes = 0
        self.is_writing = False
        self._files = files
        self._file_references = file_references
        self._disk = disk
        self._deadline = deadline
        self._batch_bytes_max = batch_bytes_max
        self._receipts: list[Receipt] = []
        self._failure: StoreError | None = None
        self._ahead: WritingAhead | None = None
        self._is_left = False
        self._taken = 0
        self._durable = 0

    @property
    def position(self) -> int:
        """Number of items handed over so far."""
        return self._taken + len(self.items)

    def is_durable(self, position: int) -> bool:
        """Tell whether everything handed over up to *position* is durable."""
        return self._durable >= position

    def begin(self) -> Sequence[Receipt]:
        """Write what waits, as far as it goes into one batch; only while nothing is written.

        Of a large batch that is a piece, and everything waits until it is whole, or until nobody
        needs it. Returns receipts that needed no write. Without room on the disk everything stays.
        """
        if self._failure is not None:
            raise self._failure
        if self._deadline is not None:
            self._deadline.check()
        try:
            if self._ahead is not None and not self._ahead.is_needed:
                self._ahead, self._is_left = None, True
            if self._ahead is not None and not self._ahead.is_whole:
                self._write_ahead(self._ahead)
                return ()
            batch = self._gather()
            if self._ahead is None and batch.size > LARGE_FACTOR * self._batch_bytes_max:
                undo(batch)
                self._write_ahead(self._begin_ahead(batch))
                return ()
            if batch.size:
                self._write(batch)
        except StoreFullError:
            return ()
        except StoreError as error:
            self.give_up(error)
            raise
        settle(batch, self._files.file_id)
        self._use_up(batch)
        if not batch.size:
            # What was refused is not needed any more: there may be room for what comes.
            self._files.refusal = ""
            self._durable = self._taken
            return batch.receipts
        self._receipts = batch.receipts
        return ()

    def completed(self) -> Sequence[Receipt]:
        """Return the receipts of the write that has become durable, if one has."""
        try:
            if not self.is_writing or not self._disk.completed():
                return ()
        except OSError as error:
            raise self._fail(error) from error
        return self._finish()

    def finish(self) -> Sequence[Receipt]:
        """Wait for the write that is under way; returns its receipts."""
        try:
            self._disk.wait()
        except OSError as error:
            raise self._fail(error) from error
        return self._finish()

    def drain(self) -> None:
        """Write and sync everything that waits. Raises StoreError when that cannot be done."""
        if self._failure is not None and (self.is_writing or self.items):
            raise self._failure
        if self.is_writing:
            self.finish()
        while self.items:
            waiting = len(self.items)
            self.begin()
            if self.is_writing:
                self.finish()
            elif len(self.items) == waiting:
                raise StoreFullError(f"{self._path}: no room for what was not yet written")

    def give_up(self, error: StoreError) -> None:
        """Write nothing more, whatever happens: *error* is raised instead."""
        if self._failure is None:
            self._failure = error

    def _finish(self) -> Sequence[Receipt]:
        if self._deadline is not None:
            # What took so long may have come too late for whoever reads the journal now.
            self._deadline.check()
        self.is_writing = False
        self._durable = self._taken
        receipts, self._receipts = self._receipts, []
        return receipts

    def _gather(self) -> Batch:
        """Return the next batch, in a new file where it does not fit into the current one.

        So it is where a message is left that was being written ahead and that nobody needs any
        more: what there is of it has to stay behind the end that is there.
        """
        files = self._files
        if files.descriptor < 0 or self._is_left:
            if not needs_writing(self.items, self.kinds):
                return gather(self.items, self.kinds, 0, 0, 0, 0)
            self._rotate()
        batch = self._gather_here()
        if batch.is_cut and not batch.size:
            self._rotate()
            batch = self._gather_here()
        return batch

    def _gather_here(self) -> Batch:
        files = self._files
        room = files.file_bytes_max - files.end - FRAME_BYTES
        first_room = room if files.end else ATOMIC_BATCH_BYTES_MAX
        start = files.end + CONTROL_SIZE
        limit = min(room, self._batch_bytes_max)
        return gather(self.items, self.kinds, files.file_id, start, limit, first_room)

    def _rotate(self) -> None:
        self._files.rotate(is_early=self._is_left)
        self._is_left = False
        self._file_references.files[self._files.file_id] = FileEntry(self._files.file_bytes_max)

    def _begin_ahead(self, batch: Batch) -> WritingAhead:
        files, piece_bytes = self._files, self._batch_bytes_max
        self._ahead = WritingAhead(files.descriptor, files.end, batch, piece_bytes)
        return self._ahead

    def _write_ahead(self, ahead: WritingAhead) -> None:
        """Write a piece of a large batch and begin to sync it."""
        try:
            ahead.go_on()
        except OSError as error:
            raise self._write_failed(error) from error
        self._sync()

    def _write(self, batch: Batch) -> None:
        """Write *batch* behind the last one, or what it lacks, and begin to sync it."""
        files = self._files
        try:
            if self._ahead is not None:
                self._ahead.end()
            else:
                write_all(files.descriptor, _buffers(batch), files.end)
        except OSError as error:
            undo(batch)
            raise self._write_failed(error) from error
        self._ahead = None
        self._sync()
        files.end += CONTROL_SIZE + batch.size
        files.batches += 1
        file_references = self._file_references.files[files.file_id]
        file_references.size = max(file_references.size, files.end + EOF_SIZE)
        file_references.live += batch.live
        file_references.refers |= batch.refers

    def _sync(self) -> None:
        self._files.refusal = ""
        try:
            self._disk.submit(self._files.descriptor)
        except OSError as error:
            raise self._fail(error) from error
        self.is_writing = True

    def _use_up(self, batch: Batch) -> None:
        """Drop the items of *batch* from what waits."""
        self._taken += batch.count
        if batch.is_cut:
            del self.items[: batch.count]
            del self.kinds[: batch.count]
            return
        self.items, self.kinds = [], []
        self.urgent, self.is_lazy, self.trace_bytes = 0, False, 0

    def _write_failed(self, error: OSError) -> StoreError:
        """Return the error to raise; what stands behind the last batch must not look like one."""
        files = self._files
        failure = files.failure(error, self._path)
        if not isinstance(failure, StoreFullError):
            return self._fail(error)
        try:
            os.pwrite(files.descriptor, EOF_RECORD, files.end)
        except OSError as second:
            return self._fail(second)
        if not files.refusal:
            logger.warning("%s", failure)
        files.refusal = str(failure)
        return failure

    def _fail(self, error: OSError) -> StoreError:
        """Remember that the journal cannot be trusted: a failed sync is never tried again."""
        self._failure = StoreError(
            f"{self._path}: {error.strerror}; what was written last may be lost"
        )
        return self._failure

    @property
    def _path(self) -> Path:
        return self._files.path(self._files.file_id)


def _buffers(batch: Batch) -> list[bytes]:
    """Return what to write for a batch; what is large is not copied."""
    parts = batch.parts
    is_small = batch.size < JOINED_BYTES_MAX or batch.size < len(parts) * JOINED_PART_BYTES_MAX
    if is_small or len(parts) > BUFFERS_MAX:
        records = b"".join(parts)
        return [control_record(records), records, EOF_RECORD]
    checksum = 1
    for part in parts:
        checksum = adler32(part, checksum)
    return [CONTROL.pack(CONTROL_START, batch.size, checksum), *parts, EOF_RECORD]
