"""Messages in hand of one partition, and what that means: room for more, the offset to commit.

A group is as far as its first message that is not consumed, whatever is consumed behind it.
"""

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(slots=True)
class Holdings:
    """Amount in hand, of one partition or of all: messages and bytes of their bodies."""

    messages: int = 0
    bytes: int = 0

    def add(self, messages: int, size: int) -> None:
        """Count so much more, or less."""
        self.messages += messages
        self.bytes += size


@dataclass(frozen=True, slots=True)
class Bounds:
    """Amount that may be in hand before no more is asked for; an answer may go beyond them.

    `span` is how far apart the first and the last offset in hand may be.
    """

    messages: int
    bytes: int
    span: int | None = None

    def leave_room(self, held: Holdings) -> bool:
        """Tell whether more may be asked for."""
        return held.messages < self.messages and held.bytes < self.bytes


class Window:
    """Messages that one partition has in hand; `next_offset` is the first that was not read."""

    __slots__ = ("_all", "_sizes", "held", "next_offset")

    def __init__(self, next_offset: int, everything: Holdings) -> None:
        """Begin at an offset; *everything* counts what all partitions have in hand."""
        self.next_offset = next_offset
        self.held = Holdings()
        self._all = everything
        self._sizes: OrderedDict[int, int] = OrderedDict()

    @property
    def position(self) -> int:
        """The first offset that is not consumed: that of the first in hand, or the next."""
        return next(iter(self._sizes), self.next_offset)

    def has_room(self, bounds: Bounds) -> bool:
        """Tell whether more may be read."""
        if bounds.span is not None and self.next_offset - self.position > bounds.span:
            return False
        return bounds.leave_room(self.held)

    def take_message(self, offset: int, size: int) -> bool:
        """Take a message in hand; False for one that came already."""
        if offset < self.next_offset:
            return False
        self.next_offset = offset + 1
        self._sizes[offset] = size
        self._count(1, size)
        return True

    def read_to(self, offset: int) -> None:
        """Go on reading at an offset: whatever is before it is in hand, or not wanted."""
        self.next_offset = max(self.next_offset, offset)

    def done(self, offset: int) -> None:
        """Note that a message is consumed."""
        size = self._sizes.pop(offset, None)
        if size is not None:
            self._count(-1, -size)

    def clear(self) -> None:
        """Have nothing in hand any more; the window is of no use then."""
        self._count(-self.held.messages, -self.held.bytes)
        self._sizes.clear()

    def _count(self, messages: int, size: int) -> None:
        self.held.add(messages, size)
        self._all.add(messages, size)
