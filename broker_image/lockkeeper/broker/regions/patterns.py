"""Index of wildcards: finds the consumers for a destination without asking every one of them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lockkeeper.broker.routing.names import is_own
from lockkeeper.message.destination import ANY_CHILD, ANY_DESCENDANT, Destination, path_matches

if TYPE_CHECKING:
    from lockkeeper.broker.subscriptions.consumer import Consumer


class Patterns:
    """Wildcards of consumers, sorted by the levels before their first `*` or `>`."""

    def __init__(self) -> None:
        self._sorted: dict[tuple[str, ...], dict[Destination, dict[Consumer, int]]] = {}
        self._count = 0

    def add(self, pattern: Destination, consumer: "Consumer") -> None:
        """Note that *consumer* wants all that *pattern* stands for."""
        self._count += 1
        alike = self._sorted.setdefault(_fixed(pattern.path), {})
        alike.setdefault(pattern, {}).setdefault(consumer, self._count)

    def remove(self, pattern: Destination, consumer: "Consumer") -> None:
        """Forget what `add` noted, if that was not forgotten before."""
        fixed = _fixed(pattern.path)
        alike = self._sorted.get(fixed, {})
        consumers = alike.get(pattern, {})
        consumers.pop(consumer, None)
        if not consumers:
            alike.pop(pattern, None)
        if not alike:
            self._sorted.pop(fixed, None)

    def any_fits(self, destination: Destination) -> bool:
        """Tell whether anybody's wildcard stands for *destination*."""
        return next(self._fitting(destination), None) is not None

    def listeners(self, destination: Destination) -> "list[Consumer]":
        """Return whose wildcard stands for *destination*, in the order in which they came."""
        found: dict[Consumer, int] = {}
        for consumers in self._fitting(destination):
            for consumer, number in consumers.items():
                found[consumer] = min(number, found.get(consumer, number))
        return sorted(found, key=found.__getitem__)

    def _fitting(self, destination: Destination) -> "Iterator[dict[Consumer, int]]":
        if not self._sorted:
            return
        path = destination.path
        for length in range(len(path) + 1):
            for pattern, consumers in self._sorted.get(path[:length], {}).items():
                if stands_for(pattern, destination):
                    yield consumers


def _fixed(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the levels of a wildcard that are the same in all names that it stands for."""
    for level, name in enumerate(path):
        if name in (ANY_CHILD, ANY_DESCENDANT):
            return path[:level]
    return path


def stands_for(pattern: Destination, destination: Destination) -> bool:
    """Tell whether *pattern* is for *destination*.

    One that is called like a wildcard is not, nor is what the broker keeps for itself.
    """
    if pattern.kind is not destination.kind:
        return False
    if destination.is_pattern:
        return pattern == destination
    return path_matches(pattern.path, destination.path) and not is_own(destination)
