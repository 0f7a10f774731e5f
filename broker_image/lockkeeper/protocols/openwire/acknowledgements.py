"""Acknowledgements: a consumer's next one begins like its last one.

The bytes from the destination up to the consumer id are remembered; while they come again, the
broker sequence and the count at the end of the frame say the rest (openwire.md sections 6, 7.5).
"""

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import AcknowledgeError
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.message.ids import MessageId, TransactionId
from lockkeeper.message.openwire import AckType, MessageAck, encode
from lockkeeper.message.text import encode_text
from lockkeeper.store.base import Receipt

_PREFIX_AT = 6
_NEVER_LEARNT = b"\xff\xff"
_PLAIN_TYPES = frozenset((AckType.DELIVERED, AckType.STANDARD, AckType.INDIVIDUAL))
# ackType, two absent message ids, messageCount, no poison cause: the least that can follow.
_TAIL_BYTES = 1 + 1 + 1 + 4 + 1


class AckReader:
    """Reads the acknowledgements of one connection."""

    __slots__ = ("_connection", "_consumer", "_prefix", "_transaction_id")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._prefix = _NEVER_LEARNT
        self._consumer: Consumer | None = None
        self._transaction_id: TransactionId | None = None

    def acknowledge_known(
        self, broker: Broker, data: bytes, start: int, end: int, receipt: Receipt | None
    ) -> bool:
        """Carry out an acknowledgement that begins like the last one.

        Returns False, with nothing done, when it does not, or names no message by its broker
        sequence; then it must be decoded. Raises BrokerError.
        """
        consumer = self._consumer
        if consumer is None or consumer.closed:
            return False
        if not data.startswith(self._prefix, start + _PREFIX_AT):
            return False
        kind = data[start + _PREFIX_AT + len(self._prefix)]
        if kind not in _PLAIN_TYPES or data[end - 1]:
            return False
        last = int.from_bytes(data[end - 13 : end - 5], "big")
        if last not in consumer.dispatched:
            return False
        count = int.from_bytes(data[end - 5 : end - 1], "big")
        if count == 1 and kind != AckType.DELIVERED and self._transaction_id is None:
            broker.acknowledge_one(consumer, last, receipt)
            return True
        _carry_out(broker, consumer, self._transaction_id, kind, last, count, receipt)
        return True

    def learn(self, data: bytes, start: int, ack: MessageAck) -> None:
        """Remember how this acknowledgement began."""
        if ack.consumer_id is None:
            return
        self._consumer = self._connection.consumers.get(ack.consumer_id)
        self._transaction_id = ack.transaction_id
        lead = MessageAck(
            destination=ack.destination,
            transaction_id=ack.transaction_id,
            consumer_id=ack.consumer_id,
        )
        prefix = encode(lead)[_PREFIX_AT:-_TAIL_BYTES]
        # A peer that encodes ids in another way is read field by field each time.
        known = data.startswith(prefix, start + _PREFIX_AT)
        self._prefix = prefix if known else _NEVER_LEARNT

    def acknowledge(self, broker: Broker, ack: MessageAck, receipt: Receipt | None) -> None:
        """Carry out a decoded acknowledgement. Raises BrokerError."""
        consumer = self._connection.consumers.get(ack.consumer_id)
        if consumer is None:
            raise AcknowledgeError(f"an acknowledgement by the unknown consumer {ack.consumer_id}")
        if ack.ack_type in (AckType.DELIVERED, AckType.REDELIVERED):
            last = 0
        else:
            last = _sequence_of(consumer, ack.last_message_id)
        count = ack.message_count
        if ack.ack_type == AckType.POISON and ack.transaction_id is None:
            cause = ack.poison_cause
            text = f"{cause.class_name}: {cause.message}" if cause else "poison acknowledgement"
            broker.poison(consumer, last, count, text, receipt)
            return
        _carry_out(broker, consumer, ack.transaction_id, ack.ack_type, last, count, receipt)


def _carry_out(
    broker: Broker,
    consumer: Consumer,
    transaction_id: TransactionId | None,
    kind: int,
    last: int,
    count: int,
    receipt: Receipt | None,
) -> None:
    if transaction_id is None:
        broker.acknowledge(consumer, kind, last, count, receipt)
        return
    broker.acknowledge_in_transaction(consumer, transaction_id, last, count, kind)
    if receipt is not None:
        receipt.settle()


def _sequence_of(consumer: Consumer, message_id: MessageId | None) -> int:
    """Return the broker sequence of a dispatched message, found by its id if need be."""
    if message_id is None:
        raise AcknowledgeError("an acknowledgement without a lastMessageId")
    if message_id.broker_sequence in consumer.dispatched:
        return message_id.broker_sequence
    key = encode_text(str(message_id))
    for sequence, reference in consumer.dispatched.items():
        if reference.loaded.key == key:
            return sequence
    raise AcknowledgeError(
        f"Unmatched acknowledge: the message {message_id} is not dispatched to "
        f"{consumer.identifier}"
    )
