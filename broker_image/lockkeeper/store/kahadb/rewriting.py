"""A copy of a data file that has only what is still needed, made by a thread of low priority.

The copy gets the number of the file whose place it takes, by a name of its own that is renamed
once it is durable: the journal has the one or the other, whole. A new master deletes such copies
before it reads anything, so that no process which it superseded can put one in place any more.
"""

import logging
import mmap
import os
import struct
import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from lockkeeper.journal.batch import CONTROL_SIZE, EOF_RECORD, control_record
from lockkeeper.journal.compacted import (
    HEAD_BYTES,
    Compaction,
    compaction_in,
    compaction_line,
    first_in,
)
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.errors import JournalError
from lockkeeper.journal.files import data_file_name, list_data_files
from lockkeeper.journal.records import Trace
from lockkeeper.journal.rewritten import in_reading_order, rewritten_head
from lockkeeper.journal.scan import Batch, scan_file
from lockkeeper.journal.walk import walk_batch
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId
from lockkeeper.store.kahadb.needed import Answer, Holder, Question, Sifting, UndecidedError
from lockkeeper.store.kahadb.placing import make_file, unique_path
from lockkeeper.store.locker import LockLostError

logger = logging.getLogger(__name__)

COPY_PREFIX = "compacted-"
COPY_SUFFIX = ".tmp"
_PIECE_BYTES = 16 * 1024
_PAUSE_SECONDS, _PAUSE_SECONDS_MAX = 0.001, 0.1
_REST = 4
"""So many times as long as it has worked the thread rests: it works where nobody else can.

In haste it gives way after each piece, and does not rest.
"""
_LOWEST_PRIORITY = 19
_SIZE = struct.Struct(">i")


class Moves(NamedTuple):
    """Earlier and present locations of the messages of a file."""

    before: "array[int]"
    now: "array[int]"

    def find(self, offset: int) -> int:
        """Return where what was at *offset* is now, -1 when it is gone."""
        at = bisect_left(self.before, offset)
        if at < len(self.before) and self.before[at] == offset:
            return self.now[at]
        return -1

    def after(self, later: "Moves") -> "Moves":
        """Return where everything is after these moves and *later* ones."""
        pairs = [(old, later.find(now)) for old, now in zip(*self, strict=True)]
        left = [(old, now) for old, now in pairs if now >= 0]
        return Moves(array("q", [old for old, _ in left]), array("q", [now for _, now in left]))


class Subscribed(NamedTuple):
    """A durable subscription, as the bookkeeping has it: see `SubscriptionReferences`."""

    key: str
    topic: Destination
    created_in: int
    is_retroactive: bool


class Task(NamedTuple):
    """Task to copy one file, with the records to read for it.

    *ends* has the end of a file that is still written to.
    """

    directory: Path
    file_id: int
    related: frozenset[int]
    ends: dict[int, int]
    subscribed: list[Subscribed]
    undecided: frozenset[TransactionId]


class Copy(NamedTuple):
    """A durable copy: where it is, how long, what is in it, where its messages are."""

    path: Path
    size: int
    answer: Answer
    moves: Moves


class Rewriting:
    """Makes one copy. `copy` is None when it could not be made, `reason` says why."""

    def __init__(self, task: Task, check: Callable[[], None]) -> None:
        """*check* raises LockLostError when this process may not write any more."""
        self.copy: Copy | None = None
        self.reason: Exception | None = None
        self.is_done = False
        self.in_haste = False
        self.task = task
        self._check = check
        self._is_closing = False
        self._path: Path | None = None
        self._worked = 0.0
        self._thread = threading.Thread(target=self._run, name="journal-compaction", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wait(self) -> None:
        """Wait until `is_done`."""
        self._thread.join()

    def stop(self) -> None:
        """Give up, and delete what was made."""
        self._is_closing = True
        self.wait()
        self.discard()

    def discard(self) -> None:
        """Delete the copy, unless it is in place."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _run(self) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
        try:
            answer = self._sift()
            self.copy = self._write(answer)
        except (JournalError, OSError, UndecidedError, LockLostError) as error:
            self.reason = error
        except Exception as error:
            # The broker can do without a copy; but it must not wait for one for ever.
            logger.exception("db-%d.log cannot be compacted", self.task.file_id)
            self.reason = error
        self.is_done = True

    def _sift(self) -> Answer:
        task = self.task
        files = in_reading_order(list_data_files(task.directory))
        everything = [file.file_id for file in files]
        order = [each for each in everything if each in task.related or each == task.file_id]
        missing = task.related - set(order)
        if missing:
            raise UndecidedError(f"files {sorted(missing)} are not there")
        holders = _holders(task, everything)
        sifting = Sifting(Question(task.file_id, order, holders, task.undecided))
        for batch, _ in self._pieces(task.file_id, None):
            sifting.glance(walk_batch(batch, 0, len(batch), data_file_name(task.file_id)))
        for file_id in order:
            begin = sifting.next_batch if file_id == task.file_id else None
            for batch, base in self._pieces(file_id, begin):
                rows = walk_batch(batch, 0, len(batch), data_file_name(file_id))
                sifting.read(rows, file_id, batch, base)
        return sifting.answer()

    def _pieces(
        self, file_id: int, begin: Callable[[], None] | None
    ) -> Iterator[tuple[bytes, int]]:
        """Yield whole records, a little at a time, with their offset in the file.

        *begin* is called before each batch. In between others have their turn.
        """
        path = self.task.directory / data_file_name(file_id)
        with path.open("rb") as file:
            size = self.task.ends.get(file_id, os.fstat(file.fileno()).st_size)
            if not size:
                return
            with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as data:
                scan = scan_file(data, path.name)
                scan.require_uncorrupted()
                for batch in scan.batches:
                    if begin is not None:
                        begin()
                    for start, end in _cut(data, batch):
                        self._pause()
                        yield data[start:end], start

    def _pause(self) -> None:
        if self._is_closing:
            raise UndecidedError("the store is closed")
        before, self._worked = self._worked, time.thread_time()
        rest = 0.0 if self.in_haste else _REST * (self._worked - before)
        time.sleep(min(max(_PAUSE_SECONDS, rest), _PAUSE_SECONDS_MAX))

    def _write(self, answer: Answer) -> Copy:
        """Write the copy, durably."""
        task = self.task
        self._check()
        self._path = path = unique_path(task.directory, COPY_PREFIX, COPY_SUFFIX)
        descriptor = make_file(path)
        before, now = array("q"), array("q")
        end = 0
        try:
            line = _line_about(task.directory / data_file_name(task.file_id))
            if line:
                _write_at(descriptor, control_record(line) + line, end)
                end += CONTROL_SIZE + len(line)
            with (task.directory / data_file_name(task.file_id)).open("rb") as source:
                adds = Moves(answer.adds, answer.adds)
                for kept in answer.kept:
                    self._pause()
                    self._check()
                    records = b"".join(
                        os.pread(source.fileno(), size, offset) for offset, size in kept
                    )
                    _write_at(descriptor, control_record(records) + records, end)
                    place = end + CONTROL_SIZE
                    for offset, size in kept:
                        if adds.find(offset) >= 0:
                            before.append(offset)
                            now.append(place)
                        place += size
                    end = place
            _write_at(descriptor, EOF_RECORD, end)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return Copy(path, end + len(EOF_RECORD), answer, Moves(before, now))


def _line_about(path: Path) -> bytes:
    """Return the record by which readers know the copy of a file, and which file it was.

    Nothing for a file that ActiveMQ has rewritten: what it says of itself has to stay the first.
    """
    if rewritten_head(path) is not None:
        return b""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    before = compaction_in(head) or Compaction(path.stat().st_size, first_in(head))
    return encode_record(Trace(compaction_line(before)))


def _holders(task: Task, order: Sequence[int]) -> list[Holder]:
    """Return the subscriptions, with where they were created as seen from the file."""
    rank = {file_id: at for at, file_id in enumerate(order)}
    own = rank[task.file_id]
    holders = []
    for key, topic, created_in, is_retroactive in task.subscribed:
        # One whose record still waits to be written begins behind everything.
        place = rank[created_in] if created_in else len(rank)
        since = (place > own) - (place < own)
        holders.append(Holder(key, topic, since, is_retroactive))
    return holders


def _cut(data: mmap.mmap, batch: Batch) -> Iterator[tuple[int, int]]:
    """Yield runs of whole records of a batch."""
    start = position = batch.start
    while position < batch.end:
        size: int = _SIZE.unpack_from(data, position)[0]
        if size <= 0:
            # Not to be cut here: whoever reads the records says what is wrong with them.
            position = batch.end
        position = min(position + size, batch.end)
        if position - start >= _PIECE_BYTES or position >= batch.end:
            yield start, position
            start = position


def _write_at(descriptor: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written
