"""Records of a part of a journal to Arrow batches: only the columns asked for are decoded."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa

from lockkeeper.journal.decode import decode_destination
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.walk import ADD, REMOVE, QuickRecord, walk_batch
from lockkeeper_analytics.reading.asked import ReadOptions, is_asked_for
from lockkeeper_analytics.reading.batches import Chunk, first_batch_from, read_chunks
from lockkeeper_analytics.reading.bulk import Bulk, bulk_of
from lockkeeper_analytics.reading.bulk_columns import BULK_BUILDERS
from lockkeeper_analytics.reading.bulk_times import bulk_bounds
from lockkeeper_analytics.reading.columns import BUILDERS
from lockkeeper_analytics.reading.partitions import Part
from lockkeeper_analytics.reading.records import KINDS, OTHER_KIND, complete, kind_of
from lockkeeper_analytics.reading.rowset import Context, Rows
from lockkeeper_analytics.reading.schema import Needs, arrow_schema_of
from lockkeeper_analytics.reading.storage import sibling_in_archive
from lockkeeper_analytics.reading.times import (
    Bounds,
    Known,
    bounds_of,
    following_time,
    preceding_known,
)

NO_BOUNDS = Bounds([], [])
NO_TIMES = np.zeros(0, np.int64)


def read_part(part: Part, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of *part*, in journal order.

    Raises CorruptBatchError or BadRecordError, with file and offset, unless corrupt batches are
    to be skipped. A file that a broker has archived meanwhile is read there; one that it has
    deleted has no rows, or with `must_exist` raises FileNotFoundError.
    """
    for place in filter(None, (part.path, sibling_in_archive(part.path), part.held)):
        try:
            yield from _PartReader(replace(part, path=place), options).batches()
        except FileNotFoundError:
            continue
        return
    if part.must_exist:
        raise FileNotFoundError(part.path)


class _PartReader:
    """Reads one part; remembers what does not change from chunk to chunk."""

    def __init__(self, part: Part, options: ReadOptions) -> None:
        self.part = part
        self.options = options
        self.schema = arrow_schema_of(options.columns)
        self.context = Context(part, options)
        self.needs_times = (
            bool(self.context.needs & Needs.TIMES) or options.since + options.until > 0
        )
        self.name = self.context.name
        self.kept: dict[bytes, bool] = {b"": True}

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield one Arrow batch for each chunk of the part."""
        known = preceding_known(self.part) if self.needs_times else Known()
        path = self.part.path
        start: int | None = self.part.start
        if not self.part.is_boundary:
            start = first_batch_from(path, self.part.start)
        if start is None:
            return
        for chunk in read_chunks(path, start, self.part.end, self.options.skip_corrupt):
            following = 0
            if self.needs_times:
                following = following_time(self.part, chunk.base + chunk.batches[-1][1])
            bulk = bulk_of(chunk.data, chunk.batches)
            if bulk is None:
                rows, known = self._one_by_one(chunk, known, following)
            else:
                rows, known = self._at_once(chunk, bulk, known, following)
            if len(rows):
                yield self._batch(rows)

    def _one_by_one(self, chunk: Chunk, known: Known, following: int) -> tuple[Rows, Known]:
        walked = [self._walk(chunk, *batch) for batch in chunk.batches]
        bounds = NO_BOUNDS
        if self.needs_times:
            bounds, known = bounds_of(chunk.data, walked, known, following)
        records, bounds = self._kept(list(chain.from_iterable(walked)), bounds)
        return Rows(self.context, chunk.data, chunk.base, records, bounds), known

    def _at_once(
        self, chunk: Chunk, bulk: Bulk, known: Known, following: int
    ) -> tuple[Rows, Known]:
        after = before = NO_TIMES
        if self.needs_times:
            after, before, known = bulk_bounds(bulk, known, following)
        since, until, kinds = self.options.since, self.options.until, self.options.kinds
        keep = np.ones(len(bulk), np.bool_)
        if since:
            keep &= (before == 0) | (before >= since)
        if until:
            keep &= after <= until
        if kinds:
            wanted = [number for number in range(256) if KINDS.get(number, OTHER_KIND) in kinds]
            keep &= np.isin(bulk["command"], wanted)
        if self.options.destinations:
            codes = bulk.slices("destination").dictionary_encode()
            kept = [self._is_kept(each.as_py()) for each in codes.dictionary]
            # Records that belong to no destination stay.
            index = codes.indices.fill_null(len(kept)).to_numpy(zero_copy_only=False)
            keep &= np.array([*kept, True])[index]
        if not keep.all():
            bulk = bulk.kept(keep)
            after, before = (each[keep] if len(each) else each for each in (after, before))
        rows = Rows(self.context, chunk.data, chunk.base, bulk, NO_BOUNDS, (after, before))
        return rows, known

    def _walk(self, chunk: Chunk, start: int, end: int) -> list[QuickRecord]:
        try:
            walked = walk_batch(chunk.data, start, end, self.name)
            return [
                record
                if record[0] == ADD or record[0] == REMOVE
                else complete(chunk.data, record, self.name, 0)
                for record in walked
            ]
        except BadRecordError as error:
            if self.options.skip_corrupt:
                return []
            raise BadRecordError(error.reason, self.name, chunk.base + error.offset) from None

    def _kept(self, records: list[QuickRecord], bounds: Bounds) -> tuple[list[QuickRecord], Bounds]:
        """Leave out what the options do not ask for."""
        since, until, kinds = self.options.since, self.options.until, self.options.kinds
        if not since and not until and not kinds and not self.options.destinations:
            return records, bounds
        keep = [
            index
            for index, record in enumerate(records)
            if self._is_kept(record[3])
            and (not kinds or kind_of(record) in kinds)
            and not (since and 0 < bounds.before[index] < since)
            and not (until and bounds.after[index] > until)
        ]
        if bounds is not NO_BOUNDS:
            after = [bounds.after[index] for index in keep]
            bounds = Bounds(after, [bounds.before[index] for index in keep])
        return [records[index] for index in keep], bounds

    def _is_kept(self, destination: bytes) -> bool:
        kept = self.kept.get(destination)
        if kept is None:
            found = decode_destination(destination)
            kept = self.kept[destination] = is_asked_for(found, self.options.destinations)
        return kept

    def _batch(self, rows: Rows) -> pa.RecordBatch:
        arrays = [
            BUILDERS[name](rows)
            if rows.bulk is None or name not in BULK_BUILDERS
            else BULK_BUILDERS[name](rows, rows.bulk)
            for name in self.options.columns
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
