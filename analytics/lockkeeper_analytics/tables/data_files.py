"""Rows that directories tell: their data files, and the brokers that they are of."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.partitions import counted_files, journal_files
from lockkeeper_analytics.reading.schema import FLAG, INT, LONG, TEXT
from lockkeeper_analytics.reading.storage import DataFile
from lockkeeper_analytics.tables.shape import Table, fields

_Listed = tuple[str, DataFile, bool]

_FILES = fields(
    ("directory", TEXT, lambda row: row[0], "the journal directory, as it was named"),
    ("file_id", INT, lambda row: row[1].file_id, "number of the data file"),
    ("file", TEXT, lambda row: row[1].name, "its name"),
    ("file_bytes", LONG, lambda row: row[1].size, "its length, with space prepared for later"),
    ("is_current", FLAG, lambda row: row[2], "it is the last one, which is written to"),
    ("is_archived", FLAG, lambda row: row[1].is_archived, "it is in `data-archive`"),
)
_JOURNALS = fields(
    ("directory", TEXT, lambda directory: directory, "the journal directory, as it was named"),
)


def plan_directories(options: ReadOptions) -> Sequence[str]:
    """Return one piece for each directory. Raises NoJournalError."""
    for directory in options.directories:
        journal_files(directory)
    return options.directories


def _read_files(directory: str, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    found = counted_files(directory)
    rows: Iterator[_Listed] = ((directory, file, file is found[-1]) for file in found)
    yield from _FILES.batches(rows, options.columns)


def _read_journals(directory: str, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    yield from _JOURNALS.batches([directory], options.columns)


DATA_FILES = Table(
    "data_files",
    "the data files of journals, by their names alone",
    _FILES.columns,
    tuple(_FILES.columns),
    plan_directories,
    _read_files,
    has_destinations=False,
)
JOURNALS = Table(
    "journals",
    "the directories, and the broker that each is of",
    _JOURNALS.columns,
    tuple(_JOURNALS.columns),
    plan_directories,
    _read_journals,
    has_destinations=False,
)
