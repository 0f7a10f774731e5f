"""Reading, for a compaction, the file that is copied and all files that say something about it.

It takes much of a processor, has no hurry, and may be done by a process of its own: see `apart`.
"""

import mmap
import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from lockkeeper.journal.files import data_file_name, list_data_files
from lockkeeper.journal.rewritten import in_reading_order
from lockkeeper.journal.scan import Batch, scan_file
from lockkeeper.journal.walk import walk_batch
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import XATransactionId
from lockkeeper.store.kahadb.needed import Answer, Holder, Question, Sifting, UndecidedError

LOWEST_PRIORITY: Final = 19
_PIECE_BYTES: Final = 64 * 1024
_PAUSE_SECONDS, _PAUSE_SECONDS_MAX = 0.001, 0.1
_REST: Final = 9
_SIZE = struct.Struct(">i")


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
    undecided: frozenset[XATransactionId]


class Pace:
    """Rests of a thread, nine times as long as it works: others have more to do.

    `in_haste` it only gives way after each piece.
    """

    def __init__(self) -> None:
        self.in_haste = False
        self._worked = 0.0

    def rest(self) -> None:
        """Let others have their turn."""
        before, self._worked = self._worked, time.thread_time()
        rest = 0.0 if self.in_haste else _REST * (self._worked - before)
        time.sleep(min(max(_PAUSE_SECONDS, rest), _PAUSE_SECONDS_MAX))


def sift(task: Task, pause: Callable[[], None]) -> Answer:
    """Return what is needed of the task's file; *pause* is called after each few records.

    Raises UndecidedError, JournalError, OSError.
    """
    files = in_reading_order(list_data_files(task.directory))
    everything = [file.file_id for file in files]
    order = [each for each in everything if each in task.related or each == task.file_id]
    missing = task.related - set(order)
    if missing:
        raise UndecidedError(f"files {sorted(missing)} are not there")
    holders = _holders(task, everything)
    sifting = Sifting(Question(task.file_id, order, holders, task.undecided))
    for batch, _ in _pieces(task, task.file_id, pause, None):
        sifting.glance(walk_batch(batch, 0, len(batch), data_file_name(task.file_id)))
    for file_id in order:
        begin = sifting.next_batch if file_id == task.file_id else None
        for batch, base in _pieces(task, file_id, pause, begin):
            rows = walk_batch(batch, 0, len(batch), data_file_name(file_id))
            sifting.read(rows, file_id, batch, base)
    return sifting.answer()


def _pieces(
    task: Task, file_id: int, pause: Callable[[], None], begin: Callable[[], None] | None
) -> Iterator[tuple[bytes, int]]:
    """Yield whole records, a little at a time, with their offset in the file.

    *begin* is called before each batch.
    """
    path = task.directory / data_file_name(file_id)
    with path.open("rb") as file:
        size = task.ends.get(file_id, os.fstat(file.fileno()).st_size)
        if not size:
            return
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as data:
            scan = scan_file(data, path.name)
            scan.require_uncorrupted()
            for batch in scan.batches:
                if begin is not None:
                    begin()
                for start, end in _cut(data, batch):
                    pause()
                    yield data[start:end], start


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
