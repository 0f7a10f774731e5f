"""Tree of destinations by the levels of their names: finds those of a wildcard without the others.

What is called like a wildcard, or is the broker's own, is not in it.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias, Union

from lockkeeper.broker.routing.names import is_own
from lockkeeper.message.destination import ANY_CHILD, ANY_DESCENDANT, Destination, Kind

if TYPE_CHECKING:
    from lockkeeper.broker.regions.queue import Queue
    from lockkeeper.broker.regions.topic import Topic

# There may be very many destinations: one that nothing follows is its own place, without a dict.
# Where something does follow, it is found under None.
Place: TypeAlias = Union["dict[str | None, Place]", "Queue", "Topic"]
Branch: TypeAlias = "dict[str | None, Place]"


class Tree:
    """All destinations that a wildcard may stand for; each kind has a tree of its own."""

    def __init__(self) -> None:
        self._roots: dict[Kind, Branch] = {kind: {} for kind in Kind}

    def add(self, region: "Queue | Topic") -> None:
        """Add a destination, or another one of the same name in its place."""
        destination = region.destination
        if destination.is_pattern or is_own(destination):
            return
        branch = self._roots[destination.kind]
        *first, last = destination.path
        for name in first:
            following = branch.get(name)
            if not isinstance(following, dict):
                following = {} if following is None else {None: following}
                branch[name] = following
            branch = following
        place = branch.get(last)
        if isinstance(place, dict):
            place[None] = region
        else:
            branch[last] = region

    def remove(self, destination: Destination) -> None:
        """Remove a destination, if it is there."""
        way: list[tuple[Branch, str | None]] = []
        place: Place | None = self._roots[destination.kind]
        for name in destination.path:
            if not isinstance(place, dict):
                return
            way.append((place, name))
            place = place.get(name)
        if isinstance(place, dict):
            way.append((place, None))
        # Branches end with what was last on them.
        for branch, key in reversed(way):
            branch.pop(key, None)
            if branch:
                break

    def matching(self, pattern: Destination) -> "list[Queue | Topic]":
        """Return what a wildcard stands for."""
        places: list[Place] = [self._roots[pattern.kind]]
        for name in pattern.path:
            if name == ANY_DESCENDANT:
                return [*_all_below(places)]
            branches = [place for place in places if isinstance(place, dict)]
            if name == ANY_CHILD:
                places = [
                    place for branch in branches for key, place in branch.items() if key is not None
                ]
            else:
                places = [branch[name] for branch in branches if name in branch]
        found: list[Queue | Topic] = []
        for place in places:
            here = place.get(None) if isinstance(place, dict) else place
            if here is not None and not isinstance(here, dict):
                found.append(here)
        return found


def _all_below(places: Iterable[Place]) -> "Iterator[Queue | Topic]":
    """Yield what is at *places*, and all that follows there."""
    left = [*places]
    while left:
        place = left.pop()
        if isinstance(place, dict):
            left.extend(reversed(place.values()))
        else:
            yield place
