"""Steps of a plan. Each names all that is needed to carry it out, or tells why not.

Deletions carry the uid of what was seen, so that a step planned from a stale view cannot hit the
successor of the same name.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object that is not there, by server-side apply."""

    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Apply:
    """Bring an object to what it is to be, by server-side apply.

    *drift* says that it was so once, and somebody else changed it.
    """

    manifest: dict[str, Any]
    drift: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an object that is not wanted any more."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Let a pod start anew; the StatefulSet makes its successor."""

    name: str
    uid: str
    reason: str


@dataclass(frozen=True, slots=True)
class SwitchOver:
    """Let the master stop cleanly, by deleting its pod; a standby takes over."""

    master: str
    uid: str
    successor: str


@dataclass(frozen=True, slots=True)
class Push:
    """Tell a running broker to take over the configuration with this hash."""

    pod: str
    configuration: str


@dataclass(frozen=True, slots=True)
class Fence:
    """Tell a running broker to let go of everything and take nothing, or to stand by again."""

    pod: str
    fenced: bool


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


Step: TypeAlias = (
    Create | Apply | Delete | DeletePod | SwitchOver | Push | Fence | Wait | Conflict | Refused
)
