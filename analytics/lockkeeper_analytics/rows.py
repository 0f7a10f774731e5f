"""Records of a part of a journal to Arrow batches: only the columns asked for are decoded."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from lockkeeper.journal.decode import decode_destination
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.walk import ADD, REMOVE, QuickRecord, walk_batch
from lockkeeper_analytics.asked import ReadOptions, is_asked_for
from lockkeeper_analytics.batches import Chunk, first_batch_from, read_chunks
from lockkeeper_analytics.columns import BUILDERS
from lockkeeper_analytics.partitions import Part
from lockkeeper_analytics.records import complete, kind_of
from lockkeeper_analytics.rowset import Context, Rows
from lockkeeper_analytics.schema import Needs, arrow_schema_of
from lockkeeper_analytics.storage import sibling_in_archive
from lockkeeper_analytics.times import Bounds, Known, bounds_of, following_time, preceding_known

NO_BOUNDS = Bounds([], [])


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
            walked = [self._walk(chunk, *batch) for batch in chunk.batches]
            bounds = NO_BOUNDS
            if self.needs_times:
                behind = chunk.base + chunk.batches[-1][1]
                following = following_time(self.part, behind)
                bounds, known = bounds_of(chunk.data, walked, known, following)
            records, bounds = self._kept(list(chain.from_iterable(walked)), bounds)
            if records:
                yield self._batch(chunk, records, bounds)

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

    def _batch(self, chunk: Chunk, records: list[QuickRecord], bounds: Bounds) -> pa.RecordBatch:
        rows = Rows(self.context, chunk.data, chunk.base, records, bounds)
        arrays = [BUILDERS[name](rows) for name in self.options.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
