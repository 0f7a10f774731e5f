"""Pending messages ordered by priority: ten levels, the highest first."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Final

from lockkeeper.broker.regions.line import Line, Segment, packed, withdraw
from lockkeeper.message.message import Message
from lockkeeper.store.base import Reference
from lockkeeper.store.packed import PackedRun

LEVELS: Final = 10
LEVEL_DEFAULT: Final = 4
# How many messages given back earlier are put in order with those given back now: more would
# take too long when everybody leaves at once.
PUT_BACK_MAX: Final = 1000


def priority_of(message: Message) -> int:
    """Return the level that a message asks for, 0 to 9."""
    return min(message.priority, LEVELS - 1)


def level_of(reference: Reference) -> int:
    """Return a message's level; one that was stored without priorities is in the middle."""
    priority = reference.priority
    return min(priority, LEVELS - 1) if priority >= 0 else LEVEL_DEFAULT


def put_back(ready: deque[Reference] | Line, references: Iterable[Reference]) -> None:
    """Put messages before all others, among those given back earlier by when they were sent."""
    returned = sorted(references, key=attrgetter("delivery"))
    steps = PUT_BACK_MAX
    while returned and ready and returned[0].delivery < ready[0].delivery < 0 and steps:
        returned.append(ready.popleft())
        steps -= 1
    returned.sort(key=attrgetter("delivery"))
    ready.extendleft(returned)


class PriorityQueue:
    """Used as a deque is, by whoever need not know of priorities."""

    __slots__ = ("_count", "_levels")

    def __init__(self) -> None:
        self._levels: list[deque[Reference] | Line] = [deque() for _ in range(LEVELS)]
        self._count = 0

    def __len__(self) -> int:
        """Return how many messages wait on all levels."""
        return self._count

    def __iter__(self) -> Iterator[Reference]:
        """Iterate in the order of dispatch."""
        return chain.from_iterable(reversed(self._levels))

    def __getitem__(self, index: int) -> Reference:
        """Return the next message: only index 0 is cheap, and only it is needed."""
        if index:
            raise IndexError("only the next message can be looked at")
        return self._highest()[0]

    def append(self, reference: Reference) -> None:
        """Add a message behind those of its level."""
        self._levels[level_of(reference)].append(reference)
        self._count += 1

    def extend(self, references: Iterable[Reference]) -> None:
        """Add messages, each behind those of its level."""
        for reference in references:
            self.append(reference)

    def appendleft(self, reference: Reference) -> None:
        """Put a message before those of its level."""
        self._levels[level_of(reference)].appendleft(reference)
        self._count += 1

    def extendleft(self, references: Iterable[Reference]) -> None:
        """Put messages, one after the other, each before those of its level."""
        for reference in references:
            self.appendleft(reference)

    def give_back(self, references: Iterable[Reference]) -> None:
        """Put messages before all others of their levels; see `put_back`."""
        for number, level in enumerate(self._levels):
            put_back(level, [each for each in references if level_of(each) == number])
        self._count = sum(map(len, self._levels))

    def popleft(self) -> Reference:
        """Take the next message."""
        reference = self._highest().popleft()
        self._count -= 1
        return reference

    def clear(self) -> None:
        """Forget everything."""
        for level in self._levels:
            level.clear()
        self._count = 0

    def pack(self) -> None:
        """Pack what can be packed by now of long levels."""
        self._levels = [packed(level) for level in self._levels]

    def loose(self) -> Iterator[Reference]:
        """Iterate over what is not packed, in the order of dispatch."""
        return chain.from_iterable(
            level.loose() if isinstance(level, Line) else level for level in reversed(self._levels)
        )

    def upcoming(self) -> Iterable[Reference]:
        """Return the next messages of the highest level, as far as they are not packed."""
        if not self._count:
            return ()
        level = self._highest()
        return level.upcoming() if isinstance(level, Line) else level

    def withdraw(self, references: set[Reference]) -> None:
        """Take out messages that are not packed, wherever they are."""
        for level in self._levels:
            withdraw(level, references)
        self._count = sum(map(len, self._levels))

    def reveal(self, now: int, page: int, learn: Callable[[PackedRun], None]) -> int | None:
        """See `Line.reveal`."""
        lines = (level for level in self._levels if isinstance(level, Line))
        found = (line.reveal(now, page, learn) for line in lines)
        return min((each for each in found if each is not None), default=None)

    def segments(self) -> list[Segment]:
        """Return everything, in the order of dispatch."""
        found: list[Segment] = []
        for level in reversed(self._levels):
            found += level.segments() if isinstance(level, Line) else [level]
        return found

    def _highest(self) -> "deque[Reference] | Line":
        for level in reversed(self._levels):
            if level:
                return level
        raise IndexError("nothing waits")
