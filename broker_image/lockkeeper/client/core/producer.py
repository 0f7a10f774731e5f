"""Producers: they number messages, and keep to the window that flow control gives them."""

from collections import deque
from typing import NamedTuple, Protocol

from lockkeeper.client.core.delivery import SPLICED_VERSION_MIN
from lockkeeper.client.core.encoding import PLAIN_TAIL, Headers, MessageEncoder
from lockkeeper.client.core.options import ConnectionOptions
from lockkeeper.client.core.outbox import Outbox
from lockkeeper.client.core.requests import Request
from lockkeeper.client.core.transaction import Transaction
from lockkeeper.client.core.waiting import Moment, Procedure, Wait, WaitLine, earliest
from lockkeeper.client.errors import IllegalStateError, RequestTimedOutError
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import MessageId, ProducerId, TransactionId
from lockkeeper.message.openwire import (
    LAYOUTS,
    Codec,
    Message,
    ProducerInfo,
    Response,
    codec_for,
)

MESSAGE_OVERHEAD_BYTES = 1024
"""What ActiveMQ adds to a message's body and properties when it tells its size."""
_WIRE = codec_for(stack_traces=False)


class Draft(NamedTuple):
    """A message before it is numbered."""

    type_id: int
    destination: Destination
    persistent: bool
    priority: int
    expiration: int
    timestamp: int
    content: bytes | None
    properties: bytes | None
    headers: Headers | None = None
    tail: bytes = PLAIN_TAIL


class Sent(NamedTuple):
    """A message on its way; without a *request* nobody confirms it."""

    message_id: str
    request: Request | None
    moment: Moment


class ProducerOwner(Protocol):
    """The connection of a producer; see `ConnectionCore`."""

    outbox: Outbox
    options: ConnectionOptions

    def next_number(self) -> int:
        """Return the number of the next command."""

    def check_open(self) -> None:
        """Raise what ended the connection, if something did."""

    def enter(self, request: Request) -> None:
        """Send a request, now or when a broker is there."""

    def answer(self, request: Request, moment: Moment) -> Procedure[Response]:
        """Wait for the answer to a request."""

    def patience_ends(self, moment: Moment) -> float | None:
        """Return until when to wait for a broker; None: for ever."""

    @property
    def linked(self) -> WaitLine:
        """Line of those that wait for a broker."""


class ProducerCore:
    """One producer; `transaction` is that of its session, None when that is not transacted."""

    def __init__(
        self, connection: ProducerOwner, info: ProducerInfo, transaction: Transaction | None
    ) -> None:
        assert info.producer_id is not None
        self.identifier: ProducerId = info.producer_id
        self.window = info.window_size
        self.is_closed = False
        self.sequence = 0
        self._connection = connection
        self._transaction = transaction
        self._encoder = MessageEncoder(self.identifier)
        self._id_start = f"{self.identifier}:"
        self._unacked = 0
        self._taken = WaitLine()

    def message_id(self, sequence: int) -> str:
        """Return the JMSMessageID of a message of this producer."""
        return self._id_start + str(sequence)

    # Sending

    def send_now(self, draft: Draft) -> Request | None:
        """Send a message for which there is room; None when there is nothing to wait for."""
        connection, transaction = self._connection, self._transaction
        outbox = connection.outbox
        codec = outbox.codec or _WIRE
        if transaction is not None:
            identifier = transaction.begin()
            codec = outbox.codec or transaction.codec or _WIRE
            number = connection.next_number()
            transaction.add_message(self._frame(draft, codec, number, False, identifier), codec)
            self.sequence += 1
            return None
        wants_answer = self.wants_answer(draft.persistent)
        number = connection.next_number()
        frame = self._frame(draft, codec, number, wants_answer, None)
        self.sequence += 1
        if wants_answer:
            request = Request.of_message(number, LAYOUTS[draft.type_id].name, frame, codec)
            connection.enter(request)
            return request
        if self.window:
            self._unacked += _size_of(draft)
        outbox.put_loose(frame)
        return None

    def wants_answer(self, persistent: bool) -> bool:
        """Tell whether the broker is to confirm a message."""
        if self._transaction is not None:
            return False
        options = self._connection.options
        return options.always_sync_send or (persistent and not options.use_async_send)

    def _frame(
        self,
        draft: Draft,
        codec: Codec,
        number: int,
        wants_answer: bool,
        transaction: TransactionId | None,
    ) -> bytes:
        sequence = self.sequence + 1
        if codec.version >= SPLICED_VERSION_MIN:
            return self._encoder.encode(
                draft.type_id, number, wants_answer, draft.destination, transaction, sequence,
                draft[2:],
            )  # fmt: skip
        frame = self._frame(draft, _WIRE, number, wants_answer, transaction)
        body = codec.encode(_WIRE.decode(frame, 4)[0])
        return len(body).to_bytes(4, "big") + body

    @property
    def has_room(self) -> bool:
        """Tell whether a message may be sent without waiting."""
        outbox = self._connection.outbox
        if self._transaction is not None:
            return not outbox.is_full
        if outbox.codec is None or outbox.is_full:
            return False
        return not self.window or self._unacked < self.window

    def send(self, draft: Draft, moment: Moment) -> Procedure[str]:
        """Send a message, once there is room, and wait for its answer if it has one."""
        sent = yield from self.begin(draft, moment)
        return (yield from self.end_sending(sent))

    def begin(self, draft: Draft, moment: Moment) -> Procedure[Sent]:
        """Send a message, once there is room."""
        if not self.has_room:
            moment = yield from self._room(moment, self.wants_answer(draft.persistent))
        self._check_open()
        request = self.send_now(draft)
        return Sent(self.message_id(self.sequence), request, moment)

    def end_sending(self, sent: Sent) -> Procedure[str]:
        """Wait for the answer to a message if it has one; return its id."""
        if sent.request is not None:
            yield from self._connection.answer(sent.request, sent.moment)
        return sent.message_id

    def send_freely(self, draft: Draft) -> str:
        """Send a message that nobody confirms and for which there is room; return its id."""
        self._check_open()
        self.send_now(draft)
        return self.message_id(self.sequence)

    def send_in_window(
        self, draft: Draft, waiting: deque[Request], window: int, moment: Moment
    ) -> Procedure[None]:
        """Send a message; wait while more than *window* are on the way, which are *waiting*."""
        self._check_open()
        if not self.has_room:
            moment = yield from self._room(moment, self.wants_answer(draft.persistent))
        request = self.send_now(draft)
        if request is not None:
            waiting.append(request)
            if len(waiting) > window:
                yield from self._connection.answer(waiting.popleft(), moment)

    def confirm(self, waiting: deque[Request], moment: Moment) -> Procedure[None]:
        """Wait for the answers to all that are on the way."""
        for request in waiting:
            yield from self._connection.answer(request, moment)

    def send_message(self, message: Message, moment: Moment) -> Procedure[str]:
        """Send a message with all the fields it has, under an id of this producer."""
        self._check_open()
        if not self.has_room:
            moment = yield from self._room(moment, message.persistent)
        connection, transaction = self._connection, self._transaction
        codec = connection.outbox.codec or _WIRE
        message.producer_id = self.identifier
        self.sequence += 1
        message.message_id = MessageId(self.identifier, self.sequence)
        if transaction is not None:
            message.transaction_id = transaction.begin()
            codec = connection.outbox.codec or transaction.codec or _WIRE
        message.command_id = connection.next_number()
        message.response_required = self.wants_answer(message.persistent)
        body = codec.encode(message)
        frame = len(body).to_bytes(4, "big") + body
        message_id = self.message_id(self.sequence)
        if transaction is not None:
            transaction.add_message(frame, codec)
        elif message.response_required:
            request = Request.of_message(message.command_id, type(message).__name__, frame, codec)
            connection.enter(request)
            yield from connection.answer(request, moment)
        else:
            connection.outbox.put_loose(frame)
        return message_id

    def _room(self, moment: Moment, is_repeated: bool) -> Procedure[Moment]:
        """Wait until a message may be sent; what *is_repeated* needs no broker to begin with."""
        connection = self._connection
        outbox = connection.outbox
        timeout = connection.options.timeouts.send
        deadline = None if timeout is None else moment.now + timeout
        patience = connection.patience_ends(moment)
        while not self.has_room:
            connection.check_open()
            is_linked = outbox.codec is not None
            if is_repeated and not is_linked:
                break
            line = self._taken if is_linked and not outbox.is_full else outbox.drained
            line = line if is_linked or outbox.is_full else connection.linked
            until = deadline if is_linked else earliest(deadline, patience)
            if until is not None and moment.now >= until:
                raise RequestTimedOutError(
                    "nothing could be sent in time: the broker does not read"
                    if is_linked
                    else f"no broker for {connection.options.timeouts.no_broker or timeout:g} s"
                )
            moment = yield Wait(line, until)
        return moment

    def _check_open(self) -> None:
        if self.is_closed:
            raise IllegalStateError("the producer is closed")
        self._connection.check_open()

    # What the connection says

    def acked(self, size: int) -> None:
        """Note that the broker has taken messages of so many bytes (openwire.md section 7.9)."""
        self._unacked = max(0, self._unacked - size)
        self._taken.wake()

    def interrupt(self) -> None:
        """Note that the link is lost: nothing that was sent by it is acknowledged any more."""
        self._unacked = 0
        self._taken.wake()

    def end(self) -> None:
        """Send nothing more."""
        self.is_closed = True
        self._taken.wake()


def _size_of(draft: Draft) -> int:
    return MESSAGE_OVERHEAD_BYTES + len(draft.content or b"") + len(draft.properties or b"")
