"""Acknowledge modes of a consumer, and the acknowledgements that it sends."""

from enum import Enum

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId
from lockkeeper.message.openwire import (
    AckType,
    ConsumerId,
    MessageAck,
    MessageDispatch,
    Throwable,
)

POISON_CLASS = "java.lang.Throwable"


class Acknowledge(Enum):
    """The acknowledgement modes of JMS, and ActiveMQ's INDIVIDUAL."""

    AUTO = "auto"
    """Each message as it is handed to the application."""

    CLIENT = "client"
    """Everything the session has consumed, when the application says so."""

    INDIVIDUAL = "individual"
    """One message at a time, when the application says so."""

    TRANSACTED = "transacted"
    """With the session's transaction."""


def make_ack(
    kind: AckType,
    consumer_id: ConsumerId,
    dispatches: list[MessageDispatch],
    transaction_id: TransactionId | None = None,
) -> MessageAck:
    """Return the acknowledgement of consecutive *dispatches* (openwire.md section 7.5)."""
    first, last = dispatches[0].message, dispatches[-1].message
    assert first is not None and last is not None
    return MessageAck(
        destination=dispatch_destination(dispatches[-1]),
        transaction_id=transaction_id,
        consumer_id=consumer_id,
        ack_type=kind,
        first_message_id=None if kind is AckType.INDIVIDUAL else first.message_id,
        last_message_id=last.message_id,
        message_count=len(dispatches),
    )


def dispatch_destination(dispatch: MessageDispatch) -> Destination | None:
    """Return where the message of *dispatch* was, which a wildcard consumer cannot know."""
    if dispatch.destination is not None or dispatch.message is None:
        return dispatch.destination
    return dispatch.message.destination


def poison_cause(cause: str | BaseException) -> Throwable:
    """Return what the dead letter queue shows as the reason of a refusal."""
    if isinstance(cause, BaseException):
        name = type(cause).__qualname__
        cause = f"{name}: {cause}" if str(cause) else name
    return Throwable(POISON_CLASS, cause)
