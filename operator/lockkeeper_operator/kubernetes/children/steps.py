"""Steps about children. Each names all that is needed to carry it out, or tells why not.

Deletions carry the uid of what was seen, so that a step planned from a stale view cannot hit the
successor of the same name.
"""

from dataclasses import dataclass
from typing import TypeAlias

from lockkeeper_operator.kubernetes.manifests import Manifest


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object that is not there, by server-side apply."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Apply:
    """Bring an object to what it is to be, by server-side apply.

    *drift* says that it was so once, and somebody else changed it.
    """

    manifest: Manifest
    drift: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an object that is not wanted any more."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before something else happens."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """An object of that name belongs to somebody else: it is left alone."""

    kind: str
    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The API server does not take an object as it is to be; told after the fact, not planned."""

    kind: str
    name: str
    message: str


Step: TypeAlias = Create | Apply | Delete | Wait | Conflict | Refused
