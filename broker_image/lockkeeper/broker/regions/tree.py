"""Tree of destinations by the levels of their names: finds those of a wildcard without the others.

What is called like a wildcard, or is the broker's own, is not in it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias, Union

from lockkeeper.broker.routing.names import is_own
from lockkeeper.message.destination import (
    ANY_CHILD,
    ANY_DESCENDANT,
    PATH_SEPARATOR,
    Destination,
    Kind,
    path_matches,
)

if TYPE_CHECKING:
    from lockkeeper.broker.regions.queue import Queue
    from lockkeeper.broker.regions.topic import Topic

Region: TypeAlias = "Queue | Topic"
Place: TypeAlias = Union["Branch", "Queue", "Topic"]
_NOTHING: Final = ""


class Branch:
    """Place where names part: they share the first levels of `name`, as many as `level` says.

    `following` has a place for each next level, and for what ends here under None. Levels at which
    nothing parts have no branch, so there are never more of them than destinations, however long
    their names are; whoever goes from one to the next compares what lies between at the end.
    """

    __slots__ = ("following", "level", "name")

    def __init__(self, level: int, name: str) -> None:
        self.level = level
        self.name = name
        self.following: dict[str | None, Place] = {}

    @property
    def shared(self) -> tuple[str, ...]:
        """The levels that all names have in common."""
        return tuple(self.name.split(PATH_SEPARATOR)[: self.level])


class Tree:
    """All destinations that a wildcard may stand for; each kind has a tree of its own."""

    def __init__(self) -> None:
        self._roots = {kind: Branch(0, _NOTHING) for kind in Kind}

    def add(self, region: Region) -> None:
        """Add a destination, or another one of the same name in its place."""
        destination = region.destination
        if destination.is_pattern or is_own(destination):
            return
        path, branch = destination.path, self._roots[destination.kind]
        shared = _shared_levels(path, _levels_of(_nearest(branch, path)))
        key = _key(path, 0)
        while isinstance(place := branch.following.get(key), Branch) and place.level <= shared:
            branch, key = place, _key(path, place.level)
        if place is not None and _levels_of(place) != path:
            fork = Branch(shared, destination.name)
            fork.following[_key(_levels_of(place), shared)] = place
            branch.following[key] = fork
            branch, key = fork, _key(path, shared)
        branch.following[key] = region

    def remove(self, destination: Destination) -> None:
        """Remove a destination, if it is there."""
        path, branch = destination.path, self._roots[destination.kind]
        before, way, key = branch, None, _key(path, 0)
        while isinstance(place := branch.following.get(key), Branch):
            before, way, branch, key = branch, key, place, _key(path, place.level)
        if place is None or place.destination != destination:
            return
        del branch.following[key]
        if branch is not before and len(branch.following) == 1:
            # Nothing parts here any more.
            (before.following[way],) = branch.following.values()

    def matching(self, pattern: Destination) -> list[Region]:
        """Return what a wildcard stands for."""
        path = pattern.path
        length = path.index(ANY_DESCENDANT) if ANY_DESCENDANT in path else len(path)
        found: list[Region] = []
        left: list[Place] = [self._roots[pattern.kind]]
        while left:
            place = left.pop()
            if not isinstance(place, Branch):
                if path_matches(path, place.destination.path):
                    found.append(place)
            elif place.level < length:
                left.extend(_next_places(place, path[place.level]))
            elif length < len(path):
                if path_matches(path, place.shared):
                    found.extend(_all_below(place))
            elif place.level == length:
                left.extend(_next_places(place, None))
        return found


def _key(path: tuple[str, ...], level: int) -> str | None:
    """Return by what a name is found where names part at *level*."""
    return path[level] if level < len(path) else None


def _levels_of(place: Place) -> tuple[str, ...]:
    """Return the levels that all names at a place begin with."""
    return place.shared if isinstance(place, Branch) else place.destination.path


def _nearest(root: Branch, path: tuple[str, ...]) -> Place:
    """Return a place whose names share as many levels with *path* as any do."""
    place: Place = root
    while isinstance(place, Branch):
        following = place.following.get(_key(path, place.level))
        if following is None:
            break
        place = following
    return place


def _shared_levels(path: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return how many levels two names share before they part."""
    for level, (one, another) in enumerate(zip(path, other, strict=False)):
        if one != another:
            return level
    return min(len(path), len(other))


def _next_places(branch: Branch, name: str | None) -> list[Place]:
    """Return where those go on whose next level is *name*, the first of them last."""
    if name == ANY_CHILD:
        items = reversed(branch.following.items())
        return [place for key, place in items if key is not None]
    place = branch.following.get(name)
    return [] if place is None else [place]


def _all_below(branch: Branch) -> Iterator[Region]:
    """Yield all that is at a branch and behind it."""
    left: list[Place] = [branch]
    while left:
        place = left.pop()
        if isinstance(place, Branch):
            left.extend(reversed(place.following.values()))
        else:
            yield place
