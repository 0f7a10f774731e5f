"""Permissions of groups by wildcard, as the entries of ActiveMQ's authorizationPlugin."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from lockkeeper.message.destination import (
    ANY_CHILD,
    ANY_DESCENDANT,
    PATH_SEPARATOR,
    Destination,
    path_covers,
    path_matches,
)

EVERYBODY = "*"
"""Stands for any group, as in ActiveMQ."""
Groups = frozenset[str]


class Right(Enum):
    """A right of a user to a destination; its value completes the sentence of a refusal."""

    READ = "read from"
    WRITE = "write to"
    CREATE = "create"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class PermissionEntry:
    """Rights of groups to the destinations that match `pattern` (`is_queue` None: both kinds)."""

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

    All entries that match add up, as in ActiveMQ: a narrow one gives more and takes nothing away.
    Where none matches, nothing is allowed. A wildcard is allowed by an entry as wide as it is.
    """

    def __init__(self, entries: Iterable[PermissionEntry]) -> None:
        self._entries = [(tuple(each.pattern.split(PATH_SEPARATOR)), each) for each in entries]

    def allows(self, right: Right, destination: Destination, groups: Groups) -> bool:
        """Tell whether one of *groups* has a right on *destination*, which is no composite."""
        path = destination.path
        is_wildcard = ANY_CHILD in path or ANY_DESCENDANT in path
        covers = path_covers if is_wildcard else path_matches
        return any(
            entry.grants(right, groups) and _is_for(entry, destination) and covers(pattern, path)
            for pattern, entry in self._entries
        )


def _is_for(entry: PermissionEntry, destination: Destination) -> bool:
    return entry.is_queue is None or entry.is_queue == destination.is_queue
