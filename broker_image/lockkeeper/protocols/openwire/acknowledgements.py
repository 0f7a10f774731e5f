"""Acknowledgements: a consumer's next one begins like its last one.

The bytes from the response flag up to the acknowledgement's type are remembered. While they come
again for a single message, its broker sequence near the end of the frame says the rest
(openwire.md sections 6, 7.5); everything else is decoded.
"""

from struct import Struct
from typing import Final

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import AcknowledgeError
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.message.ids import MessageId
from lockkeeper.message.openwire import AckType, MessageAck, codec_for, encode
from lockkeeper.message.text import encode_text
from lockkeeper.protocols.openwire.convert import DispatchHeader
from lockkeeper.protocols.openwire.dispatched_keys import DispatchedKeys
from lockkeeper.store.base import Receipt, Reference

MESSAGE_ACK = codec_for(12).encode(MessageAck())[0]
_PREFIX_AT: Final = 5
_NEVER_LEARNT: Final = b"\xff\xff"
_SINGLE_TYPES = (AckType.STANDARD, AckType.INDIVIDUAL)
# The size of a frame and its type, at its beginning; lastMessageId's sequence, a messageCount of
# 1 and no poison cause, at its end.
_HEAD, _HEAD_BYTES = Struct(">IB"), 5
_LAST, _LAST_BYTES = Struct(">q5s"), 13
# Two absent message ids, messageCount, no poison cause: the least that follows the type.
_TAIL_BYTES: Final = 1 + 1 + 4 + 1
_ONE_MESSAGE: Final = b"\x00\x00\x00\x01\x00"


class AckReader:
    """Reads the acknowledgements of one connection."""

    __slots__ = ("_broker", "_connection", "_consumer", "_prefix")

    def __init__(self, broker: Broker, connection: Connection) -> None:
        self._broker = broker
        self._connection = connection
        self._prefix = _NEVER_LEARNT
        self._consumer: Consumer | None = None

    def acknowledge_run(self, data: bytes, position: int, length: int) -> int:
        """Consume one message for each frame from *position* on that is like the last one.

        Returns where they end: *position* itself when the first one must be decoded.
        """
        consumer = self._consumer
        if consumer is None:
            return position
        prefix, pop = self._prefix, consumer.dispatched.pop
        size_min = _PREFIX_AT + len(prefix) + _LAST_BYTES
        ended: list[Reference] = []
        while length - position >= _HEAD_BYTES:
            size, kind = _HEAD.unpack_from(data, position)
            end = position + 4 + size
            if kind != MESSAGE_ACK or size < size_min or end > length:
                break
            # The brokerSequenceId closes lastMessageId; of a closed consumer nothing is dispatched.
            sequence, tail = _LAST.unpack_from(data, end - _LAST_BYTES)
            if tail != _ONE_MESSAGE or not data.startswith(prefix, position + 4 + _PREFIX_AT):
                break
            reference = pop(sequence, None)
            if reference is None:
                break
            ended.append(reference)
            position = end
        if ended:
            consumer.consumed(ended, None)
        return position

    def learn(self, data: bytes, start: int, ack: MessageAck) -> None:
        """Remember how this acknowledgement began, if the next one may be for one message too."""
        self._prefix, self._consumer = _NEVER_LEARNT, None
        if ack.transaction_id is not None or ack.ack_type not in _SINGLE_TYPES:
            return
        lead = MessageAck(
            destination=ack.destination, consumer_id=ack.consumer_id, ack_type=ack.ack_type
        )
        prefix = encode(lead)[_PREFIX_AT:-_TAIL_BYTES]
        # A peer that encodes ids in another way, or wants responses, is decoded each time.
        if data.startswith(prefix, start + _PREFIX_AT):
            self._prefix = prefix
            self._consumer = self._connection.consumers.get(ack.consumer_id)

    def acknowledge(self, ack: MessageAck, receipt: Receipt | None) -> None:
        """Carry out a decoded acknowledgement. Raises BrokerError."""
        broker = self._broker
        consumer = self._connection.consumers.get(ack.consumer_id)
        if consumer is None:
            raise AcknowledgeError(f"an acknowledgement by the unknown consumer {ack.consumer_id}")
        if ack.ack_type in (AckType.DELIVERED, AckType.REDELIVERED):
            last = 0
        else:
            last = _sequence_of(consumer, ack.last_message_id)
        count = ack.message_count
        if count < 0:
            raise AcknowledgeError(f"an acknowledgement of {count} messages")
        if ack.ack_type == AckType.POISON and ack.transaction_id is None:
            cause = ack.poison_cause
            text = f"{cause.class_name}: {cause.message}" if cause else "poison acknowledgement"
            broker.poison(consumer, last, count, text, receipt)
            return
        kind, transaction = ack.ack_type, ack.transaction_id
        if transaction is None:
            broker.acknowledge(consumer, kind, last, count, receipt)
            return
        connection = self._connection
        broker.transactions.acknowledge(connection, consumer, transaction, last, count, kind)
        if receipt is not None:
            receipt.settle()


def _sequence_of(consumer: Consumer, message_id: MessageId | None) -> int:
    """Return the broker sequence of a dispatched message, found by its id if need be."""
    if message_id is None:
        raise AcknowledgeError("an acknowledgement without a lastMessageId")
    if message_id.broker_sequence in consumer.dispatched:
        return message_id.broker_sequence
    header = consumer.tag
    assert isinstance(header, DispatchHeader)
    if header.keys is None:
        header.keys = DispatchedKeys()
    sequence = header.keys.find(consumer, encode_text(str(message_id)))
    if sequence is not None:
        return sequence
    raise AcknowledgeError(
        f"Unmatched acknowledge: the message {message_id} is not dispatched to "
        f"{consumer.identifier}"
    )
