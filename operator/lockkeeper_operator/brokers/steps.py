"""Steps of a Broker's plan: about its children, and about its pods.

Deletions of pods carry the uid of what was seen, as those of children do.
"""

from dataclasses import dataclass
from typing import TypeAlias

from lockkeeper_operator.kubernetes.children.steps import (
    Apply,
    Conflict,
    Create,
    Delete,
    Refused,
    Wait,
)


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


Step: TypeAlias = (
    Create | Apply | Delete | DeletePod | SwitchOver | Push | Fence | Wait | Conflict | Refused
)
