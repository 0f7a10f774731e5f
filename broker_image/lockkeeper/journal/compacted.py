"""The line at the beginning of a data file that was compacted: which file it was before.

A compacted file has its number still, and its records are elsewhere in it. So whoever has stopped
in the middle of the file, or has yet to read it, finds out by this line of the flight recorder
(docs/reference/flight-recorder.md).
"""

import json
import re
from typing import Final, NamedTuple

from lockkeeper.journal.batch import CONTROL_SIZE, CONTROL_START, EOF_SIZE
from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.records import Trace

HEAD_BYTES: Final = 256
"""So much of a file is enough to find the line."""
_LINE: Final = re.compile(
    r'lk1 \{"t":"compacted","bytes":(\d{1,19}),"first":"([0-9a-f]{24})"(?:,"end":(\d{1,19}))?[,}]'
)
_BATCH: Final = slice(len(CONTROL_START), CONTROL_SIZE)


class Compaction(NamedTuple):
    """The file as it was written: its length in bytes, by what it is known, where it ended.

    *first* is the length and the checksum of its first batch, in hexadecimal digits. Its last batch
    ended at *end*: a file is made in its full length, and may have zeros behind that.
    """

    size: int
    first: str
    end: int


def first_in(head: bytes) -> str:
    """Return by what the file is known that begins with *head*, and was not compacted."""
    return head[_BATCH].hex()


def compaction_line(compaction: Compaction) -> str:
    """Return the line that tells of *compaction*."""
    size, first, end = compaction
    told = {"t": "compacted", "bytes": size, "first": first, "end": end}
    return f"lk1 {json.dumps(told, separators=(',', ':'))}"


def compaction_in(head: bytes) -> Compaction | None:
    """Return what the file that begins with *head* says; None: it was not compacted.

    Earlier versions do not say where it ended: it may have been full.
    """
    try:
        record = decode_record(head, CONTROL_SIZE, "")
    except BadRecordError:
        return None
    found = _LINE.match(record.message) if isinstance(record, Trace) else None
    if found is None:
        return None
    size, first, end = found.groups()
    return Compaction(int(size), first, int(size) - EOF_SIZE if end is None else int(end))
