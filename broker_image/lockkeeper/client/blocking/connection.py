"""Connections: `connect` finds a broker, and keeps to it or to the next one."""

from collections.abc import Callable
from contextlib import suppress

from lockkeeper.client import aio
from lockkeeper.client.aio.within import is_within
from lockkeeper.client.blocking.closing import Closing
from lockkeeper.client.blocking.destinations import DestinationSource
from lockkeeper.client.blocking.driving import drive
from lockkeeper.client.blocking.loop import LoopThread
from lockkeeper.client.blocking.requesting import Requestor
from lockkeeper.client.blocking.session import Session
from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.core.events import ConnectionState, Silence
from lockkeeper.client.core.redelivery import RedeliveryPolicy, RedeliveryPolicyMap
from lockkeeper.client.drafting import PRIORITY_DEFAULT
from lockkeeper.client.errors import IllegalStateError, MessagingError
from lockkeeper.client.links.clock import moment
from lockkeeper.client.messages import DestinationName, destination_of
from lockkeeper.client.opening import DEFAULT_URL, Opening
from lockkeeper.client.tls import TlsOptions
from lockkeeper.message.destination import Destination, Kind


class Connection(Closing):
    """A connection to a broker; any thread may use it, each with a session of its own.

    `on_error`, if set, is called with errors that the broker reports without being asked; without
    it they are logged. `on_interrupted` and `on_resumed` are called when a broker is lost and when
    the next one is there. All are called by the connection's own thread, so they must not wait.
    """

    def __init__(self, opening: Opening, timeout: float | None = None) -> None:
        self._thread = LoopThread()
        try:
            self._aio = self._thread.call(_opened(opening, timeout))
        except BaseException:
            self._thread.stop()
            raise
        self._runner = self._aio.runner
        self._core = self._aio.core

    # What there is

    @property
    def on_error(self) -> Callable[[MessagingError], None] | None:
        """Function that is called with errors that the broker reports without being asked."""
        return self._aio.on_error

    @on_error.setter
    def on_error(self, call: Callable[[MessagingError], None] | None) -> None:
        self._aio.on_error = call

    @property
    def on_interrupted(self) -> Callable[[], None] | None:
        """Function that is called when a broker is lost."""
        return self._aio.on_interrupted

    @on_interrupted.setter
    def on_interrupted(self, call: Callable[[], None] | None) -> None:
        self._aio.on_interrupted = call

    @property
    def on_resumed(self) -> Callable[[], None] | None:
        """Function that is called when a broker is there again."""
        return self._aio.on_resumed

    @on_resumed.setter
    def on_resumed(self, call: Callable[[], None] | None) -> None:
        self._aio.on_resumed = call

    @property
    def address(self) -> str | None:
        """The URL of the broker in use, None while there is none."""
        return self._core.address

    @property
    def state(self) -> ConnectionState:
        """State: a broker is there, looked for, or not any more."""
        return self._core.state

    @property
    def client_id(self) -> str | None:
        """The client id that was chosen, None without one."""
        return self._core.client_id

    @property
    def silence(self) -> Silence | None:
        """Seconds since the broker was heard, and since it was told something; None without one.

        Signs of life count, too: with a broker that lives neither grows beyond the wire format's
        `maxInactivityDuration`.
        """
        return self._aio.silence

    @property
    def silence_max(self) -> float | None:
        """Seconds of silence after which the broker is lost.

        None without a broker, and for one that gives no signs of life: `maxInactivityDuration` is
        0 there or here.
        """
        return self._aio.silence_max

    # Making things

    def session(
        self, *, transacted: bool = False, acknowledge: Acknowledge = Acknowledge.AUTO
    ) -> Session:
        """Return a session; in a transacted one the acknowledge mode plays no role."""
        made = self._aio.session(transacted=transacted, acknowledge=acknowledge)
        return Session(self._thread, self._runner, made)

    def requestor(
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
        made = self._aio.requestor(
            destination,
            persistent=persistent,
            priority=priority,
            time_to_live=time_to_live,
            timeout=timeout,
        )
        return Requestor(self._thread, self._thread.call(made))

    def destination_source(self, *, timeout: float | None = None) -> DestinationSource:
        """Return what learns, by advisories, which destinations the broker has."""
        made = self._thread.call(self._aio.destination_source(timeout=timeout))
        return DestinationSource(self._thread, made)

    def temporary_queue(self, *, timeout: float | None = None) -> Destination:
        """Return a new queue that lives as long as this connection, which alone consumes it."""
        return drive(self._runner, self._core.open_temporary(Kind.TEMP_QUEUE, moment()), timeout)

    def temporary_topic(self, *, timeout: float | None = None) -> Destination:
        """Return a new topic that lives as long as this connection, which alone consumes it."""
        return drive(self._runner, self._core.open_temporary(Kind.TEMP_TOPIC, moment()), timeout)

    def delete_temporary(self, destination: Destination, *, timeout: float | None = None) -> None:
        """Delete a temporary destination that nobody consumes any more."""
        drive(self._runner, self._core.delete_temporary(destination, moment()), timeout)

    def delete_destination(
        self, destination: DestinationName, *, timeout: float | None = None
    ) -> None:
        """Delete a queue or topic with its messages. Raises a refusal while it is consumed."""
        deleting = self._core.delete_destination(destination_of(destination), moment())
        drive(self._runner, deleting, timeout)

    # The end

    def close(self, timeout: float | None = None) -> None:
        """Close everything; a broker that does not answer is waited for *timeout* seconds at most.

        The default is 15 s (`jms.closeTimeout` in the URL says after how many ms). Calls of other
        threads that wait then, such as a send that flow control holds up, end with an error.

        In a listener, and in what `on_error` and its kin call, it returns at once: listeners get
        no further message, and the connection is closed once those at work have returned.
        """
        if self._thread.is_own or is_within(self._runner):
            self._aio.end_listeners()
            self._thread.begin(self._close_soon(timeout))
            return
        # Whoever comes last finds that the thread has ended.
        with suppress(IllegalStateError):
            self._thread.call(self._aio.close(timeout))
        self._thread.stop()

    async def _close_soon(self, timeout: float | None) -> None:
        try:
            await self._aio.close(timeout)
        finally:
            self._thread.stop()


async def _opened(opening: Opening, timeout: float | None) -> aio.Connection:
    connection = aio.Connection(opening)
    await connection.open(timeout)
    return connection


def connect(
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

    Blocks until one is there, as often as the URL's options allow, *timeout* seconds at most. *tls*
    is for addresses that begin with `ssl://`; what a URL says itself wins. Raises BrokerUrlError,
    ConnectionFailedError, RequestTimedOutError, or the broker's refusal: SecurityError for a wrong
    password.
    """
    return Connection(Opening(url, client_id, user, password, redelivery, tls), timeout)
