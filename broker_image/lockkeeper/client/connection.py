"""Connections: `connect` finds a broker, and keeps to it or to the next one."""

import itertools
import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable

from lockkeeper.client.acknowledge import Acknowledge
from lockkeeper.client.consumer import Consumer
from lockkeeper.client.errors import IllegalStateError, MessagingError
from lockkeeper.client.redelivery import RedeliveryPolicy
from lockkeeper.client.session import Session
from lockkeeper.client.tls import TlsOptions
from lockkeeper.client.transport import Transport
from lockkeeper.client.url import parse_url
from lockkeeper.message.destination import Destination, Kind
from lockkeeper.message.openwire import (
    BaseCommand,
    ConnectionId,
    ConnectionInfo,
    ConsumerControl,
    ConsumerId,
    DestinationInfo,
    DestinationOperation,
    MessageDispatch,
    RemoveInfo,
    SessionId,
    SessionInfo,
)

DEFAULT_URL = "failover:(tcp://127.0.0.1:61616)"
_LOG = logging.getLogger(__name__)
_NUMBERS = itertools.count(1)
_PROCESS = f"{secrets.randbelow(90_000) + 10_000}-{int(time.time() * 1000)}"


class Connection:
    """A connection to a broker; any thread may use it, each with a session of its own.

    `on_error`, if set, is called with errors that the broker reports without being asked; by
    the reading thread, so it must not wait. Without it they are logged.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        client_id: str | None = None,
        user: str | None = None,
        password: str | None = None,
        redelivery: RedeliveryPolicy | None = None,
        tls: TlsOptions | None = None,
    ) -> None:
        where = parse_url(url, tls)
        number = next(_NUMBERS)
        self.identifier = ConnectionId(f"ID:{socket.gethostname()}-{_PROCESS}-{number}:1")
        self.client_id = client_id
        self.redelivery = redelivery or RedeliveryPolicy()
        self.on_error: Callable[[MessagingError], None] | None = None
        self.consumers: dict[ConsumerId, Consumer] = {}
        self._sessions: list[Session] = []
        self._counters = threading.Lock()
        self._session_count = self._transaction_count = self._temporary_count = 0
        self._is_closed = False
        self._transport = Transport(where, self)
        info = ConnectionInfo(
            connection_id=self.identifier,
            client_id=client_id or f"ID:{socket.gethostname()}-{_PROCESS}-{number}:0",
            user_name=user if user is not None else where.user,
            password=password if password is not None else where.password,
            manageable=True,
            client_master=True,
            fault_tolerant=self._transport.is_fault_tolerant,
        )
        self._transport.start()
        try:
            self._transport.request(info, key=self.identifier).result()
        except BaseException:
            self._transport.stop()
            raise

    @property
    def address(self) -> str | None:
        """The URL of the broker in use, None while there is none."""
        return self._transport.address

    def session(
        self, *, transacted: bool = False, acknowledge: Acknowledge = Acknowledge.AUTO
    ) -> Session:
        """Return a session; in a transacted one the acknowledge mode plays no role."""
        if self._is_closed:
            raise IllegalStateError("the connection is closed")
        mode = Acknowledge.TRANSACTED if transacted else acknowledge
        with self._counters:
            self._session_count += 1
            identifier = SessionId(self.identifier.value, self._session_count)
        self._transport.oneway(SessionInfo(session_id=identifier), key=identifier)
        session = Session(self, self._transport, identifier, mode)
        self._sessions.append(session)
        return session

    def temporary_queue(self) -> Destination:
        """Return a new queue that lives as long as this connection, which alone consumes it."""
        return self._temporary(Kind.TEMP_QUEUE)

    def temporary_topic(self) -> Destination:
        """Return a new topic that lives as long as this connection, which alone consumes it."""
        return self._temporary(Kind.TEMP_TOPIC)

    def _temporary(self, kind: Kind) -> Destination:
        with self._counters:
            self._temporary_count += 1
            destination = Destination(kind, f"{self.identifier}:{self._temporary_count}")
        info = DestinationInfo(
            connection_id=self.identifier,
            destination=destination,
            operation_type=DestinationOperation.ADD,
        )
        self._transport.request(info, key=destination).result()
        return destination

    def next_transaction(self) -> int:
        """Return a number that no other transaction of this connection has."""
        with self._counters:
            self._transaction_count += 1
            return self._transaction_count

    def session_closed(self, session: Session) -> None:
        """Forget a session."""
        self._sessions.remove(session)

    def close(self) -> None:
        """Close everything; a broker that does not answer is waited for 15 s at most.

        Calls of other threads that wait then, such as a send that flow control holds up, end
        with an error (`jms.closeTimeout` says after how many ms).
        """
        if self._is_closed:
            return
        self._is_closed = True
        with self._transport.ending():
            for session in [*self._sessions]:
                try:
                    session.close()
                except MessagingError as error:
                    _LOG.warning("closing a session: %s", error)
            self._transport.close(RemoveInfo(object_id=self.identifier))

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What the transport tells

    def dispatched(self, dispatch: MessageDispatch) -> None:
        """Hand a message to its consumer; a consumer just closed leaves it to the broker."""
        assert isinstance(dispatch.consumer_id, ConsumerId)
        consumer = self.consumers.get(dispatch.consumer_id)
        if consumer is not None:
            consumer.put_dispatch(dispatch)

    def controlled(self, control: ConsumerControl) -> None:
        """Change a consumer as the broker says."""
        consumer = self.consumers.get(control.consumer_id) if control.consumer_id else None
        if consumer is not None:
            consumer.control(control.prefetch, control.close)

    def reported(self, error: MessagingError) -> None:
        """Pass on what the broker reports without being asked."""
        if self.on_error is not None:
            self.on_error(error)
        else:
            _LOG.warning("the broker at %s reports: %s", self.address, error)

    def interrupted(self, generation: int) -> None:
        """Tell consumers that the link is lost."""
        for consumer in [*self.consumers.values()]:
            consumer.interrupt(generation)

    def refused(self, command: BaseCommand, error: MessagingError) -> None:
        """End the consumer that a new broker does not take."""
        identifier = getattr(command, "consumer_id", None)
        consumer = self.consumers.get(identifier) if identifier else None
        if consumer is not None:
            consumer.end(error)
        else:
            self.reported(error)

    def ended(self, error: MessagingError | None) -> None:
        """End all consumers."""
        for consumer in [*self.consumers.values()]:
            consumer.end(error)


def connect(
    url: str = DEFAULT_URL,
    client_id: str | None = None,
    user: str | None = None,
    password: str | None = None,
    redelivery: RedeliveryPolicy | None = None,
    tls: TlsOptions | None = None,
) -> Connection:
    """Return an open connection to the broker, or one of the brokers, that *url* names.

    Blocks until one is there, as often as the URL's options allow. *tls* is for addresses that
    begin with `ssl://`; what a URL says itself wins. Raises BrokerUrlError, ConnectionFailedError,
    or the broker's refusal: SecurityError for a wrong password.
    """
    return Connection(url, client_id, user, password, redelivery, tls)
