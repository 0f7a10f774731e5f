"""All protocols a listener can speak, by the name a Broker resource gives them."""

from collections.abc import Callable
from typing import Protocol

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.protocols.openwire.codec import Settings
from lockkeeper.protocols.openwire.frames import Piece
from lockkeeper.protocols.openwire.session import OpenWireSession


class Session(Protocol):
    """One connection of one protocol: bytes in, bytes out, no I/O of its own.

    `closing` asks the transport to close after what there is to send; `failure` says why.
    `partial` is what has come of a frame that is not whole, in bytes, if it is large; `unread`
    is what has come and is not carried out yet. What is to be sent `is_bulky` if parts of it are
    views of large messages, which others are sent, too: it is better not copied.
    """

    connection: Connection
    closing: bool
    failure: str
    partial: int
    unread: int
    is_bulky: bool

    @property
    def inactivity_duration(self) -> int:
        """How long the peer may be silent, in ms; 0 for ever."""

    @property
    def is_open(self) -> bool:
        """Tell whether the handshake is done."""

    def start(self) -> None:
        """Begin the handshake."""

    def keep_alive(self) -> None:
        """Send a sign of life."""

    def receive_data(self, data: bytes, most: int) -> None:
        """Take bytes from the peer; carry out about *most* bytes of them."""

    def read_on(self, most: int) -> None:
        """Carry out about *most* bytes of what is `unread`."""

    def data_to_send(self) -> list[Piece]:
        """Return the bytes to send now, and forget them."""

    def connection_lost(self) -> None:
        """Give back what the peer held."""


SessionFactory = Callable[[Broker, Settings, str], Session]

PROTOCOLS: dict[str, SessionFactory] = {"openwire": OpenWireSession}
