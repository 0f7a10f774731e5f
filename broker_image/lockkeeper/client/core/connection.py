"""A connection as state: commands out, answers and deliveries in, over one link after another.

When a link is made, it is told what the one before knew, as openwire.md section 7.8 says:
connection, temporary destinations, sessions with their producers and consumers, what is recorded
of transactions, and every command that has no answer yet, all with their old numbers. The
generation counts the links that were lost; what belongs to one link names it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from lockkeeper.client.blobs import SCHEMES
from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.core.consumer import ConsumerCore
from lockkeeper.client.core.delivery import Delivery
from lockkeeper.client.core.duplicates import Settled
from lockkeeper.client.core.events import (
    ConnectionState,
    Event,
    Interrupted,
    Reported,
    Resumed,
)
from lockkeeper.client.core.options import ConnectionOptions
from lockkeeper.client.core.outbox import Outbox
from lockkeeper.client.core.producer import ProducerCore
from lockkeeper.client.core.requests import Request
from lockkeeper.client.core.session import SessionCore
from lockkeeper.client.core.waiting import Moment, Procedure, Wait, WaitLine, earliest
from lockkeeper.client.errors import (
    BlobError,
    IllegalStateError,
    MessagingError,
    RequestTimedOutError,
    SecurityError,
    TransactionInDoubtError,
    refused,
)
from lockkeeper.message import openwire
from lockkeeper.message.destination import Destination, Kind
from lockkeeper.message.ids import ProducerId
from lockkeeper.message.openwire import (
    BaseCommand,
    Codec,
    ConnectionInfo,
    ConsumerId,
    Response,
    Structure,
)

_IN_DOUBT = "the connection was lost before the outcome was known"
_CLOSED = "the connection is closed"


class ConnectionCore:
    """The conversation with whichever broker is there."""

    def __init__(
        self,
        info: ConnectionInfo,
        client_id: str | None,
        options: ConnectionOptions,
        chance: Callable[[], float],
    ) -> None:
        """*info* introduces the connection; *client_id* is the one that the application chose."""
        assert info.connection_id is not None
        self.identifier = info.connection_id
        self.client_id = client_id
        self.options = options
        self.chance = chance
        self.generation = 0
        self.state = ConnectionState.CONNECTING
        self.address: str | None = None
        self.error: MessagingError | None = None
        self.why_unlinked = ""
        self.events: deque[Event] = deque()
        self.blob_transfer = options.blob_transfer
        self.other_addresses: tuple[str, ...] = ()
        self.outbox = Outbox()
        self.linked = WaitLine()
        self.settled = Settled(info.fault_tolerant and options.check_for_duplicates)
        self.consumers: dict[ConsumerId, ConsumerCore] = {}
        self.producers: dict[ProducerId, ProducerCore] = {}
        self.sessions: list[SessionCore] = []
        self._info = info
        self._temporary: dict[Destination, openwire.DestinationInfo] = {}
        self._pending: dict[int, Request] = {}
        self._last_number = 0
        self._session_count = self._transaction_count = self._temporary_count = 0
        self._was_linked = False

    # Sending

    def next_number(self) -> int:
        """Return the number of the next command."""
        self._last_number += 1
        return self._last_number

    def next_transaction(self) -> int:
        """Return a number that no other transaction of this connection has."""
        self._transaction_count += 1
        return self._transaction_count

    def check_open(self) -> None:
        """Raise what ended the connection, if something did."""
        if self.error is not None:
            raise self.error

    def post(self, command: BaseCommand) -> None:
        """Send a command that wants no answer, if a broker is there."""
        command.command_id = self.next_number()
        if self.outbox.codec is not None:
            self.outbox.put_command(command)

    def request(self, command: BaseCommand, *, is_repeatable: bool = True) -> Request:
        """Send a command that wants an answer, now or when a broker is there."""
        self.check_open()
        command.response_required = True
        command.command_id = self.next_number()
        request = Request.of_command(command, is_repeatable)
        self.enter(request)
        return request

    def enter(self, request: Request) -> None:
        """Send a request, now or when a broker is there. Raises ValueError if it cannot be."""
        codec = self.outbox.codec
        frame = request.frame_for(codec or openwire.codec_for(stack_traces=False))
        self._pending[request.number] = request
        if codec is not None:
            self.outbox.put_frame(frame)
            request.was_sent = True

    def answer(self, request: Request, moment: Moment) -> Procedure[Response]:
        """Wait for the answer to a request. Raises RefusedError or what ended the connection.

        After RequestTimedOutError nobody knows whether the command was carried out.
        """
        timeouts = self.options.timeouts
        timeout = timeouts.send if request.is_message else timeouts.request
        deadline = None if timeout is None else moment.now + timeout
        patience: float | None = None
        try:
            while not request.is_done:
                if self.outbox.codec is not None:
                    patience = None
                elif patience is None:
                    patience = self.patience_ends(moment)
                if deadline is not None and moment.now >= deadline:
                    raise RequestTimedOutError(f"no answer to {request.name} in time")
                if patience is not None and moment.now >= patience:
                    text = f"no broker for {timeouts.no_broker:g} s"
                    raise RequestTimedOutError(self.with_reason(text))
                moment = yield Wait(request.line, earliest(deadline, patience))
            return request.result()
        finally:
            self._pending.pop(request.number, None)

    def with_reason(self, text: str) -> str:
        """Return *text* with the reason why no broker is there, if none is."""
        return f"{text}: {self.why_unlinked}" if self.why_unlinked else text

    def patience_ends(self, moment: Moment) -> float | None:
        """Return until when to wait for a broker; None: for ever."""
        patience = self.options.timeouts.no_broker
        return None if patience is None else moment.now + patience

    # Making things

    def introduce(self) -> Request:
        """Return the request that opens the connection; to be called before the first link."""
        return self.request(self._info)

    def open_session(self, mode: Acknowledge) -> SessionCore:
        """Return a new session."""
        self.check_open()
        self._session_count += 1
        identifier = openwire.SessionId(self.identifier.value, self._session_count)
        info = openwire.SessionInfo(session_id=identifier)
        self.post(info)
        session = SessionCore(self, info, mode)
        self.sessions.append(session)
        return session

    def session_closed(self, session: SessionCore) -> None:
        """Forget a session."""
        self.sessions.remove(session)

    def open_temporary(self, kind: Kind, moment: Moment) -> Procedure[Destination]:
        """Return a new destination that lives as long as this connection."""
        self._temporary_count += 1
        destination = Destination(kind, f"{self.identifier}:{self._temporary_count}")
        info = openwire.DestinationInfo(
            connection_id=self.identifier,
            destination=destination,
            operation_type=openwire.DestinationOperation.ADD,
        )
        self._temporary[destination] = info
        request = self.request(info)
        try:
            yield from self.answer(request, moment)
        except BaseException:
            if request.error is None:
                # Nobody has waited for the answer, which may be that it is made.
                self.drop_temporary(destination)
            self._temporary.pop(destination, None)
            raise
        return destination

    def _removal(self, destination: Destination) -> openwire.DestinationInfo:
        return openwire.DestinationInfo(
            connection_id=self.identifier,
            destination=destination,
            operation_type=openwire.DestinationOperation.REMOVE,
        )

    def drop_temporary(self, destination: Destination) -> None:
        """Delete a temporary destination, if it is there, without waiting for the answer."""
        if self._temporary.pop(destination, None) is not None:
            self.post(self._removal(destination))

    def delete_temporary(self, destination: Destination, moment: Moment) -> Procedure[None]:
        """Delete a temporary destination. Raises a refusal, such as while it is consumed."""
        if destination not in self._temporary:
            raise IllegalStateError(f"{destination} is not one that this connection has made")
        yield from self.delete_destination(destination, moment)
        self._temporary.pop(destination, None)

    def delete_destination(self, destination: Destination, moment: Moment) -> Procedure[None]:
        """Delete a destination with its messages. Raises a refusal, such as while consumed."""
        yield from self.answer(self.request(self._removal(destination)), moment)

    def unsubscribe(self, subscription_name: str, moment: Moment) -> Procedure[None]:
        """Delete a durable subscription. Raises InvalidDestinationError when there is none."""
        info = openwire.RemoveSubscriptionInfo(
            connection_id=self.identifier,
            subscription_name=subscription_name,
            client_id=self.client_id,
        )
        yield from self.answer(self.request(info), moment)

    # Time

    def due(self) -> float | None:
        """Return when `tick` has something to do; None for never."""
        if not self.options.optimize_acknowledge:
            return None
        return earliest(*(consumer.due for consumer in self.consumers.values()))

    def tick(self, now: float) -> None:
        """Send what is due."""
        for consumer in self.consumers.values():
            consumer.tick(now)

    # Links

    def link_made(self, codec: Codec, address: str) -> None:
        """Tell a broker all that the one before knew, and let everyone go on."""
        loose = self.outbox.open(codec)
        self.address = address
        self.why_unlinked = ""
        for frame in self._introduction(codec):
            self.outbox.put_frame(frame)
        for frame in loose:
            self.outbox.put_loose(frame)
        if self._was_linked:
            self.events.append(Resumed(address))
        self._was_linked = True
        self.state = ConnectionState.CONNECTED
        self.linked.wake()
        self.outbox.drained.wake()
        for consumer in self.consumers.values():
            consumer.resume()

    def _introduction(self, codec: Codec) -> Iterator[bytes]:
        def framed(command: Structure) -> bytes:
            body = codec.encode(command)
            return len(body).to_bytes(4, "big") + body

        known = set()
        if self._was_linked:
            yield framed(openwire.ConnectionControl(fault_tolerant=True))
            for command in self._known():
                known.add(command.command_id)
                if isinstance(command, ConnectionInfo):
                    command = replace(command, failover_reconnect=True)
                yield framed(command)
            for session in self.sessions:
                if session.transaction is not None:
                    yield from session.transaction.recorded(codec)
        for request in [*self._pending.values()]:
            if request.number not in known:
                yield request.frame_for(codec)
            request.was_sent = True

    def _known(self) -> Iterator[BaseCommand]:
        """Yield what every broker must know, in the order of its introduction."""
        yield self._info
        yield from self._temporary.values()
        for session in self.sessions:
            yield from session.introduction()

    def link_lost(self, error: BaseException | None) -> None:
        """Note that the link is lost: what belongs to it is forgotten."""
        if self.outbox.codec is None:
            return
        self.outbox.close()
        self.address = None
        self.generation += 1
        self.state = ConnectionState.INTERRUPTED
        for request in [*self._pending.values()]:
            if request.was_sent and not request.is_repeatable:
                request.fail(TransactionInDoubtError(_IN_DOUBT))
            else:
                request.was_sent = False
                request.line.wake()
        self.settled.interrupt()
        for session in self.sessions:
            session.interrupt()
        self.events.append(Interrupted(error))

    # Another broker that is better

    def depart(self, is_patient: bool) -> bool:
        """Take leave of the broker for a better one, unless a transaction would be lost by it.

        Then no other session begins to consume in a transaction, until those are over. What has
        only sent goes on with the next broker. One that *is_patient* waits for answers, too: what
        has none yet, the next broker is asked as well. Tells whether leave was taken.
        """
        if any(is_patient or not request.is_repeatable for request in self._pending.values()):
            return False
        bound = [session for session in self.sessions if session.is_bound]
        if bound:
            for session in self.sessions:
                if session not in bound:
                    session.hold_back()
            return False
        for consumer in self.consumers.values():
            self.post(consumer.farewell())
        self.post(openwire.RemoveInfo(object_id=self.identifier))
        self.post(openwire.ShutdownInfo())
        return True

    def end(self, error: MessagingError | None) -> None:
        """Note that there will be no further link; no error when the application wanted that."""
        if self.error is not None:
            return
        self.error = error or IllegalStateError(_CLOSED)
        self.state = ConnectionState.CLOSED if error is None else ConnectionState.FAILED
        self.outbox.close()
        self.address = None
        for request in [*self._pending.values()]:
            request.fail(self.error)
        self._pending.clear()
        for consumer in [*self.consumers.values()]:
            consumer.end(error)
        for producer in [*self.producers.values()]:
            producer.interrupt()
        self.linked.wake()

    def close(self, moment: Moment) -> Procedure[None]:
        """Take leave of the broker, if one is there, and wait for its answer."""
        for session in [*self.sessions]:
            session.close()
        if self.outbox.codec is None or self.error is not None:
            return
        farewell = openwire.RemoveInfo(object_id=self.identifier)
        yield from self.answer(self.request(farewell, is_repeatable=False), moment)
        self.post(openwire.ShutdownInfo())

    # What the broker says

    def receive(self, commands: Iterable[Delivery | Structure]) -> None:
        """Take what has come.

        Raises ConnectionResetError when the link is of no use any more, SecurityError when none
        will ever be.
        """
        consumer_id: ConsumerId | None = None
        consumer: ConsumerCore | None = None
        for command in commands:
            if type(command) is Delivery:
                # Mostly many in a row are for the same consumer.
                if command.consumer_id is not consumer_id:
                    consumer_id = command.consumer_id
                    consumer = self.consumers.get(consumer_id)
                # A consumer just closed leaves it to the broker.
                if consumer is not None:
                    consumer.put_delivery(command)
            else:
                consumer_id = consumer = None
                self._receive(command)

    def _receive(self, command: Delivery | Structure) -> None:
        match command:
            case Response():
                self._settle(command)
            case openwire.KeepAliveInfo(response_required=True):
                self.keep_alive()
            case openwire.ConnectionError():
                self.events.append(Reported(refused(command.exception)))
            case openwire.ConsumerControl():
                found = self.consumers.get(command.consumer_id) if command.consumer_id else None
                if found is not None:
                    found.control(command.prefetch, command.close)
            case openwire.ProducerAck(producer_id=ProducerId() as identifier):
                producer = self.producers.get(identifier)
                if producer is not None:
                    producer.acked(command.size)
            case openwire.BrokerInfo():
                self._note_upload_url(command.broker_upload_url)
            case openwire.ConnectionControl():
                listed = f"{command.connected_brokers or ''},{command.reconnect_to or ''}"
                self.other_addresses = tuple(filter(None, map(str.strip, listed.split(","))))

    def _note_upload_url(self, url: str | None) -> None:
        """Note where this broker wants blobs to be put, which an option may overrule."""
        self.blob_transfer = self.options.blob_transfer
        if not url:
            return
        if url.partition(":")[0].lower() in SCHEMES:
            self.blob_transfer = replace(self.blob_transfer, broker_upload_url=url)
        else:
            # A file, above all: a broker is not to choose what is written on this machine.
            text = f"the broker's brokerUploadUrl {url!r} is not followed: only "
            text += f"{' and '.join(SCHEMES)} are"
            self.events.append(Reported(BlobError(text)))

    def keep_alive(self) -> None:
        """Give a sign of life."""
        self.outbox.put_command(openwire.KeepAliveInfo())

    def _settle(self, response: Response) -> None:
        request = self._pending.pop(response.correlation_id, None)
        if isinstance(response, openwire.ExceptionResponse):
            self._forget_refused(response, is_repeated=request is None)
        if request is not None:
            request.settle(response)

    def _forget_refused(self, response: openwire.ExceptionResponse, is_repeated: bool) -> None:
        number = response.correlation_id
        error = refused(response.exception)
        if number == self._info.command_id and is_repeated:
            if isinstance(error, SecurityError):
                raise error
            raise ConnectionResetError(f"the broker does not take the connection back: {error}")
        command = self._take_refused(number)
        if command is None or not is_repeated:
            return
        if isinstance(error, SecurityError):
            raise error
        identifier = getattr(command, "consumer_id", None)
        consumer = self.consumers.get(identifier) if identifier else None
        if consumer is not None:
            consumer.end(error)
        else:
            self.events.append(Reported(error))

    def _take_refused(self, number: int) -> BaseCommand | None:
        for destination, info in self._temporary.items():
            if info.command_id == number:
                del self._temporary[destination]
                return info
        for session in self.sessions:
            found = session.refused(number)
            if found is not None:
                return found
        return None
