"""What tests of stores share: messages, receipts, and waiting until all is durable."""

import select
from collections.abc import Iterable
from dataclasses import dataclass, field

from lockkeeper.message.destination import Destination, queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import ActiveMQTextMessage, encode
from lockkeeper.message.reader import MessageReader
from lockkeeper.store.base import Receipt, Reference, Store
from lockkeeper.store.kahadb import KahaDBStore

A = queue("A")
PRODUCER = ProducerId("ID:producer-1:1", 1, 1)
TIMEOUT_SECONDS = 20


@dataclass(eq=False)
class NamedReceipt:
    """A receipt that remembers whether it was given back."""

    name: str = ""
    log: list[str] = field(default_factory=list)

    def settle(self) -> None:
        self.log.append(self.name)


def reference(
    number: int,
    destination: Destination = A,
    size: int = 60,
    producer: ProducerId = PRODUCER,
    shown: str | None = None,
) -> Reference:
    """Return a new message as a broker would hand it over; a copy has another *shown* id."""
    message = ActiveMQTextMessage(
        producer_id=producer,
        destination=destination,
        message_id=MessageId(producer, number, text_view=shown),
        persistent=True,
        priority=4,
        content=b"%06d" % number + b"x" * (size - 6),
    )
    body = encode(message, 11)
    read = MessageReader().receive(body, 0, len(body), number, bytes(8))
    return Reference(read, len(body))


def becomes_readable(store: Store, seconds: float) -> bool:
    """Wait for the store as an event loop would; tells whether there was something to take."""
    descriptor = store.fileno()
    assert descriptor is not None
    return bool(select.select([descriptor], [], [], seconds)[0])


def until_durable(store: Store) -> list[Receipt]:
    """Flush and wait until all that was handed over is durable; returns the receipts."""
    last = NamedReceipt("last")
    store.remove(A, Reference(None, 0), last)
    receipts = list(store.flush())
    while last not in receipts:
        assert becomes_readable(store, TIMEOUT_SECONDS), "the write did not finish in time"
        receipts += store.completed()
    receipts.remove(last)
    return receipts


def number_of(one: Reference) -> int:
    """Return the number that the message was made with."""
    return int(one.loaded.key.rpartition(b":")[2])


class Clock:
    """A clock for stores, in ms, that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


@dataclass
class Kit:
    """The functions above, and a clock for the test's stores."""

    clock: Clock = field(default_factory=Clock)
    Receipt = NamedReceipt
    reference = staticmethod(reference)
    PRODUCER = PRODUCER
    until_durable = staticmethod(until_durable)
    number_of = staticmethod(number_of)

    def maintain(self, store: KahaDBStore, now: int) -> None:
        """Have a store with the kit's clock do what is due at *now*; wall clocks have stopped.

        The copy of a file that is being made is ready when it does that again.
        """
        self.clock.now = now
        files, left = None, store.usage().files
        while left != files:
            # A few files are deleted at a time.
            store.maintain(0)
            files, left = left, store.usage().files
        store._compaction.wait()

    @staticmethod
    def numbers(store: Store, references: Iterable[Reference]) -> list[int]:
        """Load *references* and return their numbers."""
        listed = list(references)
        store.load(listed, 1)
        return [number_of(one) for one in listed]
