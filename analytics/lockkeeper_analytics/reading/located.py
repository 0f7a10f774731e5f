"""The records of a chunk, located: all at once, or one by one where that cannot be."""

from itertools import chain
from typing import NamedTuple

from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.walk import ADD, REMOVE, QuickRecord, walk_batch
from lockkeeper_analytics.reading.batches import Chunk
from lockkeeper_analytics.reading.bulk import Bulk, bulk_of
from lockkeeper_analytics.reading.bulk_times import bulk_passed_over
from lockkeeper_analytics.reading.records import complete
from lockkeeper_analytics.reading.times import Known, Passed, passed_over


class Located(NamedTuple):
    """A chunk with its records, as arrays or batch by batch."""

    chunk: Chunk
    records: Bulk | list[list[QuickRecord]]

    @property
    def one_by_one(self) -> list[QuickRecord]:
        """The records that are not arrays, in order."""
        return [] if isinstance(self.records, Bulk) else list(chain.from_iterable(self.records))

    def passed_over(self, known: Known) -> Passed:
        """Return what is learnt of the times of all records, *known* being before them."""
        if isinstance(self.records, Bulk):
            return bulk_passed_over(self.records, known)
        return passed_over(self.chunk.data, self.records, known)


def located(chunk: Chunk, file_name: str, skip_corrupt: bool) -> Located:
    """Return *chunk* with its records.

    Raises BadRecordError with *file_name* and the place, unless the batches with damaged records
    are left out: *skip_corrupt*.
    """
    bulk = bulk_of(chunk.data, chunk.batches)
    if bulk is not None:
        return Located(chunk, bulk)
    return Located(chunk, [_walk(chunk, *at, file_name, skip_corrupt) for at in chunk.batches])


def _walk(chunk: Chunk, start: int, end: int, name: str, skip_corrupt: bool) -> list[QuickRecord]:
    try:
        return [
            record
            if record[0] == ADD or record[0] == REMOVE
            else complete(chunk.data, record, name, 0)
            for record in walk_batch(chunk.data, start, end, name)
        ]
    except BadRecordError as error:
        if skip_corrupt:
            return []
        raise BadRecordError(error.reason, name, chunk.base + error.offset) from None
