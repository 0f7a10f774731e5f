"""Files that hold what is left of another one: ActiveMQ's ack compaction, our own compaction.

Their first record names the source. What they hold happened where the source stood, whatever
their own number is (kahadb.md section 6).
"""

from collections.abc import Iterable
from pathlib import Path

from lockkeeper.journal.batch import CONTROL_SIZE, CONTROL_START
from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.encode import RECORD_HEADER_SIZE
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.files import DataFile
from lockkeeper.journal.records import RewrittenDataFile
from lockkeeper.journal.walk import QuickRecord

_REWRITTEN_FILE = 16
_HEAD_BYTES = 128


def rewritten_head(path: Path) -> RewrittenDataFile | None:
    """Return the record that a rewritten file begins with, None for any other file.

    Raises OSError.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    command_at = CONTROL_SIZE + RECORD_HEADER_SIZE
    if not head.startswith(CONTROL_START) or head[command_at : command_at + 1] != b"\x10":
        return None
    try:
        record = decode_record(head, CONTROL_SIZE, path.name)
    except BadRecordError:
        return None
    return record if isinstance(record, RewrittenDataFile) else None


def is_superseded(first: QuickRecord, data: bytes, present: set[int]) -> bool:
    """Tell whether a file beginning with this record only repeats one that still exists."""
    if first[0] != _REWRITTEN_FILE:
        return False
    record = decode_record(data, first[1])
    assert isinstance(record, RewrittenDataFile)
    return record.skip_if_source_exists and record.source_data_file_id in present


def in_reading_order(files: Iterable[DataFile]) -> list[DataFile]:
    """Return data files in the order in which what they hold happened. Raises OSError."""
    return sorted(files, key=_place)


def _place(file: DataFile) -> tuple[int, int]:
    head = rewritten_head(file.path)
    return (file.file_id if head is None else head.source_data_file_id, file.file_id)
