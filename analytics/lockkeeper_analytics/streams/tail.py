"""Readable end of a journal that a broker writes: whole, sound batches and nothing behind.

A file is done with once a later one holds a sound batch: brokers write one file at a time. The
file that is still written to is read with its checksums up to the last sound batch.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

from lockkeeper.journal.batch import CONTROL, CONTROL_SIZE, CONTROL_START, EOF_SIZE
from lockkeeper.journal.compacted import Compaction
from lockkeeper.journal.errors import CorruptBatchError
from lockkeeper.journal.files import data_file_name
from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.reading.batches import CHUNK_BYTES, Chunk, read_chunks
from lockkeeper_analytics.reading.compacted import compaction_of, whole_file
from lockkeeper_analytics.reading.partitions import rewritten_from
from lockkeeper_analytics.reading.ranges import Ranges, between, ranges_of
from lockkeeper_analytics.reading.storage import DataFile, beside, open_file
from lockkeeper_analytics.streams.offsets import JournalOffset, Lost

WAY_OUT = (
    "set failOnDataLoss to false to go on behind it (a row names what is gone), or begin with a "
    "new checkpoint; a broker with spec.journal.archive, or ActiveMQ's archiveDataLogs, keeps "
    "what it no longer needs"
)


LOST_FILES_MAX = 1000
"""So many files in a row that are gone are told one by one."""
LOOKS_MAX = 32
"""So many files are looked at at once."""


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

    *passed_over* are the numbers of files that hold again what others hold; more are added. Who
    *minds_copies* is told what of a file is lost that the broker compacts before it is read.
    """

    def __init__(
        self,
        directory: str,
        files: Mapping[int, DataFile],
        skip_corrupt: bool = False,
        passed_over: set[int] | None = None,
        minds_copies: bool = False,
    ) -> None:
        self.directory = directory
        self.files = dict(sorted(files.items()))
        self._skip_corrupt = skip_corrupt
        self._passed_over = set() if passed_over is None else passed_over
        self._minds_copies = minds_copies
        self._compactions: dict[int, Compaction | None] = {}

    def earliest(self) -> JournalOffset:
        """Return the offset before everything that is there."""
        first, last = min(self.files), max(self.files)
        # Brokers number files without gaps: what is missing later was there and is lost.
        missing = between(first, last) - ranges_of(self.files)
        return JournalOffset(first, 0, first, str(missing))

    def latest(self, offset: JournalOffset) -> JournalOffset:
        """Return the offset behind everything that is sound."""
        return self.advance(offset, None)

    def noted(self, offset: JournalOffset) -> JournalOffset:
        """Return *offset*, where a stream begins, with what is compacted already behind it.

        Looks at the beginnings of all these files, many at once: they may be far away.
        """
        ahead = [number for number in self.files if number >= offset.file]
        with ThreadPoolExecutor(LOOKS_MAX) as pool:
            lengths = list(pool.map(lambda number: self._copy_of(number, offset), ahead))
        copies = {str(each): size for each, size in zip(ahead, lengths, strict=True) if size}
        return replace(offset, copies=copies)

    def advance(self, offset: JournalOffset, budget: int | None) -> JournalOffset:
        """Return the offset behind what is to be read next, at most *budget* bytes or one batch.

        It is *offset* itself when there is nothing. Raises ForeignFileError.
        """
        file_id, position, left = offset.file, offset.position, budget
        while True:
            following = self._following(file_id, offset)
            goes_on = self._goes_on(file_id, position, offset)
            if following is None:
                position = self._sound_end(file_id, position, left) if goes_on else position
                break
            size = self.files[file_id].size if goes_on else position
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
        later = str(gone - between(0, file_id))
        copies = self._copies_from(file_id, position, offset)
        return JournalOffset(file_id, position, offset.first, later, copies)

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
                yield from self._of_file(first, begin, start, end)

    def _of_file(
        self, number: int, begin: int, start: JournalOffset, end: JournalOffset
    ) -> Iterator[Span | Lost]:
        """Yield what is to be read of a file that is there, and what it had before."""
        copy = self._copy_of(number, start)
        is_same = copy == start.copy_of(number)
        if not is_same and not self._was_read(number, begin, start):
            yield Lost(self.directory, number, begin)
        if is_same or not begin:
            # The place where it ends may be one in the file before it was compacted.
            has_end = number == end.file and copy == end.copy_of(number)
            yield Span(self.files[number], begin, end.position if has_end else None)

    def _was_read(self, number: int, begin: int, start: JournalOffset) -> bool:
        """Tell whether nothing is lost with what was before in the place of a file."""
        compaction, before = self._compactions[number], start.copy_of(number)
        if not begin:
            return compaction is None
        if before:
            return before <= begin + EOF_SIZE
        return compaction is not None and compaction.end <= begin

    def _goes_on(self, number: int, position: int, offset: JournalOffset) -> bool:
        """Tell whether a file is there, and has what was behind *position*."""
        if number not in self.files:
            return False
        copy = self._copy_of(number, offset)
        return not position or copy == offset.copy_of(number)

    def _copies_from(self, number: int, position: int, offset: JournalOffset) -> dict[str, int]:
        """Return the copies to note in an offset behind *offset*."""
        copies = {each: size for each, size in offset.copies.items() if int(each) >= number}
        if position and number in self.files:
            copies[str(number)] = self._copy_of(number, offset)
        return {each: size for each, size in copies.items() if size}

    def _copy_of(self, number: int, offset: JournalOffset) -> int:
        """Return how long a file is that the broker has compacted, 0 for one that is whole.

        A whole one in the archive stands for it, unless *offset* has begun with the copy.
        """
        if not self._minds_copies:
            return 0
        file = self.files[number]
        if number not in self._compactions:
            self._compactions[number] = compaction_of(file)
        compaction = self._compactions[number]
        if compaction is None:
            return 0
        whole = None if file.size == offset.copy_of(number) else whole_file(file, compaction)
        if whole is None:
            return file.size
        self.files[number], self._compactions[number] = whole, None
        return 0

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
        goes_on = self._goes_on(offset.file, offset.position, offset)
        is_cut = goes_on and self.files[offset.file].size < offset.position
        if is_cut or offset.file > max(self.files):
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
        """Tell whether a file has batches, damaged or not. Raises ForeignFileError."""
        with suppress(CorruptBatchError, OSError):
            return any(self._chunks(number, 0, 1, 65536))
        return True

    def _sound_end(self, file_id: int, position: int, budget: int | None) -> int:
        """Return where the sound batches from *position* on end, or those within *budget*.

        Raises ForeignFileError.
        """
        # A batch that begins at the last byte of the budget is within it: there is always one.
        end = None if budget is None else position + max(budget, 1)
        with suppress(CorruptBatchError, OSError):
            for chunk in self._chunks(file_id, position, end, CHUNK_BYTES):
                position = chunk.base + chunk.batches[-1][1]
        return position

    def _chunks(self, number: int, start: int, end: int | None, size: int) -> Iterator[Chunk]:
        # One that is held after its removal is known by its name.
        name = beside(self.directory, data_file_name(number))
        return read_chunks(self.files[number].path, start, end, self._skip_corrupt, size, name)

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
