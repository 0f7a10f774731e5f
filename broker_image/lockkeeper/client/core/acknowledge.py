"""Acknowledge modes of a session, and the acknowledgements that consumers send."""

from enum import Enum
from struct import Struct

from lockkeeper.client.core.delivery import SPLICED_VERSION_MIN, Delivery
from lockkeeper.message.ids import TransactionId
from lockkeeper.message.openwire import (
    AckType,
    Codec,
    ConsumerId,
    MessageAck,
    Throwable,
)

POISON_CLASS = "java.lang.Throwable"
_ACK = Struct(">BiB")
_COUNT = Struct(">iB")
_TYPE = 22


class Acknowledge(Enum):
    """The acknowledgement modes of JMS, and ActiveMQ's INDIVIDUAL."""

    AUTO = "auto"
    """Each message as it is handed to the application; with a listener, when that returns."""

    CLIENT = "client"
    """Everything the session has consumed, when the application says so."""

    DUPS_OK = "dups-ok"
    """Later and many at once, where a topic is consumed; else as in AUTO."""

    INDIVIDUAL = "individual"
    """One message at a time, when the application says so."""

    TRANSACTED = "transacted"
    """With the session's transaction."""


def ack_frame(
    codec: Codec, number: int, kind: AckType, consumer: bytes, deliveries: list[Delivery]
) -> bytes:
    """Return the frame of an acknowledgement outside of transactions.

    *consumer* are the bytes of the consumer's id as a nested object. Equal to what `make_ack`
    and the codec give, and quicker.
    """
    last = deliveries[-1]
    destination = last.destination
    if codec.version < SPLICED_VERSION_MIN or not last.message_at or destination is None:
        raise ValueError("only deliveries of versions 10 to 12 are acknowledged by their bytes")
    last_id = last.id_wire
    count = len(deliveries)
    first_id = last_id if count == 1 else deliveries[0].id_wire
    body = b"".join(
        (
            _ACK.pack(_TYPE, number, 0),
            destination.wire,
            b"\x00",
            consumer,
            kind.to_bytes(1, "big"),
            b"\x00" if kind is AckType.INDIVIDUAL else first_id,
            last_id,
            _COUNT.pack(count, 0),
        )
    )
    return len(body).to_bytes(4, "big") + body


def make_ack(
    kind: AckType,
    consumer_id: ConsumerId,
    deliveries: list[Delivery],
    transaction_id: TransactionId | None = None,
    cause: "str | BaseException | None" = None,
) -> MessageAck:
    """Return the acknowledgement of consecutive *deliveries* (openwire.md section 7.5)."""
    return MessageAck(
        destination=deliveries[-1].destination,
        transaction_id=transaction_id,
        consumer_id=consumer_id,
        ack_type=kind,
        first_message_id=None if kind is AckType.INDIVIDUAL else deliveries[0].message_id,
        last_message_id=deliveries[-1].message_id,
        message_count=len(deliveries),
        poison_cause=None if cause is None else poison_cause(cause),
    )


def poison_cause(cause: str | BaseException) -> Throwable:
    """Return what the dead letter queue shows as the reason of a refusal."""
    return Throwable(POISON_CLASS, cause_text(cause))


def cause_text(cause: str | BaseException | None) -> str:
    """Return a cause in words, an exception with its class as Java writes them."""
    if not isinstance(cause, BaseException):
        return str(cause)
    name = type(cause).__qualname__
    return f"{name}: {cause}" if str(cause) else name


def runs(deliveries: list[Delivery], waiting: list[int]) -> list[list[Delivery]]:
    """Return *deliveries* in their order of arrival, in as few ranges as may be acknowledged.

    A range must not span what arrived between its messages and still is *waiting*: numbers of
    arrivals that the application has not got.
    """
    ordered = sorted(deliveries, key=lambda each: each.arrival)
    if not waiting or min(waiting) > ordered[-1].arrival:
        return [ordered]
    found: list[list[Delivery]] = []
    gaps = sorted(waiting)
    gap = 0
    for delivery in ordered:
        is_split = not found
        while gap < len(gaps) and gaps[gap] < delivery.arrival:
            gap += 1
            is_split = True
        if is_split:
            found.append([])
        found[-1].append(delivery)
    return found
