"""Garbage: the reasons that keep the journal's files, and what would be freed without them."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from lockkeeper_analytics.facts.garbage import Pins, kept_alone, pins_of, staying
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reading.partitions import journal_files, rewritten_from
from lockkeeper_analytics.reading.storage import DataFile
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

PINS_MAX = 20
"""So many reasons are told for a file; the rest of hundreds of queues is counted."""

_DDL = (
    "directory string, file string, bytes bigint, live_messages bigint, live_bytes bigint, "
    "garbage_bytes bigint, pinned_by string, freed boolean, frees_bytes bigint"
)


def garbage(journal: Journal) -> DataFrame:
    """Return one row for each data file that is not archived.

    `bytes` is its length, `garbage_bytes` what of it is not the records of live messages.
    `pinned_by` says in words what keeps it, `freed` that nothing does: the next clean-up removes
    it. `frees_bytes` are the files, this one among them, that would go when nothing in this file
    were live any more; null for files that nothing in them keeps, and for the one being written.
    All of it is told of now, whatever is asked for: somebody may remove files by it.
    """
    present = journal.now
    rows = [
        row
        for directory, known in sorted(pins_of(present).items())
        for row in _rows(_files(directory, set(known)), directory, known)
    ]
    return present.records.sparkSession.createDataFrame(rows, _DDL)


def _files(directory: str, read: set[int]) -> dict[int, DataFile]:
    """Return the files that were *read*, and the last one, which may hold nothing yet.

    What came since says nothing here: nobody knows what is in it.
    """
    files = journal_files(directory)
    if rewritten_from(files[-1].path) is None:
        read = read | {files[-1].file_id}
    return {each.file_id: each for each in files if each.file_id in read}


def _rows(
    files: dict[int, DataFile], directory: str, known: dict[int, Pins]
) -> Iterator[tuple[Any, ...]]:
    current = max(files)
    there = {number: each for number, each in files.items() if not each.is_archived}
    pins = {number: known.get(number, Pins()) for number in there}
    needed = {number for number in there if pins[number].needs or number == current}
    refers = {number: each.refers & there.keys() for number, each in pins.items()}
    kept = staying(needed, refers)
    among = {number: refers[number] & kept for number in kept}
    alone = kept_alone(needed, among)
    for number in sorted(there):
        yield _row(directory, there, number, pins[number], current, among.get(number), alone)


def _row(
    directory: str,
    files: dict[int, DataFile],
    number: int,
    pins: Pins,
    current: int,
    acknowledges: set[int] | None,
    alone: dict[int, set[int]],
) -> tuple[Any, ...]:
    freeable = alone.get(number) if number != current else None
    return (
        directory,
        files[number].name,
        files[number].size,
        sum(pins.live.values()),
        pins.live_bytes,
        files[number].size - pins.live_bytes,
        _words(pins, number == current, acknowledges),
        acknowledges is None,
        None if freeable is None else sum(files[each].size for each in freeable),
    )


def _words(pins: Pins, is_current: bool, acknowledges: set[int] | None) -> str:
    words = ["it is being written"] if is_current else []
    words += [f"{count} messages of {owner}" for owner, count in sorted(pins.live.items())]
    words += [f"subscription {key}" for key in sorted(pins.subscriptions)]
    words += [f"transaction {identifier}" for identifier in sorted(pins.transactions)]
    words += [f"acknowledges messages in file {other}" for other in sorted(acknowledges or ())]
    more = len(words) - PINS_MAX
    return "; ".join(words[:PINS_MAX]) + (f"; and {more} more" if more > 0 else "")


REPORT = Report(
    name="garbage",
    title="What keeps files",
    question="What keeps each file of the journal on disk, and what would be freed if it went?",
    frame=garbage,
    columns=(
        Column("file", "File", Unit.CODE),
        Column("bytes", "Size", Unit.BYTES),
        Column("live_messages", "Live messages", Unit.COUNT),
        Column("live_bytes", "Live", Unit.BYTES, Tone.CAME),
        Column("garbage_bytes", "Garbage", Unit.BYTES, Tone.FAINT),
        Column("pinned_by", "Kept by", Unit.CAUSE),
        Column("freed", "Goes by itself", Unit.FLAG),
        Column("frees_bytes", "Freed if its own went", Unit.BYTES, Tone.WARM),
    ),
    plot=None,
    nothing="The journal has no file.",
)
