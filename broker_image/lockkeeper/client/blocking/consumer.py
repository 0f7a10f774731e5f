"""Consumers of the blocking face."""

from collections.abc import Iterator

from lockkeeper.client import aio
from lockkeeper.client.aio.listening import Listener
from lockkeeper.client.blocking.closing import Closing
from lockkeeper.client.blocking.driving import drive
from lockkeeper.client.blocking.loop import Caller
from lockkeeper.client.core.session import SessionCore
from lockkeeper.client.links.clock import moment
from lockkeeper.client.links.runner import Runner
from lockkeeper.client.messages import ReceivedMessage


class Consumer(Closing):
    """Receives messages from one destination; made by `Session.consumer`.

    `for message in consumer` goes on until the consumer is closed.
    """

    def __init__(
        self, thread: Caller, runner: Runner, consumer: aio.Consumer, session: SessionCore
    ) -> None:
        self.core = consumer.core
        self._thread = thread
        self._runner = runner
        self._aio = consumer
        self._session = session
        self._settling = consumer.settling

    def receive(self, timeout: float | None = None) -> ReceivedMessage | None:
        """Return the next message; None when none came within *timeout* seconds.

        Without a timeout it waits for ever, with 0 not at all. None also when the consumer or
        the connection is closed meanwhile. Raises ConnectionFailedError when the connection is
        lost for good.
        """
        delivery = self._aio.take_arrived()
        if delivery is None:
            procedure = self._session.receive(self.core, timeout, moment())
            delivery = drive(self._runner, procedure)
        return None if delivery is None else ReceivedMessage(delivery, self._settling)

    def __iter__(self) -> Iterator[ReceivedMessage]:
        while not self.core.is_closed:
            message = self.receive()
            if message is None:
                break
            yield message

    def listen(self, listener: Listener) -> None:
        """Call *listener* with each message from now on, until the consumer is closed.

        It is called in a thread of the session; the listeners of a session take turns. In AUTO
        mode a message is acknowledged when the listener returns, and comes again when it raises,
        as the redelivery policy says. Raises IllegalStateError while somebody receives in the
        session. A coroutine function is called in the connection's event loop.
        """
        self._thread.call(self._aio.listen(listener))

    def stop_listening(self) -> None:
        """End the listener after the message that it has in hand.

        A listener of the connection does not wait for that.
        """
        if self._thread.is_own:
            self._aio.end_listener()
        else:
            self._thread.call(self._aio.stop_listening())

    def close(self) -> None:
        """Stop receiving; what was not acknowledged goes to other consumers.

        In a transacted session the broker learns of it when the transaction ends. In a listener of
        the connection it returns at once: a listener that is closed gets no further message, and
        its consumer is closed once it has returned.
        """
        if not self._aio.is_listening:
            self._aio.close_at_once()
        elif self._thread.is_own:
            self._aio.close_soon()
        else:
            self._thread.call(self._aio.close())
