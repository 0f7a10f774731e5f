"""Phases of an OpenWire connection: the handshake, then the login, then everything else."""

from enum import Enum
from typing import Final

from lockkeeper.states import StateMachine


class Phase(Enum):
    """Phase of a connection."""

    HANDSHAKE = "handshake"
    """The peer's WireFormatInfo is awaited."""
    LOGIN = "login"
    """The client has to say who it is."""
    VERIFYING = "verifying"
    """It has said so, and what it sends waits for the verdict."""
    OPEN = "open"
    HANDED_OVER = "handed over"
    """The peer is another broker, and a bridge goes on with the connection."""
    PARTING = "parting"
    """It was refused, and may close the connection itself, or try again."""
    CLOSED = "closed"


HANDSHAKE, LOGIN, VERIFYING, OPEN, HANDED_OVER, PARTING, CLOSED = Phase

PHASES: Final = StateMachine(
    "an OpenWire connection",
    (HANDSHAKE,),
    {
        HANDSHAKE: {"agree": LOGIN, "end": CLOSED},
        LOGIN: {"ask": VERIFYING, "admit": OPEN, "leave": LOGIN, "end": CLOSED},
        VERIFYING: {"admit": OPEN, "refuse": PARTING, "end": CLOSED},
        OPEN: {"leave": LOGIN, "hand over": HANDED_OVER, "end": CLOSED},
        HANDED_OVER: {"end": CLOSED},
        PARTING: {"ask": VERIFYING, "leave": PARTING, "end": CLOSED},
        CLOSED: {"end": CLOSED},
    },
)
"""Where everybody may connect, `admit` follows `agree` at once."""


class Progress:
    """The phase of one connection, which its session and its commands share."""

    __slots__ = ("phase",)

    def __init__(self) -> None:
        self.phase = HANDSHAKE

    def become(self, event: str) -> None:
        """Go on to the phase that *event* leads to; see `PHASES`."""
        self.phase = PHASES.after(self.phase, event)
