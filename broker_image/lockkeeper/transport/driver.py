"""What a socket needs of whoever drives the broker: the clock, and a turn soon."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from lockkeeper.transport.peer import Peer


class Guest(Protocol):
    """Somebody connected who may not have said who it is."""

    @property
    def address(self) -> str:
        """Where it comes from."""

    @property
    def is_in(self) -> bool:
        """Tell whether it has said who it is, if it has to."""

    def abort(self) -> None:
        """End the connection at once."""


class Driver(Protocol):
    """Drives the core; implemented by the server."""

    steady: int

    def arrived(self) -> int:
        """Tell the core what time it is now that a piece came, and return `steady`: ms that only
        pass.
        """

    def wake(self) -> None:
        """Have a turn at the end of this round of the event loop."""

    def received(self, peer: "Peer", size: int) -> None:
        """Count *size* bytes that came from a peer, and have a turn at the end of this round."""

    def joined(self, peer: "Peer") -> int:
        """Note a new peer; returns how many there are."""

    def left(self, peer: "Peer") -> None:
        """Forget a peer."""

    def failed(self, peer: "Peer", error: Exception) -> None:
        """Part with a peer whose bytes, or what they asked for, nobody could deal with."""

    def throttled(self, peer: "Peer") -> None:
        """Call the peer's `throttle` again when there may be memory."""
