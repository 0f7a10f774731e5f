"""Permissions of groups by wildcard, as the entries of ActiveMQ's authorizationPlugin."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from lockkeeper.broker.policies.policy import specificity
from lockkeeper.message.destination import (
    ANY_CHILD,
    ANY_DESCENDANT,
    PATH_SEPARATOR,
    Destination,
    path_covers,
    path_matches,
    paths_overlap,
)

EVERYBODY = "*"
"""Stands for any group, as in ActiveMQ."""
Groups = frozenset[str]
Rank = tuple[int, int]


class Right(Enum):
    """What a user may be allowed to do; the value is how refusals call it."""

    READ = "read from"
    WRITE = "write to"
    CREATE = "create"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class PermissionEntry:
    """What groups may do with the destinations that `pattern` stands for (None: both kinds)."""

    pattern: str
    is_queue: bool | None = None
    read: Groups = frozenset()
    write: Groups = frozenset()
    admin: Groups = frozenset()

    def grants(self, right: Right, groups: Groups) -> bool:
        """Tell whether one of *groups* has the right by this entry."""
        chosen = {Right.READ: self.read, Right.WRITE: self.write}.get(right, self.admin)
        return EVERYBODY in chosen or not chosen.isdisjoint(groups)


class PermissionMap:
    """Finds what a user may do with a destination.

    The most specific entry that matches decides; equally specific ones add up; where none
    matches, nothing is allowed. A wildcard is allowed only if all that it stands for is.
    """

    def __init__(self, entries: Iterable[PermissionEntry]) -> None:
        paths = ((tuple(entry.pattern.split(PATH_SEPARATOR)), entry) for entry in entries)
        self._entries = [(path, specificity(path), entry) for path, entry in paths]

    def allows(self, right: Right, destination: Destination, groups: Groups) -> bool:
        """Tell whether one of *groups* has a right on *destination*, which is no composite."""
        path = destination.path
        is_wildcard = ANY_CHILD in path or ANY_DESCENDANT in path
        covers = path_covers if is_wildcard else path_matches
        best: Rank = (-1, -1)
        granted = False
        for pattern, rank, entry in self._entries:
            if _is_for(entry, destination) and rank >= best and covers(pattern, path):
                has_it = entry.grants(right, groups)
                granted = has_it or (granted and rank == best)
                best = rank
        if granted and is_wildcard:
            return all(
                entry.grants(right, groups)
                for pattern, rank, entry in self._entries
                if rank > best and _is_for(entry, destination) and paths_overlap(pattern, path)
            )
        return granted


def _is_for(entry: PermissionEntry, destination: Destination) -> bool:
    return entry.is_queue is None or entry.is_queue == destination.is_queue
