"""A copy of a data file that has only what is still needed, made beside everything else.

The copy gets the number of the file whose place it takes, by a name of its own that is renamed
once it is durable: the journal has the one or the other, whole. A new master deletes such copies
before it reads anything, so that no process which it superseded can put one in place any more.
"""

import logging
import os
import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable
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
from lockkeeper.journal.files import data_file_name
from lockkeeper.journal.records import Trace
from lockkeeper.journal.rewritten import rewritten_head
from lockkeeper.store.kahadb import apart
from lockkeeper.store.kahadb.needed import Answer, UndecidedError
from lockkeeper.store.kahadb.placing import make_file, unique_path
from lockkeeper.store.kahadb.sifting import LOWEST_PRIORITY, Pace, Task, sift
from lockkeeper.store.locker import LockLostError

logger = logging.getLogger(__name__)

COPY_PREFIX = "compacted-"
COPY_SUFFIX = ".tmp"


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


class Copy(NamedTuple):
    """A durable copy: where it is, how long, what is in it, where its messages are."""

    path: Path
    size: int
    answer: Answer
    moves: Moves


class Rewriting:
    """Makes one copy. `copy` is None when it could not be made, `reason` says why."""

    def __init__(self, task: Task, check: Callable[[], None], in_own_process: bool = False) -> None:
        """*check* raises LockLostError when this process may not write any more.

        What is needed may be found by a process of its own: here all is written.
        """
        self.copy: Copy | None = None
        self.reason: Exception | None = None
        self.is_done = False
        self.task = task
        self._check = check
        self._in_own_process = in_own_process
        self._apart: apart.Apart | None = None
        self._pace = Pace()
        self._is_closing = False
        self._path: Path | None = None
        self._thread = threading.Thread(target=self._run, name="journal-compaction", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def refusal(self) -> Exception | None:
        """The error by which the system refused something, such as room: later it may not."""
        refusals = OSError, MemoryError, LockLostError
        return self.reason if isinstance(self.reason, refusals) else None

    @property
    def in_haste(self) -> bool:
        """Tell whether it does without rests."""
        return self._pace.in_haste

    def hurry(self, in_haste: bool) -> None:
        """Tell whether there is haste from now on."""
        if in_haste != self._pace.in_haste:
            self._pace.in_haste = in_haste
            if self._apart is not None:
                self._apart.hurry(in_haste)

    def wait(self) -> None:
        """Wait until `is_done`."""
        self._thread.join()

    def stop(self) -> None:
        """Give up, and delete what was made."""
        self._is_closing = True
        if self._apart is not None:
            self._apart.give_up()
        self.wait()
        self.discard()

    def discard(self) -> None:
        """Delete the copy, unless it is in place."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _run(self) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)
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
        started = apart.begin(self.task) if self._in_own_process else None
        if started is None:
            return sift(self.task, self._pause)
        # Whoever hurries it, or lets it end, meanwhile has found none.
        self._apart = started
        started.hurry(self._pace.in_haste)
        if self._is_closing:
            started.give_up()
        return started.answer()

    def _pause(self) -> None:
        if self._is_closing:
            raise UndecidedError("the store is closed")
        self._pace.rest()

    def _write(self, answer: Answer) -> Copy:
        """Write the copy, durably."""
        task = self.task
        self._check()
        self._path = path = unique_path(task.directory, COPY_PREFIX, COPY_SUFFIX)
        descriptor = make_file(path)
        before, now = array("q"), array("q")
        end = 0
        try:
            line = _line_about(task.directory / data_file_name(task.file_id), answer.end)
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


def _line_about(path: Path, end: int) -> bytes:
    """Return the record by which readers know the copy of a file, and which file it was.

    Its last batch ends at *end*, unless it is a copy itself, which says where that was.

    Nothing for a file that ActiveMQ has rewritten: what it says of itself has to stay the first.
    """
    if rewritten_head(path) is not None:
        return b""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    before = compaction_in(head) or Compaction(path.stat().st_size, first_in(head), end)
    return encode_record(Trace(compaction_line(before)))


def _write_at(descriptor: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written
