"""References to messages that wait on the disk, packed: 8 to 22 bytes each instead of 170."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Final, TypeAlias

from lockkeeper.store.base import REMOVED, UNKNOWN, VOLATILE, WRITTEN, Reference, State

RUN_MESSAGES = 1024
RUN_BYTES = 1 << 20
"""A run ends with so much on the disk, too, if it has a few messages: RUN_MESSAGES_MIN."""
RUN_MESSAGES_MIN = 16

# Kinds of arrays, and what no longer fits.
_ENDS: Final = tuple((kind, 1 << 8 * array(kind).itemsize - 1) for kind in "bhiq")

Column: TypeAlias = "int | array[int]"
"""Something of each message in a run, once if it is the same for all."""


class PackedRun:
    """Messages one after the other, none of them in memory, none ever sent to a consumer.

    Who looks at a run without taking it borrows its references; whoever takes it meanwhile gets
    the same ones, so that it is seen when a message ends. What is the same for all messages is
    kept once. Several subscriptions of a topic may have the same run, each of them counted in
    `holders`.
    """

    __slots__ = (
        "_borrowers",
        "_expirations",
        "_holders",
        "_is_taken",
        "_locations",
        "_priorities",
        "_references",
        "_sizes",
        "_states",
    )

    def __init__(self, references: Sequence[Reference], holders: int = 1) -> None:
        self._pack(references, holders)
        self._borrowers = 0

    def _pack(self, references: Sequence[Reference], holders: int) -> None:
        self._holders = holders
        self._locations = array("q", [each.location for each in references])
        self._sizes = column_of([each.size for each in references])
        self._priorities = column_of([each.priority for each in references])
        self._expirations = column_of([each.expiration for each in references])
        self._states = column_of([int(each.state) for each in references])
        self._references: list[Reference] | None = None
        self._is_taken = False

    @classmethod
    def read(cls, locations: "array[int]", sizes: Column, priorities: Column) -> "PackedRun":
        """Return a run of messages in the journal of which nothing else is known."""
        run = cls.__new__(cls)
        run._locations = locations
        run._sizes, run._priorities = _narrowed(sizes), _narrowed(priorities)
        run._expirations, run._states, run._holders = UNKNOWN, int(WRITTEN), 1
        run._references = None
        run._borrowers = 0
        run._is_taken = False
        return run

    def __len__(self) -> int:
        """Return how many messages are in the run."""
        return len(self._locations)

    def take_references(self) -> list[Reference]:
        """Return references to the messages, for whoever puts them in the place of the run."""
        self._is_taken = True
        if self._references is None:
            self._references = self._unpack()
        return self._references

    def is_taken(self) -> bool:
        """Tell whether one of several that have the run has taken the references."""
        return self._is_taken

    def pack_again(self, holders: int) -> None:
        """Pack what was taken, once none but the *holders* that have the run need any of it."""
        references = self._references
        if references is None or self._borrowers:
            return
        if all(is_packable_for(each, holders) for each in references):
            self._pack(references, holders)

    def leave(self) -> bool:
        """Count one holder less, if others are left and nobody has references; tell whether."""
        if self._references is not None or self._holders == 1:
            return False
        self._holders -= 1
        return True

    def shown(self) -> list[Reference]:
        """Return references for somebody who looks at them at once, and changes nothing."""
        return self._unpack() if self._references is None else self._references

    def borrow(self) -> list[Reference]:
        """Return references for somebody who only looks, until `give_back`."""
        if self._references is None:
            self._references = self._unpack()
        self._borrowers += 1
        return self._references

    def give_back(self) -> None:
        """Tell that somebody looks no more."""
        self._borrowers -= 1
        if not self._borrowers and not self._is_taken:
            self._references = None

    def is_only_stored(self) -> bool:
        """Tell whether all of it is in the journal, and nobody has a reference to any of it."""
        return self._references is None and self._states == WRITTEN

    def end(self) -> None:
        """Note that nobody needs the messages any more."""
        self._states = int(REMOVED)

    def bytes_by_file(self, offset_bits: int) -> dict[int, int]:
        """Return how many bytes lie in each file; offsets are the low bits of locations."""
        first, last = min(self._locations) >> offset_bits, max(self._locations) >> offset_bits
        sizes = self._sizes
        if first == last:
            return {first: sum(sizes) if isinstance(sizes, array) else sizes * len(self)}
        found: dict[int, int] = {}
        for location, size in zip(self._locations, each_of(sizes, len(self)), strict=True):
            file_id = location >> offset_bits
            found[file_id] = found.get(file_id, 0) + size
        return found

    def _unpack(self) -> list[Reference]:
        columns = (self._sizes, self._priorities, self._expirations, self._states)
        references = []
        for location, size, priority, expiration, state in zip(
            self._locations, *(each_of(column, len(self)) for column in columns), strict=True
        ):
            reference = Reference(None, size, location, State(state))
            reference.priority = priority
            reference.expiration = expiration
            reference.holders = self._holders
            references.append(reference)
        return references

    def earliest(self) -> int | None:
        """Return when the first of the messages expires, UNKNOWN, or None if none does."""
        expirations = self._expirations
        if not isinstance(expirations, array):
            return expirations or None
        least = min(expirations)
        return least or min((each for each in expirations if each), default=None)

    def learn(self, expirations: Sequence[int]) -> None:
        """Note when each of the messages expires."""
        self._expirations = column_of(expirations)
        if self._references is not None:
            for reference, expiration in zip(self._references, expirations, strict=True):
                reference.expiration = expiration


class PackedReferences:
    """Messages in order: runs of them, then the rest."""

    __slots__ = ("rest", "runs")

    def __init__(self, runs: list[PackedRun], rest: list[Reference]) -> None:
        self.runs = runs
        self.rest = rest

    def __len__(self) -> int:
        """Return how many messages there are."""
        return sum(map(len, self.runs)) + len(self.rest)

    def __iter__(self) -> Iterator[Reference]:
        """Iterate in order; changes to what is in runs are lost."""
        for run in self.runs:
            yield from run.shown()
        yield from self.rest


def is_packable(reference: Reference) -> bool:
    """Tell whether everything there is to know of a message fits into a run."""
    return is_packable_for(reference, 1) and not reference.delivery


def is_packable_for(reference: Reference, holders: int) -> bool:
    """Tell that of a message of a topic, whose deliveries are those of each subscription."""
    return (
        reference.message is None
        and reference.location > 0
        and reference.state in (VOLATILE, WRITTEN)
        and reference.holders == holders
        and not reference.held
        and not reference.redeliveries
        and reference.receipt is None
    )


def column_of(values: Sequence[int]) -> Column:
    """Return one of the values if all are the same, else all of them in as few bytes as will do."""
    least, most = min(values), max(values)
    if least == most:
        return least
    return array(next(kind for kind, end in _ENDS if -end <= least and most < end), values)


def each_of(column: Column, count: int) -> Iterable[int]:
    """Return what a column says of each of *count* messages."""
    return column if isinstance(column, array) else repeat(column, count)


def _narrowed(column: Column) -> Column:
    return column if isinstance(column, int) else column_of(column)
