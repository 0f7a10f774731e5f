"""Connections for asyncio: `connect` finds a broker, and keeps to it or to the next one."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from lockkeeper.client.aio.closing import Closing
from lockkeeper.client.aio.destinations import DestinationSource
from lockkeeper.client.aio.driving import drive
from lockkeeper.client.aio.requesting import Requestor
from lockkeeper.client.aio.session import Session
from lockkeeper.client.aio.within import begin_outside, is_within
from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.core.events import (
    ConnectionState,
    Event,
    Interrupted,
    Reported,
    Resumed,
    Silence,
)
from lockkeeper.client.core.redelivery import RedeliveryPolicy, RedeliveryPolicyMap
from lockkeeper.client.core.waiting import Procedure
from lockkeeper.client.drafting import PRIORITY_DEFAULT
from lockkeeper.client.errors import MessagingError
from lockkeeper.client.links.clock import moment
from lockkeeper.client.links.runner import Runner
from lockkeeper.client.messages import DestinationName, destination_of
from lockkeeper.client.opening import DEFAULT_URL, Opening
from lockkeeper.client.tls import TlsOptions
from lockkeeper.message.destination import Destination, Kind

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


class Connection(Closing):
    """A connection to a broker; any task of its event loop may use it.

    `on_error`, if set, is called with errors that the broker reports without being asked; without
    it they are logged. `on_interrupted` and `on_resumed` are called when a broker is lost and when
    the next one is there. All are called in the event loop, so they must not wait.
    """

    def __init__(self, opening: Opening) -> None:
        self.core = opening.core
        self.redelivery = opening.redelivery
        self.runner = Runner(opening.core, opening.url, self._tell_application)
        self.on_error: Callable[[MessagingError], None] | None = None
        self.on_interrupted: Callable[[], None] | None = None
        self.on_resumed: Callable[[], None] | None = None
        self._sessions: list[Session] = []
        self._is_closed = False
        self._ended = asyncio.Event()

    async def open(self, timeout: float | None = None) -> None:
        """Find a broker and introduce the connection; `connect` does that."""
        with self.runner.lock:
            request = self.core.introduce()
        self.runner.start()
        try:
            await self.drive(self.core.answer(request, moment()), timeout)
        except BaseException:
            await self.runner.stop()
            raise

    async def drive(self, procedure: Procedure[T], timeout: float | None = None) -> T:
        """Carry a procedure of the core out."""
        return await drive(self.runner, procedure, timeout)

    # What there is

    @property
    def address(self) -> str | None:
        """The URL of the broker in use, None while there is none."""
        return self.core.address

    @property
    def state(self) -> ConnectionState:
        """State: a broker is there, looked for, or not any more."""
        return self.core.state

    @property
    def client_id(self) -> str | None:
        """The client id that was chosen, None without one."""
        return self.core.client_id

    @property
    def silence(self) -> Silence | None:
        """Seconds since the broker was heard, and since it was told something; None without one.

        Signs of life count, too: with a broker that lives neither grows beyond the wire format's
        `maxInactivityDuration`.
        """
        link = self.runner.link
        if link is None or self.core.state is not ConnectionState.CONNECTED:
            return None
        now = moment().now
        return Silence(now - link.wire.last_received, now - link.wire.last_sent)

    @property
    def silence_max(self) -> float | None:
        """Seconds of silence after which the broker is lost.

        None without a broker, and for one that gives no signs of life: `maxInactivityDuration` is
        0 there or here.
        """
        link = self.runner.link
        return None if link is None else link.wire.silence_max

    # Making things

    def session(
        self, *, transacted: bool = False, acknowledge: Acknowledge = Acknowledge.AUTO
    ) -> Session:
        """Return a session; in a transacted one the acknowledge mode plays no role."""
        mode = Acknowledge.TRANSACTED if transacted else acknowledge
        with self.runner.lock:
            core = self.core.open_session(mode)
            self.runner.flush(False)
        session = Session(self.runner, self.core, core, self.redelivery, self._sessions.remove)
        self._sessions.append(session)
        return session

    async def requestor(
        self,
        destination: DestinationName,
        *,
        persistent: bool = True,
        priority: int = PRIORITY_DEFAULT,
        time_to_live: float | None = None,
        timeout: float | None = None,
    ) -> Requestor:
        """Return what sends requests to *destination* and returns their answers.

        It has a session and a temporary queue of its own, until it is closed.
        """
        answers = await self.temporary_queue(timeout=timeout)
        session = self.session()
        try:
            consumer = await session.consumer(answers, timeout=timeout)
            producer = await session.producer(
                destination,
                persistent=persistent,
                priority=priority,
                time_to_live=time_to_live,
                timeout=timeout,
            )
        except BaseException:
            session.close_at_once()
            self._drop_temporary(answers)
            raise
        return Requestor(session, producer, consumer, answers, self._drop_temporary)

    async def destination_source(self, *, timeout: float | None = None) -> DestinationSource:
        """Return what learns, by advisories, which destinations the broker has."""
        source = DestinationSource(self.session())
        try:
            await source.start(timeout)
        except BaseException:
            await source.close()
            raise
        return source

    def _drop_temporary(self, destination: Destination) -> None:
        with self.runner.lock:
            self.core.drop_temporary(destination)
            self.runner.flush(False)

    async def temporary_queue(self, *, timeout: float | None = None) -> Destination:
        """Return a new queue that lives as long as this connection, which alone consumes it."""
        return await self.drive(self.core.open_temporary(Kind.TEMP_QUEUE, moment()), timeout)

    async def temporary_topic(self, *, timeout: float | None = None) -> Destination:
        """Return a new topic that lives as long as this connection, which alone consumes it."""
        return await self.drive(self.core.open_temporary(Kind.TEMP_TOPIC, moment()), timeout)

    async def delete_temporary(
        self, destination: Destination, *, timeout: float | None = None
    ) -> None:
        """Delete a temporary destination that nobody consumes any more."""
        await self.drive(self.core.delete_temporary(destination, moment()), timeout)

    async def delete_destination(
        self, destination: DestinationName, *, timeout: float | None = None
    ) -> None:
        """Delete a queue or topic with its messages. Raises a refusal while it is consumed."""
        deleting = self.core.delete_destination(destination_of(destination), moment())
        await self.drive(deleting, timeout)

    # The end

    async def close(self, timeout: float | None = None) -> None:
        """Close everything; a broker that does not answer is waited for *timeout* seconds at most.

        The default is 15 s (`jms.closeTimeout` in the URL says after how many ms). Calls of other
        tasks that wait then end with an error.

        In a listener it returns at once: listeners get no further message, and the connection is
        closed once those at work have returned.
        """
        if is_within(self.runner):
            self.close_soon(timeout)
            return
        seconds = self.core.options.timeouts.close if timeout is None else timeout
        is_first, self._is_closed = not self._is_closed, True
        if is_first:
            await self._close(seconds)
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._ended.wait()

    def close_soon(self, timeout: float | None = None) -> None:
        """Let listeners take no further message, and close once those at work have returned."""
        self.end_listeners()
        begin_outside(self.close(timeout))

    def end_listeners(self) -> None:
        """Let listeners take no further message; for any thread."""
        for session in [*self._sessions]:
            session.end_listeners()

    async def _close(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                for session in [*self._sessions]:
                    await session.stop_listening()
                await self.drive(self.core.close(moment()))
        except (MessagingError, TimeoutError) as error:
            _LOG.warning("closing a connection: %s", error or "the broker does not answer")
        finally:
            try:
                await self.runner.stop()
            finally:
                self._ended.set()

    def _tell_application(self, event: Event) -> None:
        match event:
            case Reported(error=error):
                if self.on_error is not None:
                    self.on_error(error)
                else:
                    _LOG.warning("the broker at %s reports: %s", self.address, error)
            case Interrupted() if self.on_interrupted is not None:
                self.on_interrupted()
            case Resumed() if self.on_resumed is not None:
                self.on_resumed()


async def connect(
    url: str = DEFAULT_URL,
    client_id: str | None = None,
    user: str | None = None,
    password: str | None = None,
    redelivery: RedeliveryPolicy | RedeliveryPolicyMap | None = None,
    tls: TlsOptions | None = None,
    *,
    timeout: float | None = None,
) -> Connection:
    """Return an open connection to the broker, or one of the brokers, that *url* names.

    Waits until one is there, as often as the URL's options allow, *timeout* seconds at most. *tls*
    is for addresses that begin with `ssl://`; what a URL says itself wins. Raises BrokerUrlError,
    ConnectionFailedError, RequestTimedOutError, or the broker's refusal: SecurityError for a wrong
    password.
    """
    connection = Connection(Opening(url, client_id, user, password, redelivery, tls))
    await connection.open(timeout)
    return connection
