"""What a socket needs of whoever drives the broker: the clock, and a turn soon."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from lockkeeper.transport.peer import Peer


class Driver(Protocol):
    """Drives the core; implemented by the server."""

    now: int

    def stamp(self) -> int:
        """Read the clock (ms since the epoch), tell the core, and return it."""

    def wake(self) -> None:
        """Have a turn at the end of this round of the event loop."""

    def joined(self, peer: "Peer") -> None:
        """Note a new peer."""

    def left(self, peer: "Peer") -> None:
        """Forget a peer."""

    def throttled(self, peer: "Peer") -> None:
        """Call the peer's `throttle` again when there may be memory."""
