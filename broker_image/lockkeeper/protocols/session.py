"""The interface of a protocol: what a transport needs of it, bytes in and bytes out."""

from collections.abc import Callable
from typing import Protocol

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.protocols.settings import ListenerSettings


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
        """Longest silence of the peer in ms; 0 for no limit."""

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

    def data_to_send(self) -> list[bytes | memoryview]:
        """Return the bytes to send now, in pieces, and forget them."""

    def discard(self) -> None:
        """Forget what there is to send: nobody is there to take it."""

    def connection_lost(self) -> None:
        """Give back what the peer held."""


SessionFactory = Callable[[Broker, ListenerSettings, str], Session]
