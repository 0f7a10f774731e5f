"""Messages of a topic that wait in several lines: one list for all, or one packed run.

Twenty durable subscriptions without a consumer cost little more than one.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from lockkeeper.store.base import Reference
from lockkeeper.store.packed import RUN_MESSAGES, PackedRun, is_packable_for


class Stretch:
    """Messages one after the other; it grows at its end until it is as long as a packed run."""

    __slots__ = ("references",)

    def __init__(self) -> None:
        self.references: list[Reference] = []

    def add(self, references: Iterable[Reference]) -> "Part":
        """Add messages at the end, and return what they are the part of."""
        start = len(self.references)
        self.references += references
        return Part(self, start, len(self.references))

    def packed(self, holders: int) -> PackedRun | None:
        """Return it packed, if none but so many *holders* of it need any of the messages."""
        if all(is_packable_for(each, holders) for each in self.references):
            return PackedRun(self.references, holders)
        return None


class Part:
    """The part of a stretch that one line has; it grows only at its end."""

    __slots__ = ("end", "start", "stretch")

    def __init__(self, stretch: Stretch, start: int, end: int) -> None:
        self.stretch = stretch
        self.start = start
        self.end = end

    def __len__(self) -> int:
        """Return how many messages are in the part."""
        return self.end - self.start

    def __iter__(self) -> Iterator[Reference]:
        """Iterate in order."""
        return islice(self.stretch.references, self.start, self.end)

    def is_open(self) -> bool:
        """Tell whether what comes next may be added to the stretch."""
        return self.end == len(self.stretch.references) < RUN_MESSAGES

    def is_whole(self) -> bool:
        """Tell whether it is all of a stretch that grows no more."""
        return self.start == 0 and RUN_MESSAGES <= self.end == len(self.stretch.references)
