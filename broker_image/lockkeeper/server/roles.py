"""The roles of a process, as its log, its status and whoever supervises it name them."""

from enum import StrEnum
from typing import Final

from lockkeeper.states import StateMachine


class Role(StrEnum):
    """Role of a process."""

    STARTING = "starting"
    STANDBY = "standby"
    """Another process holds the directory's lock; this one waits for it."""
    RECOVERING = "recovering"
    """It holds the lock and reads the journal."""
    MASTER = "master"
    """It serves clients."""
    FENCED = "fenced"
    """A person keeps it from serving and from taking over; it only answers questions."""
    STOPPED = "stopped"
    ENDED = "ended"
    """The process is no more; its supervisor says so."""


STARTING, STANDBY, RECOVERING, MASTER, FENCED, STOPPED, ENDED = Role

_BEGINNING: Final = {
    "somebody else holds the lock": STANDBY,
    "takes the lock": RECOVERING,
    "fenced": FENCED,
    "stopped": STOPPED,
}
ROLES: Final = StateMachine(
    "a process",
    (STARTING,),
    {
        STARTING: _BEGINNING,
        STANDBY: {"takes the lock": RECOVERING, "stopped": STOPPED},
        RECOVERING: {"has read the journal": MASTER, "stopped": STOPPED},
        MASTER: {"stopped": STOPPED},
        # A fence, or its end, begins a new term in the same process.
        FENCED: _BEGINNING,
        STOPPED: _BEGINNING,
    },
)
