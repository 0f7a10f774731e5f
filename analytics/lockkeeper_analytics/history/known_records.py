"""Records that a history has of a file that the broker compacted before all of it was kept.

The copy has some of the file's records, in their order: first those that were in front of the place
where the last run ended, as far as they are left, then those that were behind it. The former are
known again by what they say. None is further from the end of the copy than it was from the end of
the file: held against that end, records stand behind all that were kept of the file.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lockkeeper.journal.batch import CONTROL_SIZE
from lockkeeper_analytics.reading.kept_rows import opened

_SAME = (
    *("kind", "destination_kind", "destination", "message_id", "subscription", "transaction"),
    *("record_bytes", "stored_at", "trace", "recorder"),
)
"""Columns by which a record is known again that has moved."""
Known: TypeAlias = Mapping[tuple[Any, ...], Sequence[int]]
"""The places of a file's records, ascending, by what they say."""


def known_in(paths: Iterable[str], file_id: int) -> Known:
    """Return the records of a data file that the files of a history at *paths* have."""
    known = defaultdict(list)
    for path in paths:
        with opened(path) as file:
            for batch in file.iter_batches(columns=["file_id", "offset", *_SAME]):
                own = batch.filter(pc.equal(batch["file_id"], file_id))
                for identity, place in _identities(own):
                    known[identity].append(place)
    return {identity: sorted(places) for identity, places in known.items()}


def rows_behind(
    begin: int, batches: Iterable[pa.RecordBatch], shorter: int, known: Known
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that were behind byte *begin* of a file, at places behind that.

    *batches* are those of its copy, which is so many bytes *shorter*; *known* are the file's
    records that were kept.
    """
    search = _Search(begin - shorter, known)
    for batch in batches:
        rows = batch.slice(search.older_in(batch))
        if rows.num_rows:
            places = pc.add(rows["offset"], shorter)
            yield rows.set_column(rows.schema.get_field_index("offset"), "offset", places)


class _Search:
    """Search through a copy for the first record that no run has kept.

    What stands in front of byte *since* of the copy was in front of where the last run ended.
    """

    def __init__(self, since: int, known: Known) -> None:
        self._since = since
        self._known = known
        self._reached = 0
        self._is_over = False

    def older_in(self, batch: pa.RecordBatch) -> int:
        """Return how many records at the beginning of *batch* are in front of the first new one."""
        if self._is_over:
            return 0
        for index, (identity, place) in enumerate(_identities(batch)):
            if not self._is_older(identity, place):
                self._is_over = True
                return index
        count: int = batch.num_rows
        return count

    def _is_older(self, identity: tuple[Any, ...], place: int) -> bool:
        if place <= CONTROL_SIZE:
            # The first record of a copy is the line that tells of the file.
            return True
        places = self._known.get(identity, ())
        at = bisect_left(places, self._reached)
        if at < len(places):
            self._reached = places[at] + 1
            return True
        return place <= self._since


def _identities(rows: pa.RecordBatch) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Yield what each record says, and its place."""
    said = zip(*(rows[name].to_pylist() for name in _SAME), strict=True)
    return zip(said, rows["offset"].to_pylist(), strict=True)
