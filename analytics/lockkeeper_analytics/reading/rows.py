"""Records of a part of a journal to Arrow batches: only the columns asked for are decoded."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lockkeeper.journal.compacted import HEAD_BYTES, compaction_in
from lockkeeper.journal.errors import BadRecordError
from lockkeeper_analytics.reading.asked import ReadOptions, is_asked_for
from lockkeeper_analytics.reading.batches import Chunk, read_chunks
from lockkeeper_analytics.reading.bulk import Bulk, Flags
from lockkeeper_analytics.reading.bulk_columns import BULK_BUILDERS
from lockkeeper_analytics.reading.columns import BUILDERS
from lockkeeper_analytics.reading.edges import timed
from lockkeeper_analytics.reading.kept import is_kept
from lockkeeper_analytics.reading.kept_rows import read_kept
from lockkeeper_analytics.reading.located import Located, located
from lockkeeper_analytics.reading.partitions import Part, is_held_elsewhere
from lockkeeper_analytics.reading.pins import gone
from lockkeeper_analytics.reading.ranges import ranges_in
from lockkeeper_analytics.reading.records import KINDS, OTHER_KIND, kind_of
from lockkeeper_analytics.reading.rowset import Context, Rows
from lockkeeper_analytics.reading.schema import Needs, arrow_schema_of
from lockkeeper_analytics.reading.storage import open_file, sibling_in_archive
from lockkeeper_analytics.reading.times import Bounds

NO_BOUNDS = Bounds(np.zeros(0, np.int64), np.zeros(0, np.int64))


def read_part(part: Part, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of *part*, in journal order.

    Raises CorruptBatchError or BadRecordError, with directory, file and offset, or
    ForeignFileError, unless what is damaged is to be skipped. A file that a broker has archived
    meanwhile is read there; one that it has deleted has no rows, or with `must_exist` raises
    FileNotFoundError; so it does with a `size` that tells that the file was compacted. Of a part
    that is pinned, GoneError tells that the file is gone or shorter.
    """
    if is_kept(part.path):
        yield from read_kept(part, options)
        return
    for place in filter(None, (part.path, sibling_in_archive(part.path), part.held)):
        try:
            if part.is_pinned:
                _check_length(place, part)
            shown = part.path if place == part.held else place
            batches = _PartReader(replace(part, path=place), options, shown).batches()
            if _is_replaced(place, part):
                continue
            first = next(batches, None)
            # It is open now: what takes its place from here on is not read.
            if _is_replaced(place, part):
                continue
            if first is not None:
                yield first
                yield from batches
        except FileNotFoundError:
            continue
        return
    if part.is_pinned:
        raise gone(part.path)
    if part.must_exist:
        raise FileNotFoundError(part.path)


def _check_length(place: str, part: Part) -> None:
    with open_file(place) as file:
        size = file.seek(0, 2)
    if part.end is not None and size < part.end:
        raise gone(place, f"with {part.end} bytes, and has {size}")


def _is_replaced(place: str, part: Part) -> bool:
    """Tell whether a compacted file has taken the place of the one that is to be read."""
    if not part.size:
        return False
    with suppress(OSError), open_file(place, HEAD_BYTES) as file:
        if file.seek(0, 2) < part.size:
            file.seek(0)
            return compaction_in(file.read(HEAD_BYTES)) is not None
    return False


class _PartReader:
    """Reads one part; remembers what does not change from chunk to chunk.

    Errors call the file *shown*.
    """

    def __init__(self, part: Part, options: ReadOptions, shown: str) -> None:
        self.part = part
        self.options = options
        self.schema = arrow_schema_of(options.columns)
        self.context = Context(part, options, shown)
        self.needs_times = (
            bool(self.context.needs & Needs.TIMES) or options.since > 0 or options.latest > 0
        )
        self.kept: dict[bytes, bool] = {b"": True}

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield one Arrow batch for each chunk of the part."""
        part, skip_corrupt = self.part, self.options.skip_corrupt
        name = self.context.place
        chunks = read_chunks(part.path, part.start, part.end, skip_corrupt, name=name)
        records = (located(chunk, name, skip_corrupt) for chunk in self._counting(chunks))
        for each, bounds in self._with_bounds(records):
            rows = self._rows(each, bounds)
            if len(rows):
                yield self._batch(rows)

    def _counting(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """Yield *chunks*, but none of a file that holds again what another one holds."""
        for chunk in chunks:
            if not chunk.base and is_held_elsewhere(chunk.data, ranges_in(self.part.there)):
                return
            yield chunk

    def _with_bounds(self, records: Iterator[Located]) -> Iterator[tuple[Located, Bounds]]:
        if self.needs_times:
            return timed(self.part, records)
        return ((each, NO_BOUNDS) for each in records)

    def _rows(self, each: Located, bounds: Bounds) -> Rows:
        """Return what the options ask for of a chunk's records."""
        data, base = each.chunk.data, each.chunk.base
        records = each.records if isinstance(each.records, Bulk) else each.one_by_one
        found = Rows(self.context, data, base, records, bounds)
        keep = self._kept_in_time(len(records), bounds)
        keep &= self._kept_one_by_one(found) if found.bulk is None else self._kept_at_once(found)
        if keep.all():
            return found
        if bounds is not NO_BOUNDS:
            bounds = Bounds(bounds.after[keep], bounds.before[keep])
        if isinstance(records, Bulk):
            return Rows(self.context, data, base, records.kept(keep), bounds)
        kept = [records[index] for index in np.flatnonzero(keep)]
        return Rows(self.context, data, base, kept, bounds)

    def _kept_in_time(self, count: int, bounds: Bounds) -> Flags:
        since, latest = self.options.since, self.options.latest
        keep = np.ones(count, np.bool_)
        if since:
            keep &= (bounds.before == 0) | (bounds.before >= since)
        if latest:
            keep &= bounds.after <= latest
        return keep

    def _kept_at_once(self, rows: Rows) -> Flags:
        assert rows.bulk is not None
        bulk, kinds = rows.bulk, self.options.kinds
        keep = np.ones(len(bulk), np.bool_)
        if kinds:
            wanted = [number for number in range(256) if KINDS.get(number, OTHER_KIND) in kinds]
            keep &= np.isin(bulk["command"], wanted)
        if self.options.destinations or self.options.skip_corrupt:
            codes = rows.destination_codes
            kept = [self._is_kept(rows, each.as_py()) for each in codes.dictionary]
            # Records that belong to no destination stay.
            index = codes.indices.fill_null(len(kept)).to_numpy(zero_copy_only=False)
            keep &= np.array([*kept, True])[index]
        if self.options.skip_corrupt and (transactions := bulk.transactions()):
            keep &= _flags(_is_sound(rows, each) for each in transactions)
        return keep

    def _kept_one_by_one(self, rows: Rows) -> Flags:
        kinds, records = self.options.kinds, rows.records
        keep = np.ones(len(records), np.bool_)
        if kinds:
            keep &= _flags(kind_of(record) in kinds for record in records)
        if self.options.destinations or self.options.skip_corrupt:
            keep &= _flags(self._is_kept(rows, record[3]) for record in records)
        if self.options.skip_corrupt:
            keep &= _flags(_is_sound(rows, record[7]) for record in records)
        return keep

    def _is_kept(self, rows: Rows, destination: bytes) -> bool:
        """Tell whether records of *destination* are asked for; one that is damaged is passed over.

        So the options say, or BadRecordError is raised.
        """
        kept = self.kept.get(destination)
        if kept is None:
            try:
                kept = is_asked_for(rows.destination(destination), self.options.destinations)
            except BadRecordError:
                if not self.options.skip_corrupt:
                    raise
                kept = False
            self.kept[destination] = kept
        return kept

    def _batch(self, rows: Rows) -> pa.RecordBatch:
        arrays = [
            BUILDERS[name](rows)
            if rows.bulk is None or name not in BULK_BUILDERS
            else BULK_BUILDERS[name](rows, rows.bulk)
            for name in self.options.columns
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _flags(values: Iterable[bool]) -> Flags:
    return np.fromiter(values, np.bool_)


def _is_sound(rows: Rows, transaction: bytes | None) -> bool:
    """Tell whether *transaction* can be read: without it nobody knows whether a record counts."""
    try:
        rows.transaction(transaction)
    except BadRecordError:
        return False
    return True
