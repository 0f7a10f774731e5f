"""Answers to one request, of which one at most waits for room."""

from collections.abc import Callable
from typing import TypeAlias

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import END_BYTES, Context
from lockkeeper.broker.outputs import Disconnect
from lockkeeper.broker.requests.turns import WAITS, Steps
from lockkeeper.message.destination import COMPOSITE_SEPARATOR
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt

Take: TypeAlias = Callable[[Connection, Message, Receipt | None], None]
"""Takes a message of a connection, unless it has to wait for room."""


class Answers:
    """The answers to one request, sent by a `connection` of their own; each one's receipt.

    Flow control tells by that connection whether one of them waits, and drops what is forgotten.
    """

    def __init__(self, context: Context, take: Take, go_on: Callable[[], None]) -> None:
        """*go_on* is called when what waited waits no more."""
        self._context = context
        self._take = take
        self._go_on = go_on
        self.connection = Connection([], "answers")
        self._is_waiting = False

    def send(self, message: Message) -> Steps:
        """Send an answer; yields WAITS until there is room for it. Raises BrokerError.

        Copies for the parts of a composite weigh something, too.
        """
        # Not in the broker's list of connections, this one is not told of routes that end.
        self.connection.last_destination = None
        self._take(self.connection, message, self)
        self._is_waiting = self.connection.stalled_bytes > 0
        while self._is_waiting:
            yield WAITS
        for output in self.connection.outbox:
            if isinstance(output, Disconnect):
                raise output.error
        yield message.destination.name.count(COMPOSITE_SEPARATOR) * END_BYTES

    def settle(self) -> None:
        """See `Receipt`: an answer has been taken, or refused."""
        if self._is_waiting:
            self._is_waiting = False
            # Not at once: flow control is among the sends that wait.
            self._context.call_soon(self._go_on)
