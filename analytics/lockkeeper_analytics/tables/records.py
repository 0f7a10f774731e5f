"""`records`: what is in the journal, one row for each record; the pieces are parts of files."""

from collections.abc import Sequence

from lockkeeper.journal.files import data_file_name
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.beginnings import last_file_until, last_files
from lockkeeper_analytics.reading.partitions import Part, plan_parts
from lockkeeper_analytics.reading.records import LOST
from lockkeeper_analytics.reading.rows import read_part
from lockkeeper_analytics.reading.schema import COLUMNS, DEFAULT_COLUMNS
from lockkeeper_analytics.tables.shape import Table


def plan(options: ReadOptions) -> Sequence[Part]:
    """Return the parts of all files that may hold what is asked for. Raises NoJournalError.

    With `until`, files are read up to the first record that is younger: what is behind it is, too.
    """
    parts = plan_files(options)
    if not options.until:
        return parts
    last = last_files(options.directories, options.until, options.pinned)
    return [part for part in parts if part.file_id <= last[part.directory]]


def plan_files(options: ReadOptions) -> Sequence[Part]:
    """Return the parts of all files, whatever `until` says: lines tell their times themselves."""
    return plan_parts(options.directories, options.since, options.files, options.pinned)


TABLE = Table(
    "records",
    "what is in the journal, one row for each record",
    COLUMNS,
    DEFAULT_COLUMNS,
    plan,
    read_part,
    last_file=last_file_until,
    lost=lambda lost: {"kind": LOST, "file": data_file_name(lost.file_id), "trace": str(lost)},
    is_pinnable=True,
)
