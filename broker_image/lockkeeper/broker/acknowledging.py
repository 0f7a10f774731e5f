"""Acknowledgements of a consumer outside transactions (openwire.md section 7.5)."""

from lockkeeper.broker.errors import AcknowledgeError
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.message.openwire import AckType
from lockkeeper.store.base import Receipt

CONSUMING = (AckType.STANDARD, AckType.INDIVIDUAL, AckType.UNMATCHED)
"""Types of acknowledgements that end messages as consumed."""


def acknowledge(
    consumer: Consumer,
    kind: int,
    last: int,
    count: int,
    receipt: Receipt | None,
) -> None:
    """Carry out an acknowledgement outside a transaction (openwire.md section 7.5)."""
    if kind == AckType.DELIVERED:
        consumer.extend(count)
        consumer.reactivate()
    elif kind in CONSUMING:
        references = consumer.take_dispatched(last, 1 if kind == AckType.INDIVIDUAL else count)
        backlogs = consumer.backlogs
        if len(backlogs) == 1:
            backlogs[0].consumed(consumer, references, receipt)
        else:
            consumer.consumed(references, receipt)
        return
    elif kind == AckType.EXPIRED:
        for reference in consumer.take_dispatched(last, count):
            consumer.backlog_of(reference).expire_held(reference)
        consumer.shrink(count)
        consumer.reactivate()
    elif kind != AckType.REDELIVERED:
        raise AcknowledgeError(f"an acknowledgement of unknown type {kind}")
    if receipt is not None:
        receipt.settle()
