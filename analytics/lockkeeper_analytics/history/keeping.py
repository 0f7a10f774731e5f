"""The history of records: Parquet files that keep what journals held, also when that is gone.

    FOLDER/broker=north/day=2026-11-18/db-00000007-000000004096.parquet

Each run appends the whole batches that came since the last one. It goes on where that ended, so
that nothing is read twice; of a file that is still written to, too. Up to STEP_BYTES of a journal
are one step: a file for each day that its records were written on, named by where the step begins.
Each says where the next step begins, and is put in its place when all of them are on the disk. So a
run that finds one puts the others in place, also when the journal has these records no more. A step
of which none is in its place is removed and repeated.
"""

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockkeeper.journal.batch import EOF_SIZE
from lockkeeper_analytics.errors import AnalyticsError, NoJournalError, OptionError
from lockkeeper_analytics.history.compacted import (
    Known,
    compaction_of,
    first_of,
    known_in,
    unknown_rows,
    whole_files,
)
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.kept import (
    BROKER_FOLDER,
    DAY_FOLDER,
    NO_DAY,
    kept_files,
    kept_name,
)
from lockkeeper_analytics.reading.kept_rows import VERSION_KEY, opened
from lockkeeper_analytics.reading.partitions import Part, all_files, part_of
from lockkeeper_analytics.reading.records import LOST
from lockkeeper_analytics.reading.schema import BROKER, DEFAULT_COLUMNS
from lockkeeper_analytics.reading.storage import DataFile, open_file
from lockkeeper_analytics.streams.offsets import JournalOffset, Lost, offset_fields, offset_from
from lockkeeper_analytics.streams.tail import Span, Tail
from lockkeeper_analytics.tables.records import TABLE

VERSION = "1"
"""Of the files' schema; columns may come behind the others without another one."""
COLUMNS = tuple(name for name in DEFAULT_COLUMNS if name != BROKER)
"""The columns of files; `broker` and `day` are those of their folders."""

STEP_BYTES = 32 * 1024 * 1024

_NEXT = b"lockkeeper.next"
_LOCK, _UNFINISHED = ".lock", ".unfinished"
_CHECKED_BYTES = 4096
"""So much before the place where a run ended tells whether the journal is still the same."""


class Kept(NamedTuple):
    """How many records a run has added, and how many ranges were gone before it read them."""

    records: int = 0
    lost: int = 0


def keep(options: ReadOptions, folder: Path) -> Kept:
    """Append the records of the journals in *options* that *folder* has not.

    All of them are kept, whatever else the options ask for. Raises NoJournalError, OptionError for
    two journals of one broker, CorruptBatchError unless that is to be skipped, and AnalyticsError
    where *folder* has records of another journal, or another run writes to it.
    """
    skips = ReadOptions(options.directories, skip_corrupt=options.skip_corrupt, columns=COLUMNS)
    names = {each: options.broker_of(each) for each in options.directories}
    name, count = Counter(names.values()).most_common(1)[0]
    if count > 1:
        raise OptionError(f"option path: two directories are of {name!r}: name each, NAME=DIR")
    kept = Kept()
    for directory, name in names.items():
        place = folder / f"{BROKER_FOLDER}{quote(name, safe='')}"
        with _alone(place):
            added = _Appending(directory, place, skips).run()
        kept = Kept(kept.records + added.records, kept.lost + added.lost)
    return kept


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Let no other run write to *place* meanwhile. Raises AnalyticsError when one does."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / _LOCK).open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = "another run writes to it; run again when that is done"
            raise AnalyticsError(f"{place}: {reason}") from None
        yield


class _Appending:
    """Appends what one journal has to its place in the history."""

    def __init__(self, directory: str, place: Path, options: ReadOptions) -> None:
        files = whole_files(directory, _files_of(directory))
        self.tail = Tail(directory, files, options.skip_corrupt)
        self.place = place
        self.options = options
        self.is_first = True
        self.moved: JournalOffset | None = None
        """Where the last run ended in a file that was compacted since."""

    def run(self) -> Kept:
        """Append all steps that there are, and return how much that was."""
        kept = Kept()
        begin = self._beginning()
        while (end := self.tail.advance(begin, STEP_BYTES)).place != begin.place:
            rows = pa.Table.from_batches(self._rows(begin, end), TABLE.arrow(COLUMNS))
            if rows.num_rows:
                self._write(rows, begin, end)
            lost = pc.sum(pc.equal(rows["kind"], LOST)).as_py() or 0
            kept = Kept(kept.records + rows.num_rows - lost, kept.lost + lost)
            begin = end
        return kept

    def _beginning(self) -> JournalOffset:
        """Return where the last step ended; finish that one, and remove what is left of another."""
        begin, name = self.tail.earliest(), ""
        kept = kept_files(str(self.place))
        if kept:
            path = Path(kept[-1].path)
            begin, name = self._checked(_told_by(path)), path.name
            self.is_first = False
        for path in self.place.glob(f"{DAY_FOLDER}*/*{_UNFINISHED}"):
            if path.name == _unfinished_name(name):
                _put_in_place(path.with_name(name))
            else:
                path.unlink()
        return begin

    def _checked(self, told: dict[str, Any]) -> JournalOffset:
        """Return the offset that is *told*. Raises AnalyticsError where the journal is another."""
        checksum, identity = told.pop("checksum"), told.pop("identity", "")
        offset = offset_from(told, str(self.place))
        file = self.tail.files.get(offset.file)
        is_another = offset.file > max(self.tail.files)
        if file is not None and (file.size < offset.position or self._checksum(offset) != checksum):
            compaction = compaction_of(file)
            is_another = compaction is None or compaction.first != identity
            self.moved = offset
        if is_another:
            raise AnalyticsError(
                f"{self.tail.directory}: it is not the journal of which {self.place} has the "
                f"records before byte {offset.position} of db-{offset.file}.log, or a copy was put "
                "back; keep its records under another name (NAME=DIR), or in another folder"
            )
        return offset

    def _checksum(self, offset: JournalOffset) -> int:
        """Return a checksum over what stands before *offset* in its file."""
        if offset.file not in self.tail.files:
            return 0
        start = max(offset.position - _CHECKED_BYTES, 0)
        with open_file(self.tail.files[offset.file].path) as file:
            file.seek(start)
            return crc32(file.read(offset.position - start))

    def _identity(self, offset: JournalOffset) -> str:
        """Return by what the file of *offset* is known, also when it is compacted later."""
        file = self.tail.files.get(offset.file)
        return "" if file is None else first_of(file.path)

    def _rows(self, begin: JournalOffset, end: JournalOffset) -> Iterator[pa.RecordBatch]:
        """Yield the records between two offsets, and a row for each range that is gone."""
        files = list(self.tail.files.values())
        for span in self.tail.spans(begin, end):
            if isinstance(span, Lost):
                yield TABLE.lost_row(span, self.options)
                continue
            if self._has_lost(span):
                lost = Lost(self.tail.directory, span.file.file_id, span.start)
                yield TABLE.lost_row(lost, self.options)
            index = files.index(span.file)
            if self.moved == begin and span.file.file_id == begin.file:
                part = part_of(self.tail.directory, files, index)
                yield from unknown_rows(self._read(part), self._known(begin.file))
            else:
                part = part_of(self.tail.directory, files, index, span.start, span.end)
                yield from self._read(part)

    def _read(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Yield the records of a part, or a row that says that it is gone."""
        try:
            yield from TABLE.rows(replace(part, must_exist=True), self.options)
        except FileNotFoundError:
            lost = Lost(part.directory, part.file_id, part.start)
            yield TABLE.lost_row(lost, self.options)

    def _has_lost(self, span: Span) -> bool:
        """Tell whether the broker may have compacted what no run has read of a file."""
        compaction = compaction_of(span.file)
        if compaction is None or self.is_first:
            return False
        if self.moved is not None and span.file.file_id == self.moved.file:
            return span.start + EOF_SIZE < compaction.size
        return span.start == 0

    def _known(self, file_id: int) -> Known:
        """Return the records of a data file that are in the history."""
        files = [file for file in kept_files(str(self.place)) if file.last_id >= file_id]
        return known_in([file.path for file in files if file.file_id <= file_id], file_id)

    def _write(self, rows: pa.Table, begin: JournalOffset, end: JournalOffset) -> None:
        """Put the rows of a step in their places, once all are on the disk: then they count."""
        behind = {
            **offset_fields(end),
            "checksum": self._checksum(end),
            "identity": self._identity(end),
        }
        told = {VERSION_KEY: VERSION.encode(), _NEXT: json.dumps(behind).encode()}
        days = _days(rows)
        paths = []
        for day in days.unique().to_pylist():
            folder = self.place / f"{DAY_FOLDER}{day}"
            folder.mkdir(exist_ok=True)
            paths.append(folder / kept_name(*begin.place))
            some = rows.filter(pc.equal(days, day)).replace_schema_metadata(told)
            _write_through(some, _unfinished(paths[-1]))
        for changed in (self.place, *(path.parent for path in paths)):
            _sync(changed)
        for path in paths:
            _put_in_place(path)


def _files_of(directory: str) -> dict[int, DataFile]:
    files = all_files(directory)
    if not files:
        raise NoJournalError(f"{directory}: no journal file (db-1.log, db-2.log, …) in it")
    return files


def _told_by(path: Path) -> dict[str, Any]:
    """Return what the file at *path* says of where the next step begins. Raises AnalyticsError."""
    with opened(str(path)) as file:
        told = file.schema_arrow.metadata
    if told[VERSION_KEY] != VERSION.encode():
        raise AnalyticsError(
            f"{path}: schema {told[VERSION_KEY].decode()} is not {VERSION}, the one that this "
            "version of Lockkeeper writes; keep records in another folder"
        )
    found: dict[str, Any] = json.loads(told[_NEXT])
    return found


def _unfinished(path: Path) -> Path:
    """Return where the file is written that is to be put at *path*; no reader looks there."""
    return path.with_name(_unfinished_name(path.name))


def _unfinished_name(name: str) -> str:
    return f".{name}{_UNFINISHED}"


def _put_in_place(path: Path) -> None:
    """Give the file that is to be at *path* its name, also on the disk."""
    _unfinished(path).replace(path)
    _sync(path.parent)


def _days(rows: pa.Table) -> pa.ChunkedArray:
    """Return for each row the day on which it was written, or the next one before that is known."""
    known = pc.fill_null_forward(rows["written_after"].combine_chunks())
    days = known.cast(pa.timestamp("us")).cast(pa.date32()).cast(pa.string())
    return pc.fill_null(days, NO_DAY)


def _write_through(rows: pa.Table, path: Path) -> None:
    """Write *rows* to *path*, and to the disk."""
    with path.open("wb") as file:
        pq.write_table(rows, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Have the names in *folder* on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
