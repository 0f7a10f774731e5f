"""Texts of groups and of declared streams, out of the records of a part of a journal."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from lockkeeper.journal.files import data_file_name
from lockkeeper.message.destination import queue
from lockkeeper_analytics.reading.asked import ReadOptions, is_stream_asked_for
from lockkeeper_analytics.reading.partitions import Part
from lockkeeper_analytics.reading.rows import read_part
from lockkeeper_analytics.reading.stream_rows import OF_STATES

STATE_COLUMNS = ("directory", "file_id", "offset", "stored_at", "transaction", "stream_state")


class State(NamedTuple):
    """One text: where its record is, when it was written (µs since the epoch), what it says."""

    directory: str
    file_id: int
    location: int
    written_at: int | None
    transaction: str | None
    name: str
    value: dict[str, Any]

    @property
    def file(self) -> str:
        """The name of its data file."""
        return data_file_name(self.file_id)


def read_states(part: Part, options: ReadOptions) -> Iterator[State]:
    """Yield the texts in *part* that were written between the options `since` and `until`."""
    asked = replace(
        options,
        columns=STATE_COLUMNS,
        kinds=frozenset({"add"}),
        destinations=OF_STATES,
        since=0,
        until=0,
        at_most=0,
    )
    since, until = options.since * 1000, options.latest * 1000
    for state in states_in(read_part(part, asked)):
        at = state.written_at or 0
        if at >= since and not (until and at > until):
            yield state


def states_in(batches: Iterable[pa.RecordBatch]) -> Iterator[State]:
    """Yield the texts in *batches* of records, which have STATE_COLUMNS."""
    for batch in batches:
        columns = {name: batch.column(name) for name in STATE_COLUMNS}
        columns["stored_at"] = columns["stored_at"].cast(pa.int64())
        values = (columns[name].to_pylist() for name in STATE_COLUMNS)
        for directory, file_id, offset, at, transaction, text in zip(*values, strict=True):
            if text is not None:
                told = json.loads(text)
                place = directory, file_id, offset
                yield State(*place, at, transaction, told["name"], told["value"])


def is_asked_for(stream: str | None, options: ReadOptions) -> bool:
    """Tell whether the options ask for rows of *stream*; a row of none is of all of them."""
    if not options.destinations:
        return True
    return stream is not None and is_stream_asked_for(queue(stream).path, options.destinations)
