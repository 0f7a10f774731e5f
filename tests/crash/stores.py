"""What the crash tests do with a store itself: messages, receipts, waiting until all is durable."""

import select
from collections.abc import Iterable

from lockkeeper.message.destination import Destination, queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import ActiveMQTextMessage, encode
from lockkeeper.message.reader import MessageReader
from lockkeeper.store.base import Receipt as AnyReceipt
from lockkeeper.store.base import Reference
from lockkeeper.store.kahadb import KahaDBStore

PRODUCER = ProducerId("ID:producer-1:1", 1, 1)
TIMEOUT_SECONDS = 20


class Receipt:
    """A receipt that is known by itself."""

    def settle(self) -> None:
        """See `lockkeeper.store.base.Receipt`."""


def reference(number: int, destination: Destination, size: int = 60) -> Reference:
    """Return a new message as a broker would hand it over."""
    message = ActiveMQTextMessage(
        producer_id=PRODUCER,
        destination=destination,
        message_id=MessageId(PRODUCER, number),
        persistent=True,
        priority=4,
        content=b"%06d" % number + b"x" * (size - 6),
    )
    body = encode(message, 11)
    read = MessageReader().receive(body, 0, len(body), number, bytes(8))
    return Reference(read, len(body))


def settled(store: KahaDBStore) -> list[AnyReceipt]:
    """Wait until all that was handed over is durable; returns the receipts."""
    last = Receipt()
    store.remove(queue("NOBODY"), Reference(None, 0), last)
    receipts = list(store.flush())
    while last not in receipts:
        descriptor = store.fileno()
        assert descriptor is not None
        readable, _, _ = select.select([descriptor], [], [], TIMEOUT_SECONDS)
        assert readable, "the store did not finish its write in time"
        receipts += store.completed()
    return receipts


def numbers(store: KahaDBStore, references: Iterable[Reference]) -> list[int]:
    """Return the numbers that messages were made with."""
    found = list(references)
    store.load(found, 1)
    return [int(one.loaded.key.rpartition(b":")[2]) for one in found]
