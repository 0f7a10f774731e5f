"""Users of connections: each request may name one, and is signed with the user's password.

A signature can only be checked with the password itself, and the broker knows passwords by their
hashes alone. So a client sends its password as the security token, too, over TLS as with OpenWire:
the broker checks it once, and the signature of each request with it.
"""

from collections.abc import Callable

from lockkeeper.broker.access.rights import Rights
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Response
from lockkeeper.protocols.rocketmq.fields import Refusal
from lockkeeper.protocols.rocketmq.signatures import ACCESS_KEY, TOKEN, is_signed

_NEEDS = "give the user as access key, the password as secret key and as security token"


class Login:
    """The user of one connection; while it `is_pending`, requests wait."""

    __slots__ = ("_broker", "_connection", "_given", "_go_on", "_is_checked", "is_pending")

    def __init__(self, broker: Broker, connection: Connection, go_on: Callable[[], None]) -> None:
        """*go_on* is called when a verdict has come later."""
        self._broker = broker
        self._connection = connection
        self._go_on = go_on
        self._given: tuple[str | None, str | None] = (None, None)
        self._is_checked = False
        self.is_pending = False

    @property
    def is_over(self) -> bool:
        """Tell whether it is known who the client is, or does not matter."""
        return self._broker.authenticator is None or self._connection.rights is not None

    def needs_verdict(self, request: Command) -> bool:
        """Tell whether the request has to wait until its user is known; asks if need be."""
        authenticator = self._broker.authenticator
        if authenticator is None:
            return False
        given = request.fields.get(ACCESS_KEY), request.fields.get(TOKEN)
        if self._is_checked and given == self._given:
            return False
        self._given, self._is_checked, self.is_pending = given, False, True
        self._connection.rights = None
        authenticator.check_password(*given, self._take_verdict, self._connection.address)
        return self.is_pending

    def _take_verdict(self, rights: Rights | None) -> None:
        self._connection.rights = rights
        if rights is not None:
            self._connection.user_name = rights.user
        was_waiting, self.is_pending, self._is_checked = self.is_pending, False, True
        if was_waiting:
            self._go_on()

    def check_request(self, request: Command) -> None:
        """Make sure that the user has sent this request. Raises Refusal."""
        if self._broker.authenticator is None:
            return
        user, password = self._given
        if self._connection.rights is None:
            raise Refusal(Response.NO_PERMISSION, _refused(user, password))
        if password is not None and not is_signed(request, password):
            raise Refusal(
                Response.NO_PERMISSION, "the signature is not that of the user's password"
            )


def _refused(user: str | None, password: str | None) -> str:
    """Return why nobody is let in who gives these."""
    if user is None:
        return f"the request names no user: {_NEEDS}"
    if password is None:
        return f"the user {user} gives no password: {_NEEDS}"
    return f"User name [{user}] or password is invalid."
