"""Messages of streams out of records: in which queues they are, and what readers see of them."""

import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from lockkeeper.message.destination import ANY_CHILD, ANY_DESCENDANT, Kind, queue
from lockkeeper.message.segments import (
    SEGMENT_PREFIX,
    STATES,
    SegmentName,
    parse_segment,
)
from lockkeeper_analytics.reading.asked import Pattern

STREAM = "stream"
"""Stands for the kind of a destination before the name of a stream."""
TAGS, KEYS, UNIQUE_KEY = "TAGS", "KEYS", "UNIQ_KEY"
FLAG, SYSTEM_FLAG, BORN_HOST = "lockkeeperFlag", "lockkeeperSystemFlag", "lockkeeperBornHost"
HIDDEN: Final = frozenset((FLAG, SYSTEM_FLAG, BORN_HOST))
"""Properties that the broker keeps for itself: readers of streams do not see them."""
_COMPRESSED, _COMPRESSION, _ZLIB = 1, 8, (0, 3)
_LEVELS: Final = tuple(SEGMENT_PREFIX.rstrip(".").split("."))
OF_STATES: Final = (Pattern(Kind.QUEUE, STATES.path),)
"""The queue of what streams keep of groups and of declared streams."""


def segments_of(patterns: Iterable[Pattern], numbers: Iterable[int]) -> tuple[Pattern, ...]:
    """Return the queues of the streams that *patterns* name, of partitions with these *numbers*.

    Without patterns of all streams, without numbers of all partitions. At least one pattern is
    returned, of no queue where nothing is asked for: none would stand for everything.
    """
    paths = [each.path for each in patterns if each.kind is None]
    if not patterns:
        paths = [(ANY_DESCENDANT,)]
    levels = sorted(map(str, numbers)) or [ANY_CHILD]
    found = [
        Pattern(Kind.QUEUE, (*_LEVELS, level, ANY_CHILD, *path))
        for path in paths
        for level in levels
    ]
    return tuple(found) or (Pattern(Kind.QUEUE, (*_LEVELS,)),)


@lru_cache(maxsize=4096)
def segment_of(name: str | None) -> SegmentName | None:
    """Return the segment that the queue *name* is, None for any other one."""
    return None if name is None else parse_segment(queue(name))


def is_compressed(system_flag: str) -> bool:
    """Tell whether a producer compressed the body of a message with this flag of the protocol."""
    return bool(_number(system_flag) & _COMPRESSED)


def inflated(body: bytes, system_flag: str, bytes_max: int) -> bytes | None:
    """Return *body* as its producer had it before it was compressed.

    None: it is longer than *bytes_max*, or was compressed by other means than zlib.
    """
    flag = _number(system_flag)
    if not flag & _COMPRESSED:
        return body
    if flag >> _COMPRESSION & 7 not in _ZLIB:
        return None
    inflating = zlib.decompressobj()
    try:
        whole = inflating.decompress(body, bytes_max + 1)
    except zlib.error:
        return None
    return whole if inflating.eof and len(whole) <= bytes_max else None


def flag_of(properties: Mapping[str, str | None]) -> int:
    """Return the application's flag in the *properties* of a message; 0 without one."""
    return _number(properties.get(FLAG) or "")


def _number(text: str) -> int:
    """Return a number of 32 bits, 0 without one."""
    digits = text.removeprefix("-")
    value = int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else 0
    return value if -(1 << 31) <= value < 1 << 31 else 0
