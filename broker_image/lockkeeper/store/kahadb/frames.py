"""The OpenWire frames that records carry besides messages: acknowledgements, subscriptions."""

from typing import Final

from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.records import Subscription as SubscriptionRecord
from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import MessageId, ProducerId, TransactionId
from lockkeeper.message.openwire import (
    AckType,
    ConsumerId,
    MessageAck,
    SubscriptionInfo,
    codec_for,
)
from lockkeeper.message.text import decode_text
from lockkeeper.store.base import Subscription

STORE_VERSION: Final = 11
_PREFIX_BYTES: Final = 4
_CODEC = codec_for(STORE_VERSION, stack_traces=False)
_NOBODY = ConsumerId("lockkeeper", 0, 0)


def journal_key(key: bytes) -> bytes:
    """Return a message's key (modified UTF-8) as the journal writes it (UTF-8)."""
    return key if key.isascii() else decode_text(key).encode("utf-8", "replace")


def ack_frame(destination: Destination, key: bytes, transaction: TransactionId) -> bytes:
    """Return the acknowledgement of one message within *transaction*.

    ActiveMQ reads prepared acknowledgements back from it; it names no real consumer, because
    none outlives the restart after which it is read.
    """
    message_id = message_id_of(key)
    ack = MessageAck(
        destination=destination,
        transaction_id=transaction,
        consumer_id=_NOBODY,
        ack_type=AckType.STANDARD,
        first_message_id=message_id,
        last_message_id=message_id,
        message_count=1,
    )
    return _framed(_CODEC.encode(ack))


def subscription_frame(subscription: Subscription) -> bytes:
    """Return *subscription* as the journal keeps it."""
    info = SubscriptionInfo(
        client_id=subscription.client_id,
        destination=subscription.destination,
        selector=subscription.selector,
        subscription_name=subscription.name,
        subscribed_destination=subscription.wanted or subscription.destination,
        no_local=subscription.no_local,
    )
    return _framed(_CODEC.encode(info))


def read_subscription(
    record: SubscriptionRecord, destination: Destination, file_name: str = "", offset: int = 0
) -> Subscription:
    """Return the subscription to *destination* that *record* creates.

    Raises BadRecordError when it does not hold one, or another one than it says.
    """
    try:
        info, _ = _CODEC.decode(record.info or b"", _PREFIX_BYTES)
    except MalformedMessageError as error:
        raise BadRecordError(f"not a subscription: {error}", file_name, offset) from error
    if not isinstance(info, SubscriptionInfo):
        reason = f"a {type(info).__name__} instead of a subscription"
        raise BadRecordError(reason, file_name, offset)
    wanted = info.subscribed_destination
    subscription = Subscription(
        info.client_id or "",
        info.subscription_name or "",
        destination,
        info.selector,
        info.no_local,
        None if wanted == destination else wanted,
    )
    if subscription.key != record.subscription_key:
        reason = f"the subscription of {subscription.key} is filed as {record.subscription_key}"
        raise BadRecordError(reason, file_name, offset)
    return subscription


def _framed(body: bytes) -> bytes:
    return len(body).to_bytes(_PREFIX_BYTES, "big") + body


def message_id_of(key: bytes) -> MessageId:
    """Return the id whose text is *key*, as a text view where it is not a producer's."""
    text = decode_text(key)
    parts = text.rsplit(":", 3)
    if len(parts) == 4 and all(part.lstrip("-").isdigit() for part in parts[1:]):
        connection, session, value, sequence = parts
        return MessageId(ProducerId(connection, int(value), int(session)), int(sequence))
    return MessageId(None, 0, text_view=text)
