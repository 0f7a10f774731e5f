"""The history of records: tables that keep what journals held, also when that is gone.

Each run appends the whole batches that came since the last one. It goes on where that ended, so
that nothing is read twice; of a file that is still written to, too. Up to STEP_BYTES of a journal
are one step. A step tells where the next one begins; a place in the history (`place.py`) has all of
it or nothing. There are two kinds: folders of Parquet files (`folders.py`) and Delta tables
(`deltas.py`).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lockkeeper_analytics.errors import NoJournalError, OptionError
from lockkeeper_analytics.history.formats import Format
from lockkeeper_analytics.history.known_records import known_in, rows_behind
from lockkeeper_analytics.history.place import Place, Step
from lockkeeper_analytics.history.places import format_of, place_in
from lockkeeper_analytics.history.sameness import NOTED, Marks
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.compacted import (
    compaction_of,
    had_ended,
    shorter_by,
    whole_files,
)
from lockkeeper_analytics.reading.kept import NO_DAY
from lockkeeper_analytics.reading.partitions import Part, all_files, part_of
from lockkeeper_analytics.reading.records import LOST
from lockkeeper_analytics.reading.schema import BROKER, DEFAULT_COLUMNS
from lockkeeper_analytics.reading.storage import DataFile
from lockkeeper_analytics.streams.offsets import JournalOffset, Lost, offset_fields, offset_from
from lockkeeper_analytics.streams.tail import Span, Tail
from lockkeeper_analytics.tables.records import TABLE

COLUMNS = tuple(name for name in DEFAULT_COLUMNS if name != BROKER)
"""The columns of files; `broker` and `day` are those of their folders."""

STEP_BYTES = 32 * 1024 * 1024


class Kept(NamedTuple):
    """How many records a run has added, and how many ranges were gone before it read them."""

    records: int = 0
    lost: int = 0

    @property
    def loss(self) -> str:
        """What to tell where ranges are lost."""
        return (
            f"{self.lost} ranges were removed before they were read (records of the kind `lost` "
            "name them): run more often, or have the broker archive its files"
        )


def keep(options: ReadOptions, out: str, asked: Format | None = None) -> Kept:
    """Append the records of the journals in *options* that the history in *out* has not.

    *out* is a folder or URL; a new history gets the format *asked*. All records are kept, whatever
    else the options ask for. Raises NoJournalError, OptionError for two journals of one broker or a
    format that does not go with *out*, CorruptBatchError and ForeignFileError unless that is to
    be skipped, and AnalyticsError where *out* has records of another journal, or another run writes
    to it.
    """
    skips = ReadOptions(options.directories, skip_corrupt=options.skip_corrupt, columns=COLUMNS)
    names = {each: options.broker_of(each) for each in options.directories}
    name, count = Counter(names.values()).most_common(1)[0]
    if count > 1:
        raise OptionError(f"option path: two directories are of {name!r}: name each, NAME=DIR")
    form = format_of(out, asked)
    kept = Kept()
    for directory, name in names.items():
        with place_in(out, name, form, TABLE.arrow(COLUMNS)) as place:
            added = _Appending(directory, place, skips).run()
        kept = Kept(kept.records + added.records, kept.lost + added.lost)
    return kept


class _Appending:
    """Appends what one journal has to its place in the history."""

    def __init__(self, directory: str, place: Place, options: ReadOptions) -> None:
        files = whole_files(directory, _files_of(directory))
        self.tail = Tail(directory, files, options.skip_corrupt)
        self.place = place
        self.marks = Marks(self.tail, str(place))
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
                self._add(rows, begin, end)
            lost = pc.sum(pc.equal(rows["kind"], LOST)).as_py() or 0
            kept = Kept(kept.records + rows.num_rows - lost, kept.lost + lost)
            begin = end
        return kept

    def _beginning(self) -> JournalOffset:
        """Return where the last step ended, or where the journal begins."""
        told = self.place.last()
        self.is_first = told is None
        return self.tail.earliest() if told is None else self._checked(told)

    def _checked(self, told: dict[str, Any]) -> JournalOffset:
        """Return the offset that is *told*. Raises AnalyticsError where the journal is another."""
        noted = {name: told.pop(name) for name in NOTED if name in told}
        offset = offset_from(told, str(self.place))
        if self.marks.is_compacted(offset, noted):
            self.moved = offset
        return offset

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
            part = part_of(self.tail.directory, files, index, span.start, span.end)
            part = replace(part, size=span.file.size, must_exist=True)
            has_moved = self.moved == begin and span.file.file_id == begin.file
            yield from self._read(part, has_moved)

    def _read(self, part: Part, has_moved: bool) -> Iterator[pa.RecordBatch]:
        """Yield the records of a part, or a row that says that it is gone, if there was anything.

        And of one that was compacted, since the last run or during this one, what is left.
        """
        try:
            yield from self._left(part) if has_moved else TABLE.rows(part, self.options)
        except FileNotFoundError:
            if not had_ended(part.path, part.start):
                lost = Lost(part.directory, part.file_id, part.start)
                yield TABLE.lost_row(lost, self.options)
            yield from self._left(replace(part, must_exist=False))

    def _left(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Yield what a compacted file has of what was behind the beginning of *part*."""
        shorter = shorter_by(part.path)
        rows = TABLE.rows(replace(part, start=0, end=None, size=0), self.options)
        if not part.start:
            return rows
        files = [
            each for each in self.place.files() if each.file_id <= part.file_id <= each.last_id
        ]
        known = known_in([each.path for each in files], part.file_id)
        return rows_behind(part.start, rows, shorter, known)

    def _has_lost(self, span: Span) -> bool:
        """Tell whether the broker may have compacted what no run has read of a file."""
        compaction = compaction_of(span.file)
        if compaction is None or self.is_first:
            return False
        if self.moved is not None and span.file.file_id == self.moved.file:
            return span.start < compaction.end
        return span.start == 0

    def _add(self, rows: pa.Table, begin: JournalOffset, end: JournalOffset) -> None:
        days = _days(rows)
        by_day = {day: rows.filter(pc.equal(days, day)) for day in days.unique().to_pylist()}
        following = {**offset_fields(end), **self.marks.noted_at(end)}
        self.place.add(Step(begin.place, by_day, following))


def _files_of(directory: str) -> dict[int, DataFile]:
    files = all_files(directory)
    if not files:
        raise NoJournalError(f"{directory}: no journal file (db-1.log, db-2.log, …) in it")
    return files


def _days(rows: pa.Table) -> pa.ChunkedArray:
    """Return for each row the day on which it was written, or the next one before that is known."""
    known = pc.fill_null_forward(rows["written_after"].combine_chunks())
    days = known.cast(pa.timestamp("us")).cast(pa.date32()).cast(pa.string())
    return pc.fill_null(days, NO_DAY)
