"""Records that a history has of a file that the broker compacted before all of it was kept."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lockkeeper_analytics.reading.kept_rows import opened

_SAME = (
    *("kind", "destination_kind", "destination", "message_id", "subscription", "transaction"),
    *("record_bytes", "trace", "recorder"),
)
"""Columns by which a record is known again that has moved."""
Known: TypeAlias = Counter[tuple[Any, ...]]


def known_in(paths: Iterable[str], file_id: int) -> Known:
    """Return the records of a data file that the files of a history at *paths* have."""
    known: Known = Counter()
    for path in paths:
        with opened(path) as file:
            for batch in file.iter_batches(columns=["file_id", *_SAME]):
                known.update(_identities(batch.filter(pc.equal(batch["file_id"], file_id))))
    return known


def unknown_rows(batches: Iterable[pa.RecordBatch], known: Known) -> Iterator[pa.RecordBatch]:
    """Yield the rows of *batches* that are not *known*."""
    left = known.copy()
    for batch in batches:
        is_new = []
        for identity in _identities(batch):
            is_new.append(not left[identity])
            left[identity] -= not is_new[-1]
        yield batch.filter(pa.array(is_new, pa.bool_()))


def _identities(rows: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*(rows[name].to_pylist() for name in _SAME), strict=True)
