"""Events: what applications may want to know without having asked."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from lockkeeper.client.errors import MessagingError


class ConnectionState(Enum):
    """State of a connection."""

    CONNECTING = "connecting"
    """No broker was there yet."""

    CONNECTED = "connected"
    """A broker is there."""

    INTERRUPTED = "interrupted"
    """The broker is lost; the next one is looked for."""

    CLOSED = "closed"
    """The application has closed it."""

    FAILED = "failed"
    """The broker is lost for good."""

    @property
    def is_over(self) -> bool:
        """Tell whether it will not be connected any more."""
        return self in (ConnectionState.CLOSED, ConnectionState.FAILED)


class Silence(NamedTuple):
    """Seconds since the last frame in each direction."""

    received: float
    sent: float


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The broker is lost; what waits for it goes on with the next one."""

    error: BaseException | None


@dataclass(frozen=True, slots=True)
class Resumed:
    """A broker is there again, and knows everything that the one before knew."""

    address: str


@dataclass(frozen=True, slots=True)
class Reported:
    """The broker reports an error that belongs to no call."""

    error: MessagingError


Event = Interrupted | Resumed | Reported
