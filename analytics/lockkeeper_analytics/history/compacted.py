"""Files that the broker compacted before all of them was kept.

A compacted file has its number, and a line at its beginning that tells which file it was
(`journal/compacted.py`). Records that nobody needed are gone from it; the others have moved.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lockkeeper.journal.compacted import HEAD_BYTES, Compaction, compaction_in, first_in
from lockkeeper_analytics.errors import NoJournalError
from lockkeeper_analytics.reading.kept_rows import opened
from lockkeeper_analytics.reading.storage import ARCHIVE, DataFile, beside, list_folder, open_file

_SAME = (
    *("kind", "destination_kind", "destination", "message_id", "subscription", "transaction"),
    *("record_bytes", "trace", "recorder"),
)
"""Columns by which a record is known again that has moved."""
Known: TypeAlias = Counter[tuple[Any, ...]]


def head_of(path: str) -> bytes:
    """Return the first bytes of a file; none: it cannot be read."""
    with suppress(OSError), open_file(path, HEAD_BYTES) as file:
        return file.read(HEAD_BYTES)
    return b""


def first_of(path: str) -> str:
    """Return by what a file is known, compacted or not."""
    head = head_of(path)
    compaction = compaction_in(head)
    return first_in(head) if compaction is None else compaction.first


def compaction_of(file: DataFile) -> Compaction | None:
    """Return which file a compacted one was; None: it is whole."""
    return compaction_in(head_of(file.path))


def whole_files(directory: str, files: Mapping[int, DataFile]) -> dict[int, DataFile]:
    """Return *files*, with whole ones from the archive for those that are compacted."""
    found = dict(files)
    with suppress(NoJournalError):
        for archived in list_folder(beside(directory, ARCHIVE)):
            compaction = compaction_of(files[archived.file_id])
            if compaction is not None and first_in(head_of(archived.path)) == compaction.first:
                found[archived.file_id] = archived
    return found


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
