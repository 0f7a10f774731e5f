"""Index of a consumer of several destinations: its messages by where they came from."""

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from lockkeeper.message.destination import Destination
from lockkeeper.store.base import Reference


class Place(Protocol):
    """Source of a consumer's messages: a queue, or its part of a topic."""

    destination: Destination


P = TypeVar("P", bound=Place)


def by_destination(references: Iterable[Reference]) -> dict[Destination, list[Reference]]:
    """Return messages by where they came from, each in order."""
    found: dict[Destination, list[Reference]] = {}
    for reference in references:
        found.setdefault(reference.loaded.destination, []).append(reference)
    return found


class Places(Generic[P]):
    """The backlogs of one consumer by name, and what it holds of each.

    A consumer of one destination, as most are, never has this. What is held is sorted again
    when it is not the same any more: `stamp` says so, at no cost for those who send.
    """

    __slots__ = ("_backlogs", "_held", "_stamp", "served")

    def __init__(self) -> None:
        self._backlogs: dict[Destination, P] = {}
        self._held: dict[Destination, list[int]] = {}
        self._stamp: object = None
        # What was acknowledged since all were last asked to send, the latest last.
        self.served: dict[P, None] = {}

    def find(self, backlogs: list[P], destination: Destination) -> P:
        """Return the one of *backlogs*, which are this consumer's, that has this name."""
        if len(self._backlogs) != len(backlogs):
            self._backlogs = {backlog.destination: backlog for backlog in backlogs}
        return self._backlogs[destination]

    def serve(self, backlog: P) -> None:
        """Have a backlog come after all others when they are next asked to send."""
        self.served.pop(backlog, None)
        self.served[backlog] = None

    def turned(self, backlogs: list[P]) -> list[P]:
        """Return *backlogs* in the order in which they are to be asked now."""
        served, self.served = self.served, {}
        return [*(each for each in backlogs if each not in served), *served]

    def held(
        self, dispatched: dict[int, Reference], delivered: int, destination: Destination
    ) -> list[Reference]:
        """Return those of *dispatched*, after so many deliveries, that are of *destination*.

        In the same dict, what was not delivered since can only have gone.
        """
        before, stamp = self._stamp, (dispatched, delivered, len(dispatched))
        if not isinstance(before, tuple) or before[0] is not dispatched or before[1:] != stamp[1:]:
            self._stamp = stamp
            self._held = {
                place: [reference.loaded.sequence for reference in references]
                for place, references in by_destination(dispatched.values()).items()
            }
        return [dispatched[sequence] for sequence in self._held.get(destination, ())]
