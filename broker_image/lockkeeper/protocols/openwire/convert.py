"""Outputs of the core as OpenWire: commands, Java's exceptions, and dispatch by splicing."""

from collections.abc import Sequence
from typing import Final, assert_never, cast

from lockkeeper.broker import errors
from lockkeeper.broker.outputs import (
    ConsumerClosed,
    Delivery,
    Disconnect,
    EndOfMessages,
    Failure,
    InDoubt,
    Introduction,
    Notice,
    Output,
    Prepared,
    ProducerCredit,
    Reply,
    WindowChanged,
)
from lockkeeper.broker.shared_references import SharedReferences
from lockkeeper.message.destination import Destination
from lockkeeper.message.layout import BLOB_MESSAGE, BROKER_OUT_TIME_AT
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import (
    Codec,
    ConnectionControl,
    ConsumerControl,
    ConsumerId,
    DataArrayResponse,
    ExceptionResponse,
    IntegerResponse,
    MessageDispatch,
    ProducerAck,
    Response,
    Structure,
    Throwable,
    decode,
    encode,
)
from lockkeeper.message.openwire import ConnectionError as ConnectionErrorCommand
from lockkeeper.message.openwire import Message as MessageFields
from lockkeeper.message.stamps import leaving
from lockkeeper.protocols.openwire.dispatched_keys import DispatchedKeys
from lockkeeper.protocols.openwire.frames import Piece, framed
from lockkeeper.store.base import Reference

XA_OK, XA_RDONLY = 0, 3
_NO_REDELIVERIES = bytes(4)
# A message that is not the first of its group, and was never delivered before.
_MOSTLY: Final = b"\x00" + _NO_REDELIVERIES
# Messages longer than this are sent as views, not copied for every consumer.
_BULKY_BYTES: Final = 1 << 14
# Response: type 30, command id 0, no response wanted; the correlation id follows.
_RESPONSE: Final = b"\x00\x00\x00\x0a\x1e\x00\x00\x00\x00\x00"

_JAVA_CLASSES: dict[type[errors.BrokerError], str] = {
    errors.AccessDeniedError: "java.lang.SecurityException",
    errors.InvalidClientIdError: "javax.jms.InvalidClientIDException",
    errors.CircularForwardingError: "javax.jms.InvalidDestinationException",
    errors.InvalidDestinationError: "javax.jms.InvalidDestinationException",
    errors.UnanswerableError: "javax.jms.InvalidDestinationException",
    errors.DestinationGoneError: (
        "org.apache.activemq.broker.region.DestinationDoesNotExistException"
    ),
    errors.InvalidSelectorError: "javax.jms.InvalidSelectorException",
    errors.ResourceAllocationError: "javax.jms.ResourceAllocationException",
    errors.TooLargeError: "javax.jms.ResourceAllocationException",
    errors.TransactionRolledBackError: "javax.jms.TransactionRolledBackException",
    errors.TransactionError: "javax.transaction.xa.XAException",
}


class DispatchHeader:
    """The bytes before the message in every dispatch to one consumer; lives in its `tag`.

    `frame` holds for messages of `destination` with a body of `length` bytes. `keys` are those of
    what it holds, once it has named a message by its id alone.
    """

    __slots__ = ("_prefix", "consumer_id", "destination", "frame", "keys", "length")

    def __init__(self, consumer_id: ConsumerId) -> None:
        self.consumer_id = consumer_id
        self.keys: DispatchedKeys | None = None
        self.destination: Destination | None = None
        self.length = 0
        self.frame = b""
        self._prefix = b""

    def aim(self, destination: Destination, length: int) -> None:
        """Make `frame` right for messages of *destination* whose body has *length* bytes."""
        if destination is not self.destination:
            self.destination = destination
            dispatch = MessageDispatch(consumer_id=self.consumer_id, destination=destination)
            # An absent message is one byte 0 and the counter four: the message goes between.
            self._prefix = encode(dispatch)[:-5] + b"\x01"
        self.length = length
        self.frame = (len(self._prefix) + self.length + 4).to_bytes(4, "big") + self._prefix


def append_outputs(
    out: list[Piece], outputs: list[Output], codec: Codec, spliced: bool, now: int
) -> bool:
    """Append the frames of *outputs* to *out*; *now* becomes the brokerOutTime of messages.

    A *spliced* delivery is the consumer's header, the message as it is but for that time, and
    the count of redeliveries. Returns whether there are views of large messages among it.
    """
    is_bulky = False
    for output in outputs:
        if type(output) is tuple:
            tag, references = cast("Delivery", output)
            if spliced:
                header = cast("DispatchHeader", tag)
                is_bulky |= _append_spliced(out, header, references, now)
            else:
                out += (framed(codec.encode(_dispatch(tag, each, now))) for each in references)
        elif type(output) is Reply:
            out.append(_RESPONSE + output.correlation.to_bytes(4, "big", signed=True))
        else:
            out.append(framed(codec.encode(_command(cast("Notice", output)))))
    return is_bulky


def _append_spliced(
    out: list[Piece], header: DispatchHeader, references: Sequence[Reference], now: int
) -> bool:
    """Append messages, each between the consumer's header and its redeliveries.

    A body may be in the journal's hands and in those of other consumers: its end with the time
    is replaced in what is sent, not in the body. Returns whether there is a view of one.
    """
    if type(references) is SharedReferences:
        return _append_shared(out, header, references, now)
    is_bulky = False
    ending = now.to_bytes(8, "big") + _MOSTLY
    for reference in references:
        message = reference.message
        assert message is not None
        body = message.body
        if (
            reference.redeliveries
            or body[-1]
            or len(body) > _BULKY_BYTES
            or body[0] == BLOB_MESSAGE
        ):
            sent, ending_of_it = _sent(message, reference.redeliveries, now)
            header.aim(message.destination, len(sent) + len(ending_of_it) - 4)
            out += (header.frame, sent, ending_of_it)
            is_bulky |= type(sent) is memoryview
            continue
        if header.length != len(body) or header.destination is not message.destination:
            header.aim(message.destination, len(body))
        out += (header.frame, body[:BROKER_OUT_TIME_AT], ending)
    return is_bulky


def _append_shared(
    out: list[Piece], header: DispatchHeader, references: SharedReferences, now: int
) -> bool:
    """Append messages that others are sent, too: what follows the header is made only once."""
    is_bulky = False
    if references.sent_at != now:
        references.sent_at, references.sent = now, _runs(references, now)
    for destination, length, pieces in references.sent:
        if header.length != length or header.destination is not destination:
            header.aim(destination, length)
        if length > _BULKY_BYTES:
            out.append(header.frame)
            out += pieces
            is_bulky = True
        else:
            out.append(header.frame.join(pieces))
    return is_bulky


def _runs(references: Sequence[Reference], now: int) -> list[tuple[Destination, int, list[Piece]]]:
    """Return what follows the headers of messages, those together that have the same header.

    The first piece is nothing: so a header that joins them is before each of the others. A large
    message is alone, and in two pieces.
    """
    runs: list[tuple[Destination, int, list[Piece]]] = []
    pieces: list[Piece] = []
    destination, length = None, -1
    for reference in references:
        message = reference.loaded
        body, ending = _sent(message, reference.redeliveries, now)
        size = len(body) + len(ending) - 4
        if size > _BULKY_BYTES:
            runs.append((message.destination, size, [body, ending]))
            destination = None
            continue
        if message.destination is not destination or size != length:
            destination, length, pieces = message.destination, size, [b""]
            runs.append((destination, length, pieces))
        pieces.append(b"".join((body, ending)))
    return runs


def _sent(message: Message, redeliveries: int, now: int) -> tuple[Piece, bytes]:
    """Return a message's bytes with *now* as its brokerOutTime, and its redeliveries.

    The first piece is a view if it is large, the second what comes behind it.
    """
    body, ending = leaving(message.body, now)
    if len(body) <= _BULKY_BYTES:
        body = bytes(body)
    return body, ending + redeliveries.to_bytes(4, "big")


def _command(output: Notice) -> Structure:
    """Return the command that tells of an output."""
    match output:
        case EndOfMessages(tag):
            return MessageDispatch(consumer_id=_consumer_id_of(tag))
        case ConsumerClosed(tag):
            return ConsumerControl(consumer_id=_consumer_id_of(tag), close=True)
        case WindowChanged(tag, destination, prefetch):
            return ConsumerControl(
                consumer_id=_consumer_id_of(tag), destination=destination, prefetch=prefetch
            )
        case Introduction(connected, reconnect, rebalances):
            return ConnectionControl(
                connected_brokers=connected,
                reconnect_to=reconnect,
                rebalance_connection=rebalances,
            )
        case Disconnect(error):
            return ConnectionErrorCommand(exception=throwable(error))
        case Reply(correlation=correlation):
            return Response(correlation_id=correlation)
        case Failure(correlation=correlation, error=error):
            return ExceptionResponse(correlation_id=correlation, exception=throwable(error))
        case Prepared(correlation, read_only):
            return IntegerResponse(
                correlation_id=correlation, result=XA_RDONLY if read_only else XA_OK
            )
        case InDoubt(correlation, transactions):
            return DataArrayResponse(correlation_id=correlation, data=transactions)
        case ProducerCredit(producer_id=producer_id, size=size):
            return ProducerAck(producer_id=producer_id, size=size)
        case _:
            assert_never(output)


def _dispatch(tag: object, reference: Reference, now: int) -> MessageDispatch:
    """Return a dispatch for a client whose version needs the message encoded anew."""
    message, _ = decode(reference.loaded.body)
    assert isinstance(message, MessageFields)
    message.broker_out_time = now
    redeliveries = message.redelivery_counter = reference.redeliveries
    return MessageDispatch(
        consumer_id=_consumer_id_of(tag),
        destination=message.destination,
        message=message,
        redelivery_counter=redeliveries,
    )


def _consumer_id_of(tag: object) -> ConsumerId:
    """Return the id by which the client knows the consumer with this tag."""
    assert isinstance(tag, DispatchHeader)
    return tag.consumer_id


REASON_CHARACTERS_MAX: Final = 4096


def throwable(error: Exception) -> Throwable:
    """Return the Java exception a client throws for *error* (openwire.md section 7.7)."""
    text = str(error)
    if len(text) > REASON_CHARACTERS_MAX:
        # Mostly what the client said itself; a text of the wire has 65,535 bytes at most.
        text = text[: REASON_CHARACTERS_MAX - 1] + "…"
    if isinstance(error, errors.TransactionError):
        text = f"{text} xaErrorCode:{error.xa_code}"
    name = _JAVA_CLASSES.get(type(error), "javax.jms.JMSException")  # type: ignore[arg-type]
    return Throwable(name, text)
