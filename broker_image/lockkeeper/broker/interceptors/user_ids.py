"""JMSXUserID: who sent a message, in the broker's words (ActiveMQ's populateJMSXUserID)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lockkeeper.message.message import Message
from lockkeeper.message.rewrite import decoded, encoded
from lockkeeper.store.base import Receipt

if TYPE_CHECKING:
    from lockkeeper.broker.connections import Connection
    from lockkeeper.broker.context import Context


class UserIdStamping:
    """Writes the name that the connection gave into every message, whatever it says itself."""

    def __init__(self, context: "Context") -> None:
        self._context = context

    def intercept(
        self, connection: "Connection", message: Message, receipt: Receipt | None
    ) -> Message:
        """See `Interceptor.intercept`."""
        fields = decoded(message)
        fields.user_id = connection.user_name or None
        return encoded(fields, message.sequence)

    def passes(self, messages: Sequence[Message]) -> bool:
        """See `Interceptor.passes`: a name is written into each."""
        return False
