"""A journal cut at a point in time, by the clock lines of the flight recorder.

The clock line of a batch says when it was written (docs/reference/flight-recorder.md). What has
none was written before the next one was due, which is 50 ms unless the Broker says otherwise: the
journal ends before the first batch that is known to be later.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.files import DataFile, list_data_files
from lockkeeper.journal.records import Record, Trace
from lockkeeper.journal.rewritten import in_reading_order
from lockkeeper.journal.scan import scan_file
from lockkeeper.journal.walk import walk_batch
from lockkeeper.store.backup.manifest import rfc3339
from lockkeeper.store.base import StoreError

PREFIX = "lk1 "
TRACE = 0


class _Place(NamedTuple):
    """Where a batch begins: in which file of a list, and its offset there."""

    file: int
    offset: int


class _Told(NamedTuple):
    """What a batch tells: its time, 0 for none, and whether a broker without clock wrote it."""

    at: int
    is_foreign: bool


def cut_at(directory: Path, until: int) -> None:
    """Cut the journal in *directory* behind what was written *until* then (ms since the epoch).

    Raises StoreError when the journal does not tell, or nothing is that old.
    """
    files = in_reading_order(list_data_files(directory))
    last, later, end, doubt = 0, 0, None, None
    for place, told in _batches(files):
        if told.is_foreign:
            doubt = doubt or place
        if told.at > until:
            later, end = told.at, place
            break
        if told.at:
            last, doubt = told.at, None
    if not last:
        what = (
            f"nothing in it is older than {rfc3339(later)}" if later else "its journal tells none"
        )
        raise StoreError(f"the backup cannot be ended at {rfc3339(until)}: {what}")
    if doubt and until > last:
        silent = f"behind {rfc3339(last)} a broker wrote that tells no times"
        ways = f"give that time, {f'or {rfc3339(later)}' if later else 'or none'}"
        raise StoreError(f"the backup cannot be ended at {rfc3339(until)}: {silent}; {ways}")
    end = doubt or end
    if end is not None:
        _end(files[end.file :], end.offset)


def _end(files: list[DataFile], offset: int) -> None:
    """Let the journal end in the first of *files*, at *offset*; the others go."""
    first, *others = files
    for file in others:
        file.path.unlink()
    if not offset:
        first.path.unlink()
        return
    with first.path.open("r+b") as cut:
        cut.truncate(offset)
        os.fsync(cut.fileno())


def _batches(files: list[DataFile]) -> Iterator[tuple[_Place, _Told]]:
    """Yield where each batch of *files* begins, with what it tells."""
    for index, file in enumerate(files):
        data, name = file.path.read_bytes(), file.path.name
        for batch in scan_file(data, name).batches:
            rows = walk_batch(data, batch.start, batch.end, name)
            traces = [decode_record(data, row[1], name) for row in rows if row[0] == TRACE]
            yield _Place(index, batch.offset), _told(list(map(_line, traces)))


def _told(lines: list[dict[str, Any] | None]) -> _Told:
    """Return what the trace records of a batch tell; the last clock line counts."""
    clocks = [int(line["at"]) for line in lines if line is not None and line.get("t") == "clock"]
    return _Told(clocks[-1] if clocks else 0, None in lines)


def _line(trace: Record) -> dict[str, Any] | None:
    """Return the object of a recorder's line, None for the text of another broker."""
    if not isinstance(trace, Trace) or not trace.message.startswith(PREFIX):
        return None
    try:
        line = json.loads(trace.message.removeprefix(PREFIX))
    except ValueError:
        return None
    return line if isinstance(line, dict) else None
