"""A client that says who it is: what waits for the verdict, and what follows from it."""

from collections.abc import Callable

from lockkeeper.broker.access.rights import Rights
from lockkeeper.broker.connections import STALLED_BYTES_MAX, Connection
from lockkeeper.broker.errors import AccessDeniedError, BrokerError
from lockkeeper.message import openwire
from lockkeeper.store.base import Receipt

PARTING_MS = 2_000
"""How long a client that was refused may take to close its connection (ActiveMQ's)."""
BEFORE_LOGIN = (
    openwire.BrokerInfo,
    openwire.BrokerSubscriptionInfo,
    openwire.ConnectionInfo,
    openwire.ConnectionControl,
    openwire.KeepAliveInfo,
    openwire.RemoveInfo,
    openwire.ShutdownInfo,
)
"""Commands of those who have not said who they are."""
_HELD_BYTES = STALLED_BYTES_MAX + 1


class Login:
    """One ConnectionInfo and its verdict, which may take its time.

    While it `is_pending`, the client is not read from, and what it has sent stays as it is.
    """

    __slots__ = ("_announce", "_connection", "_receipt", "_user", "go_on", "is_over", "is_pending")

    def __init__(
        self,
        connection: Connection,
        user: str | None,
        receipt: Receipt | None,
        announce: Callable[[Rights], None],
    ) -> None:
        """*announce* is called for a user who may connect, and may raise BrokerError."""
        self._connection = connection
        self._user = user
        self._receipt = receipt
        self._announce = announce
        self.is_pending = True
        self.is_over = False
        self.go_on: Callable[[], None] | None = None

    def hold(self, go_on: Callable[[], None]) -> None:
        """Have the client wait; *go_on* is called with the verdict, unless the client is gone."""
        self.go_on = go_on
        self._connection.stalled_bytes += _HELD_BYTES

    def forget(self) -> None:
        """Have no verdict any more: the client is gone."""
        self.is_over = True

    def take_verdict(self, rights: Rights | None) -> None:
        """Take the verdict."""
        if self.is_over:
            return
        self.is_pending, self.is_over = False, True
        try:
            if rights is None:
                shown = "null" if self._user is None else self._user
                raise AccessDeniedError(f"User name [{shown}] or password is invalid.")
            self._announce(rights)
        except BrokerError as error:
            self._connection.refuse(self._receipt, error)
        if self.go_on is not None:
            self._connection.stalled_bytes -= _HELD_BYTES
            self.go_on()
