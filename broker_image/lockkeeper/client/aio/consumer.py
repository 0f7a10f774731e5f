"""Consumers for asyncio."""

from collections.abc import AsyncIterator
from typing import Protocol

from lockkeeper.client.aio.closing import Closing
from lockkeeper.client.aio.driving import drive
from lockkeeper.client.aio.listening import Listener, Listening
from lockkeeper.client.aio.within import begin_outside, is_within
from lockkeeper.client.core.consumer import ConsumerCore
from lockkeeper.client.core.delivery import Delivery
from lockkeeper.client.core.session import SessionCore
from lockkeeper.client.links.clock import moment
from lockkeeper.client.links.runner import Runner
from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.client.settling import Settling


class ConsumerOwner(Protocol):
    """The session of a consumer; see `Session`."""

    def listen(self, consumer: "Consumer", listener: Listener) -> Listening:
        """Begin to call a listener."""

    def consumer_closed(self, consumer: "Consumer") -> None:
        """Forget a consumer."""


class Consumer(Closing):
    """Receives messages from one destination; made by `Session.consumer`.

    `async for message in consumer` goes on until the consumer is closed.
    """

    def __init__(
        self, runner: Runner, core: ConsumerCore, session_core: SessionCore, session: ConsumerOwner
    ) -> None:
        self.core = core
        self.settling = Settling(runner, session_core, core)
        self._runner = runner
        self._session_core = session_core
        self._session = session
        self._listening: Listening | None = None

    async def receive(self, timeout: float | None = None) -> ReceivedMessage | None:
        """Return the next message; None when none came within *timeout* seconds.

        Without a timeout it waits for ever, with 0 not at all. None also when the consumer or
        the connection is closed meanwhile. Raises ConnectionFailedError when the connection is
        lost for good. A call that is cancelled takes nothing.
        """
        delivery = self.take_arrived()
        if delivery is None:
            procedure = self._session_core.receive(self.core, timeout, moment())
            delivery = await drive(self._runner, procedure)
        return None if delivery is None else ReceivedMessage(delivery, self.settling)

    def take_arrived(self) -> Delivery | None:
        """Return a message that has arrived already; for any thread."""
        core, runner = self.core, self._runner
        with runner.lock:
            if core.is_closed or self._session_core.listening:
                return None
            delivery = core.take_arrived(moment())
            runner.flush(False)
        return delivery

    def give_back(self, message: ReceivedMessage) -> None:
        """Be as if a message of this consumer had not been received; it comes next.

        Nothing to do when it is settled, as every message is in AUTO mode.
        """
        with self._runner.lock:
            self.core.put_back(message.delivery)

    def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        return self._messages()

    async def _messages(self) -> AsyncIterator[ReceivedMessage]:
        while not self.core.is_closed:
            message = await self.receive()
            if message is None:
                break
            yield message

    async def listen(self, listener: Listener) -> None:
        """Call *listener* with each message from now on, until the consumer is closed.

        A function is called in a thread of the session, a coroutine function in the event loop;
        the listeners of a session take turns. In AUTO mode a message is acknowledged when the
        listener returns, and comes again when it raises, as the redelivery policy says. Raises
        IllegalStateError while somebody receives in the session.
        """
        self._listening = self._session.listen(self, listener)

    async def stop_listening(self) -> None:
        """End the listener after the message that it has in hand.

        A listener of the connection does not wait for that.
        """
        if self._listening is not None:
            await self._listening.stop()

    async def close(self) -> None:
        """Stop receiving; what was not acknowledged goes to other consumers.

        In a transacted session the broker learns of it when the transaction ends. In a listener of
        the connection it returns at once: a listener that is closed gets no further message, and
        its consumer is closed once it has returned.
        """
        if self.is_listening and is_within(self._runner):
            self.close_soon()
            return
        await self.stop_listening()
        self.close_at_once()

    def close_soon(self) -> None:
        """Let the listener take no further message, and close once it has returned."""
        self.end_listener()
        begin_outside(self.close())

    def end_listener(self) -> None:
        """Let the listener take no further message; for any thread."""
        if self._listening is not None:
            self._listening.end()

    @property
    def is_listening(self) -> bool:
        """Tell whether a listener is at work."""
        return self._listening is not None and not self._listening.is_over

    def close_at_once(self) -> None:
        """Close a consumer without a listener; for any thread."""
        with self._runner.lock:
            self._session_core.close_consumer(self.core)
            self._runner.flush(False)
        self._session.consumer_closed(self)
