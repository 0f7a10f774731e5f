"""Readable end of a journal that a broker writes: whole, sound batches and nothing behind.

A file is done with once a later one holds a sound batch: brokers write one file at a time. The
file that is still written to is read with its checksums up to the last sound batch.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from lockkeeper.journal.batch import CONTROL, CONTROL_SIZE, CONTROL_START
from lockkeeper.journal.errors import CorruptBatchError
from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.reading.batches import CHUNK_BYTES, read_chunks
from lockkeeper_analytics.reading.partitions import rewritten_from
from lockkeeper_analytics.reading.ranges import Ranges, between, ranges_of
from lockkeeper_analytics.reading.storage import DataFile, open_file
from lockkeeper_analytics.streams.offsets import JournalOffset, Lost

WAY_OUT = (
    "set failOnDataLoss to false to go on behind it (a row names what is gone), or begin with a "
    "new checkpoint; a broker with spec.journal.archive, or ActiveMQ's archiveDataLogs, keeps "
    "what it no longer needs"
)


LOST_FILES_MAX = 1000
"""So many files in a row that are gone are told one by one."""


class DataLossError(AnalyticsError):
    """What a stream has yet to read is not there any more."""


@dataclass(frozen=True, slots=True)
class Span:
    """What is to be read of one file: the batches from `start` to before `end` (None: all)."""

    file: DataFile
    start: int
    end: int | None


class Tail:
    """One journal as it is now: *files* by number, those that are held after their removal too.

    *passed_over* are the numbers of files that hold again what others hold; more are added.
    """

    def __init__(
        self,
        directory: str,
        files: Mapping[int, DataFile],
        skip_corrupt: bool = False,
        passed_over: set[int] | None = None,
    ) -> None:
        self.directory = directory
        self.files = dict(sorted(files.items()))
        self._skip_corrupt = skip_corrupt
        self._passed_over = set() if passed_over is None else passed_over

    def earliest(self) -> JournalOffset:
        """Return the offset before everything that is there."""
        first, last = min(self.files), max(self.files)
        # Brokers number files without gaps: what is missing later was there and is lost.
        missing = between(first, last) - ranges_of(self.files)
        return JournalOffset(first, 0, first, str(missing))

    def latest(self, offset: JournalOffset) -> JournalOffset:
        """Return the offset behind everything that is sound."""
        return self.advance(offset, None)

    def advance(self, offset: JournalOffset, budget: int | None) -> JournalOffset:
        """Return the offset behind what is to be read next, at most *budget* bytes or one batch.

        It is *offset* itself when there is nothing.
        """
        file_id, position, left = offset.file, offset.position, budget
        while True:
            following = self._following(file_id, offset)
            if following is None:
                position = self._sound_end(file_id, position, left)
                break
            size = self.files[file_id].size if file_id in self.files else position
            if left is not None and size - position > left:
                stop = self._boundary(file_id, position, left)
                if stop is not None:
                    position = stop
                    break
            left = None if left is None else left - max(size - position, 0)
            file_id, position = following, 0
            if left is not None and left <= 0:
                break
        if (file_id, position) == offset.place:
            return offset
        gone = self._skipped(offset) | ranges_of(self._passed_over)
        return JournalOffset(file_id, position, offset.first, str(gone - between(0, file_id)))

    def spans(self, start: JournalOffset, end: JournalOffset) -> Iterator[Span | Lost]:
        """Yield what is to be read between two offsets, in order, and what of it is gone."""
        skipped = self._skipped(start)
        there = [number for number in self.files if start.file <= number <= end.file]
        gone = between(start.file, end.file) - ranges_of(there) - skipped
        present = [number for number in there if number not in skipped]
        for first, last in sorted([*gone.runs, *((number, number) for number in present)]):
            begin = start.position if first == start.file else 0
            is_whole = end.position > (begin if first == end.file else 0)
            last = last if last < end.file or is_whole else last - 1
            if first > last:
                continue
            if first not in self.files:
                yield from self._lost(first, last, begin)
            elif not self._is_passed_over(first, start):
                yield Span(self.files[first], begin, end.position if first == end.file else None)

    def _lost(self, first: int, last: int, begin: int) -> Iterator[Lost]:
        """Yield what is gone from byte *begin* of file *first* to the end of file *last*.

        File by file, but of what is beyond LOST_FILES_MAX at once.
        """
        until = min(last, first + LOST_FILES_MAX - 1)
        for number in range(first, until):
            yield Lost(self.directory, number, begin)
            begin = 0
        yield Lost(self.directory, until, begin, last)

    def bytes_behind(self, offset: JournalOffset, latest: JournalOffset) -> int:
        """Return how many bytes lie between two offsets."""
        total = 0
        for span in self.spans(offset, latest):
            if isinstance(span, Span):
                total += (span.file.size if span.end is None else span.end) - span.start
        return max(total, 0)

    def check_not_cut(self, offset: JournalOffset) -> None:
        """Raise DataLossError when the journal ends before *offset*: it is not what was read."""
        file = self.files.get(offset.file)
        if offset.file > max(self.files) or (file is not None and file.size < offset.position):
            raise DataLossError(
                f"{self.directory}: it ends before byte {offset.position} of db-{offset.file}.log, "
                "which the checkpoint says was read: a copy was put back, or the machine lost "
                "what it had not synced; begin with a new checkpoint, or set failOnDataLoss to "
                "false to go on from the journal's present end"
            )

    def _skipped(self, offset: JournalOffset) -> Ranges:
        """Return the files behind *offset* that need not be read."""
        known = offset.known_gone
        there = [number for number in self.files if number in known]
        return known - ranges_of(each for each in there if not self._is_passed_over(each, offset))

    def _is_passed_over(self, number: int, offset: JournalOffset) -> bool:
        """Tell whether file *number* holds again what the stream reads in another file."""
        record = rewritten_from(self.files[number].path)
        if record is None:
            return False
        source = record.source_data_file_id
        known = number in offset.known_gone or number in self._passed_over
        again = known or source >= offset.first or source in self.files
        if again:
            self._passed_over.add(number)
        return again

    def _following(self, file_id: int, offset: JournalOffset) -> int | None:
        """Return the next file to read, when its batches prove that *file_id* is done with."""
        for number in self.files:
            if number <= file_id or self._is_passed_over(number, offset):
                continue
            # What ActiveMQ has rewritten may stand behind a file that it still writes to.
            if rewritten_from(self.files[number].path) is None and self._begins_soundly(number):
                return min(
                    each
                    for each in self.files
                    if file_id < each <= number and each not in self._passed_over
                )
        return None

    def _begins_soundly(self, number: int) -> bool:
        with suppress(CorruptBatchError, OSError):
            return any(read_chunks(self.files[number].path, 0, 1, self._skip_corrupt, 65536))
        return True

    def _sound_end(self, file_id: int, position: int, budget: int | None) -> int:
        """Return where the sound batches from *position* on end, or those within *budget*."""
        if file_id not in self.files:
            return position
        # A batch that begins at the last byte of the budget is within it: there is always one.
        end = None if budget is None else position + max(budget, 1)
        size = CHUNK_BYTES
        with suppress(CorruptBatchError, OSError):
            path = self.files[file_id].path
            for chunk in read_chunks(path, position, end, self._skip_corrupt, size):
                position = chunk.base + chunk.batches[-1][1]
        return position

    def _boundary(self, file_id: int, position: int, budget: int) -> int | None:
        """Return where the first batch behind *budget* bytes begins; None: the file ends before.

        Only control records are looked at.
        """
        target = position + max(budget, 1)
        with suppress(OSError), open_file(self.files[file_id].path) as file:
            while position < target:
                file.seek(position)
                control = file.read(CONTROL_SIZE)
                if len(control) < CONTROL_SIZE or not control.startswith(CONTROL_START):
                    return None
                position += CONTROL_SIZE + max(CONTROL.unpack(control)[1], 0)
            file.seek(position)
            return position if file.read(CONTROL_SIZE).startswith(CONTROL_START) else None
        return None
