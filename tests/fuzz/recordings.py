"""What real clients and brokers wrote: conversations in frames, journals in records."""

import struct
from functools import cache
from pathlib import Path

from lockkeeper.journal.errors import JournalError
from lockkeeper.journal.scan import record_offsets, scan_file

GOLDEN = Path(__file__).parents[1] / "golden"
Conversation = tuple[bytes, ...]


@cache
def conversations(side: str) -> tuple[Conversation, ...]:
    """Return the frames, with their sizes, of what a *side*, `c2s` or `s2c`, said."""
    paths = sorted((GOLDEN / "openwire").glob(f"*.{side}.bin"))
    return tuple(_frames(path.read_bytes()) for path in paths)


@cache
def frames(side: str) -> tuple[bytes, ...]:
    """Return all frames of a *side*, each only once, without their sizes."""
    return tuple({frame[4:]: None for each in conversations(side) for frame in each})


@cache
def journal_files() -> tuple[bytes, ...]:
    """Return the data files that ActiveMQ wrote, without what is prepared behind them."""
    found = []
    for path in sorted((GOLDEN / "kahadb").glob("*/db-*.log")):
        data = path.read_bytes()
        found.append(data[: scan_file(data, path.name).end + 64])
    return tuple(found)


@cache
def journal_records() -> tuple[bytes, ...]:
    """Return the records of those files, header included, each only once."""
    found: dict[bytes, None] = {}
    for data in journal_files():
        for batch in scan_file(data, "").batches:
            try:
                for offset, size in record_offsets(data, batch):
                    found[data[offset : offset + size]] = None
            except JournalError:
                continue
    return tuple(found)


def _frames(data: bytes) -> Conversation:
    found, position = [], 0
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        found.append(data[position : position + 4 + size])
        position += 4 + size
    return tuple(found)
