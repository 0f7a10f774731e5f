"""Interface of a store for the broker core, and the values that both exchange.

The core never waits: it hands operations over, and what becomes durable comes back as receipts
from `flush` and `completed`. Operations become durable in the order they were handed over, all
operations handed over between two flushes in as few batches as possible; the operations of one
transaction always in one batch.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId, XATransactionId
from lockkeeper.message.message import Message
from lockkeeper.states import StateMachine
from lockkeeper.store.producers import Producers
from lockkeeper.store.segment import Segment, StreamStore


class StoreError(Exception):
    """The store cannot do what was asked; the text names the file and the way out."""


class GoneError(StoreError):
    """The stored message has ended, and its file is deleted."""


class DamagedError(StoreError):
    """The stored bytes are damaged; the text says where, and names the loss."""


class AtomicBatchTooLargeError(StoreError):
    """Operations that must share a batch fit into none. Nothing was changed, nor will be."""


class StoreFullError(StoreError):
    """There is no room on the disk. Nothing is lost: what was handed over is kept and retried."""


class Receipt(Protocol):
    """Token that the core gets back when an operation is durable."""

    def settle(self) -> None:
        """Go on with what waited for the operation."""


class State(IntEnum):
    """State of a message in the store."""

    VOLATILE = 0  # not persistent: the store does not know it
    WAITING = 1  # handed over, its write has not begun
    WRITTEN = 2  # in the journal, at `location`; durable once its receipt was given back
    SKIPPED = 3  # acknowledged before its write began: it never goes to the journal
    REMOVED = 4  # its removal was handed over


VOLATILE, WAITING, WRITTEN, SKIPPED, REMOVED = State

MESSAGE_STATES: Final = StateMachine(
    "a message in the store",
    (VOLATILE, WRITTEN),
    {
        VOLATILE: {"handed over": WAITING},
        WAITING: {
            "its write begins": WRITTEN,
            "acknowledged before its write": SKIPPED,
            "ended before its write": REMOVED,
            "handed over again, by a commit": WAITING,
        },
        WRITTEN: {"its last holder ends it": REMOVED, "its write failed": WAITING},
        SKIPPED: {},
        REMOVED: {"its write failed": WAITING},
    },
)
"""What becomes of a message; the stores assign `Reference.state` themselves, for speed."""

UNORDERED: Final = -1
UNKNOWN: Final = -1
"""The priority of a message whose destination does not order by it."""


class Reference:
    """One message of one destination, its body in memory or only on disk.

    `message` is None while the body is only on disk. `size` is in bytes: that of the journal
    record once written, else that of the body. `location` is the store's own, 0 when neither
    written nor in a temporary file. `holders` counts what still needs the message: 1 for a
    queue, the number of durable subscriptions for a topic. `held` counts the consumers that have
    it, negative once it has ended. `delivery` is the number of the last delivery, 0 before the
    first; on a queue it is negative once given back. `expiration` is that of a body which is only
    on disk (ms since the epoch, 0 for none), UNKNOWN when it has not been read since the broker
    started. `priority` is 0 to 9 where messages are ordered by it, else UNORDERED.
    `redeliveries` counts failed deliveries.

    `state`, `location`, `size` and `receipt` are the store's to write once a message was handed
    over, everything else is the broker's; `holders` both count down.
    """

    __slots__ = (
        "delivery",
        "expiration",
        "held",
        "holders",
        "location",
        "message",
        "priority",
        "receipt",
        "redeliveries",
        "size",
        "state",
    )

    def __init__(
        self,
        message: Message | None,
        size: int,
        location: int = 0,
        state: State = VOLATILE,
    ) -> None:
        self.message = message
        self.size = size
        self.location = location
        self.state = state
        self.expiration = UNKNOWN
        self.held = 0
        self.delivery = 0
        self.holders = 1
        self.priority = UNORDERED
        self.redeliveries = 0
        self.receipt: Receipt | None = None

    @property
    def loaded(self) -> Message:
        """The message; the caller has made sure that it is in memory."""
        assert self.message is not None
        return self.message


def body_bytes(references: Iterable[Reference]) -> int:
    """Return how many bytes the bodies of messages have, all of them in memory."""
    size = 0
    for reference in references:
        message = reference.message
        assert message is not None
        size += len(message.body)
    return size


class Subscription(NamedTuple):
    """A durable subscription as the store keeps it (kahadb.md section 3, SubscriptionInfo).

    One to a wildcard, or to a list, is kept once for each topic that it is for; `wanted` is then
    what was subscribed to. The store knows each by its destination and its key.
    """

    client_id: str
    name: str
    destination: Destination
    selector: str | None
    no_local: bool
    wanted: Destination | None = None

    @property
    def key(self) -> str:
        """Return KahaDB's subscriptionKey."""
        return f"{self.client_id}:{self.name}"


class Add(NamedTuple):
    """Messages added to a destination within a transaction, in order."""

    destination: Destination
    references: Sequence[Reference]


class Remove(NamedTuple):
    """Messages consumed within a transaction, in order; by a durable `subscription`, if any."""

    destination: Destination
    references: Sequence[Reference]
    subscription: Subscription | None = None


Operation = Add | Remove


@dataclass(slots=True)
class RecoveredSubscription:
    """A durable subscription and the messages it has not consumed, oldest first."""

    subscription: Subscription
    pending: list[Reference] = field(default_factory=list)


class Waiting(Protocol):
    """The messages of a long queue; how they are kept is in `packed`."""

    def __len__(self) -> int:
        """Return how many there are."""

    def __iter__(self) -> Iterator[Reference]:
        """Iterate over all of them, in order."""


class Identity(NamedTuple):
    """Name of a broker, and the id by which other brokers know it."""

    name: str
    broker_id: str


@dataclass(slots=True)
class Recovered:
    """Contents of a store when it was opened.

    `producers` knows which numbers of the producers active last are stored, for duplicate
    suppression after a failover. Messages added in a prepared
    transaction are only in `prepared`; those consumed in one are in `prepared` and nowhere
    else (invisible until the outcome). `last_trace` is the text of the last trace record;
    `epoch` the number of the last master's term, 0 if none is told, and `identity` who it was.
    `existing` are the queues that there were, empty ones among them; `segments` those of streams,
    which are no queues here. `strays` are messages in these that are none of their stream.
    """

    queues: dict[Destination, "list[Reference] | Waiting"] = field(default_factory=dict)
    subscriptions: list[RecoveredSubscription] = field(default_factory=list)
    prepared: dict[XATransactionId, list[Operation]] = field(default_factory=dict)
    producers: Producers = field(default_factory=Producers)
    last_trace: str = ""
    epoch: int = 0
    identity: Identity | None = None
    existing: list[Destination] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    strays: dict[Destination, list[Reference]] = field(default_factory=dict)


class Past(NamedTuple):
    """Facts about earlier masters: see `Recovered`."""

    last_trace: str
    epoch: int


class StoreUsage(NamedTuple):
    """Space that the store occupies; `spooled_bytes` are those of temporary files."""

    files: int
    bytes_on_disk: int
    waiting_operations: int
    spooled_bytes: int = 0


class StoreFile(NamedTuple):
    """A file of the store, and what keeps it besides the messages in it.

    `ends_messages_of` are the numbers of other files whose messages its records end: it has to
    stay as long as they do. One that `tells_names` of queues stays until they were told again.
    """

    number: int
    name: str
    bytes_on_disk: int
    is_current: bool
    subscriptions: tuple[str, ...]
    transactions: tuple[XATransactionId, ...]
    ends_messages_of: frozenset[int]
    tells_names: bool


class Run(Protocol):
    """Messages one after the other, in the journal alone; see `PackedRun`."""

    def bytes_by_file(self, offset_bits: int) -> dict[int, int]:
        """Return how many bytes lie in each file; offsets are the low bits of locations."""

    def end(self) -> None:
        """Note that nobody needs the messages any more."""


class Store(Protocol):
    """Keeps messages until they are consumed. One thread, never blocks but where it says so."""

    @property
    def streams(self) -> StreamStore:
        """The part for streams; from `open` on."""

    def open(self) -> Recovered:
        """Read everything back; blocks. Raises StoreError."""

    def close(self) -> None:
        """Make everything durable and let go of the files; blocks."""

    def add(self, destination: Destination, reference: Reference, receipt: Receipt | None) -> None:
        """Keep a persistent message. `reference.holders` says how many removals end it.

        State goes from VOLATILE to WAITING, then to WRITTEN when its write begins, with
        `location` and `size` set. The receipt is given back when it is durable, or by `remove`.
        """

    def add_run(self, destination: Destination, references: Sequence[Reference]) -> None:
        """Do what `add` does for several messages, in order; they have their receipts already."""

    def add_together(self, adds: Sequence[Add], receipt: Receipt | None) -> None:
        """Keep the copies of one message: after a crash all of them are there, or none.

        Like those of a transaction they are written even when they are consumed before. Raises
        AtomicBatchTooLargeError.
        """

    def remove(
        self,
        destination: Destination,
        reference: Reference,
        receipt: Receipt | None = None,
        subscription: Subscription | None = None,
        skip_unwritten: bool = True,
    ) -> Receipt | None:
        """Forget a message, or a durable subscription's part in it.

        A queue message that is still WAITING is never written (ActiveMQ's concurrent store and
        dispatch): then the receipt of its `add` comes back, to be settled at once, and
        *receipt* is given back with the next batch all the same. With *skip_unwritten* false,
        or for a message that was not added alone, both records are written. A VOLATILE reference is
        ignored but for its *receipt*. Without a receipt the removal rides with the next batch
        that has one, or leaves within a few ms.
        """

    def remove_run(self, destination: Destination, references: Sequence[Reference]) -> None:
        """Do what `remove` does for several WRITTEN messages of a queue, in order."""

    def commit(
        self, transaction: TransactionId, operations: Sequence[Operation], receipt: Receipt | None
    ) -> None:
        """Apply *operations* (persistent messages only) atomically: all of them or none.

        Raises AtomicBatchTooLargeError.
        """

    def prepare(
        self, transaction: XATransactionId, operations: Sequence[Operation], receipt: Receipt | None
    ) -> None:
        """Keep *operations* until `commit_prepared` or `rollback_prepared`, across restarts.

        Raises AtomicBatchTooLargeError.
        """

    def commit_prepared(
        self, transaction: XATransactionId, operations: Sequence[Operation], receipt: Receipt | None
    ) -> None:
        """Apply the operations of a prepared transaction."""

    def rollback_prepared(
        self, transaction: XATransactionId, operations: Sequence[Operation], receipt: Receipt | None
    ) -> None:
        """Discard the operations of a prepared transaction."""

    def subscribe(self, subscription: Subscription, receipt: Receipt | None) -> None:
        """Keep a durable subscription; one of its topic with the same key is replaced."""

    def unsubscribe(self, subscription: Subscription, receipt: Receipt | None) -> None:
        """Forget a durable subscription. The core has let go of its pending references."""

    def release(self, reference: Reference) -> None:
        """Count one holder less without a record (its subscription is gone)."""

    def release_run(self, run: Run) -> None:
        """Do what `release` does for messages of a queue to which nobody has references."""

    def remember_queue(self, destination: Destination) -> None:
        """Note that a queue exists, empty or not, until it is removed; never forces a sync."""

    def remove_destination(self, destination: Destination, receipt: Receipt | None) -> None:
        """Forget a destination with all its messages; the core has released each of them."""

    def trace(self, text: str) -> None:
        """Write a line of the flight recorder with the next batch; a single one forces no sync.

        Where nothing else is written, lines are, once they take a mebibyte of memory.
        """

    def begin_term(self, epoch: int, now: int, broker: Identity, replica: str) -> None:
        """Note who is master from *now* (ms), and with which number, for whoever reads it later.

        Numbers only grow: *epoch* is higher than that of `Recovered`.
        """

    def load(self, references: Sequence[Reference], next_sequence: int) -> None:
        """Read bodies back: sets `message` of every reference that is only on disk; blocks.

        Each gets its own brokerSequenceId, counted up from *next_sequence* in list order (one
        number per element of *references*, used or not). Raises StoreError naming file and
        offset.
        """

    def spool(self, references: Sequence[Reference]) -> int:
        """Put bodies of VOLATILE messages into temporary files, in order; returns how many.

        Fewer than all means that the temporary storage is full. Each of them gets a `location`:
        its body may leave the memory, and `load` brings it back. They end with the process.
        Raises StoreError.
        """

    def unspool(self, references: Sequence[Reference]) -> None:
        """Give back the room of messages in temporary files that have ended."""

    def is_spool_full(self) -> bool:
        """Tell whether there is no room in the temporary storage."""

    def flush(self) -> Sequence[Receipt]:
        """Begin to write what waits, if no write is under way; returns what is durable already.

        Raises StoreError when the journal can no longer be trusted (then the process must end).
        """

    def waiting(self) -> int:
        """Return how many operations wait for the next write; never more work than a len()."""

    def urgent(self) -> int:
        """Return how many of them somebody waits for; they only grow until a write takes them."""

    def is_behind(self) -> bool:
        """Tell whether some of what waits is to be written before long."""

    def completed(self) -> Sequence[Receipt]:
        """Return the receipts of the write that has become durable, and begin the next one.

        Called when `fileno` is readable. Raises StoreError like `flush`.
        """

    def fileno(self) -> int | None:
        """Return the descriptor that turns readable when a write is durable, if there is one."""

    def check_full(self) -> None:
        """Raise StoreFullError while there is no room; retries on later flushes by itself."""

    def maintain(self, now: int) -> None:
        """Do what is due: checks of the lock, clean-up of files.

        Called about once a second; *now* is in ms since the epoch. Which checks are due is told
        by a clock that nobody sets, not by *now*. Raises StoreError when the lock is lost.
        """

    def usage(self) -> StoreUsage:
        """Return what the store occupies now."""

    def files(self) -> Sequence[StoreFile]:
        """Return the files with messages, oldest first."""

    def file_of(self, reference: Reference) -> int:
        """Return the number of the file that a message is in, 0 if it is in none."""
