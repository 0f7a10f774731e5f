"""Outputs of the core as OpenWire: commands, Java's exceptions, and dispatch by splicing."""

from collections.abc import Sequence
from typing import assert_never, cast

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
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.message.destination import Destination
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
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.store.base import Reference

XA_OK, XA_RDONLY = 0, 3
_NO_REDELIVERIES = bytes(4)
# Response: type 30, command id 0, no response wanted; the correlation id follows.
_RESPONSE = b"\x00\x00\x00\x0a\x1e\x00\x00\x00\x00\x00"

_JAVA_CLASSES: dict[type[errors.BrokerError], str] = {
    errors.AccessDeniedError: "java.lang.SecurityException",
    errors.InvalidClientIdError: "javax.jms.InvalidClientIDException",
    errors.InvalidDestinationError: "javax.jms.InvalidDestinationException",
    errors.InvalidSelectorError: "javax.jms.InvalidSelectorException",
    errors.ResourceAllocationError: "javax.jms.ResourceAllocationException",
    errors.TransactionRolledBackError: "javax.jms.TransactionRolledBackException",
    errors.TransactionError: "javax.transaction.xa.XAException",
}


class DispatchHeader:
    """The bytes before the message in every dispatch to one consumer; lives in its `tag`.

    `frame` holds for messages of `destination` with a body of `length` bytes.
    """

    __slots__ = ("_prefix", "consumer_id", "destination", "frame", "length")

    def __init__(self, consumer_id: ConsumerId) -> None:
        self.consumer_id = consumer_id
        self.destination: Destination | None = None
        self.length = 0
        self.frame = b""
        self._prefix = b""

    def aim(self, message: Message) -> None:
        """Make `frame` right for *message*."""
        if message.destination is not self.destination:
            self.destination = message.destination
            dispatch = MessageDispatch(
                consumer_id=self.consumer_id, destination=message.destination
            )
            # An absent message is one byte 0 and the counter four: the message goes between.
            self._prefix = encode(dispatch)[:-5] + b"\x01"
        self.length = len(message.body)
        self.frame = (len(self._prefix) + self.length + 4).to_bytes(4, "big") + self._prefix


def append_outputs(out: list[bytes], outputs: list[Output], codec: Codec, spliced: bool) -> None:
    """Append the frames of *outputs* to *out*.

    A *spliced* delivery is the consumer's header, the message as it is, and the count of
    redeliveries.
    """
    for output in outputs:
        if type(output) is tuple:
            consumer, references = cast("Delivery", output)
            if spliced:
                _append_spliced(out, cast("DispatchHeader", consumer.tag), references)
            else:
                out += (framed(codec.encode(_dispatch(consumer, each))) for each in references)
        elif type(output) is Reply:
            out.append(_RESPONSE + output.correlation.to_bytes(4, "big", signed=True))
        else:
            out.append(framed(codec.encode(_command(cast("Notice", output)))))


def _append_spliced(
    out: list[bytes], header: DispatchHeader, references: Sequence[Reference]
) -> None:
    """Append messages as they are, each between the consumer's header and its redeliveries."""
    for reference in references:
        message, redeliveries = reference.message, reference.redeliveries
        assert message is not None
        body = message.body
        if header.length != len(body) or header.destination is not message.destination:
            header.aim(message)
        count = redeliveries.to_bytes(4, "big") if redeliveries else _NO_REDELIVERIES
        out += (header.frame, body, count)


def _command(output: Notice) -> Structure:
    """Return the command that tells of an output."""
    match output:
        case EndOfMessages(consumer):
            return MessageDispatch(consumer_id=consumer_id_of(consumer))
        case ConsumerClosed(consumer):
            return ConsumerControl(consumer_id=consumer_id_of(consumer), close=True)
        case WindowChanged(consumer, prefetch):
            return ConsumerControl(
                consumer_id=consumer_id_of(consumer),
                destination=consumer.destination,
                prefetch=prefetch,
            )
        case Introduction(connected, reconnect):
            return ConnectionControl(connected_brokers=connected, reconnect_to=reconnect)
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


def _dispatch(consumer: Consumer, reference: Reference) -> MessageDispatch:
    """Return a dispatch for a client whose version needs the message encoded anew."""
    message, _ = decode(reference.loaded.body)
    assert isinstance(message, MessageFields)
    redeliveries = message.redelivery_counter = reference.redeliveries
    return MessageDispatch(
        consumer_id=consumer_id_of(consumer),
        destination=message.destination,
        message=message,
        redelivery_counter=redeliveries,
    )


def consumer_id_of(consumer: Consumer) -> ConsumerId:
    """Return the id by which the client knows a consumer."""
    header = consumer.tag
    assert isinstance(header, DispatchHeader)
    return header.consumer_id


def throwable(error: Exception) -> Throwable:
    """Return the Java exception a client throws for *error* (openwire.md section 7.7)."""
    text = str(error)
    if isinstance(error, errors.TransactionError):
        text = f"{text} xaErrorCode:{error.xa_code}"
    name = _JAVA_CLASSES.get(type(error), "javax.jms.JMSException")  # type: ignore[arg-type]
    return Throwable(name, text)
