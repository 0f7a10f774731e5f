"""Outputs of the core for a connection: values that its protocol turns into bytes."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.streams.outputs import StreamOutput
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import ProducerId, TransactionId
from lockkeeper.store.base import Reference

# The tag of a consumer, which its protocol gave it, and messages for it, all of them in memory. A
# plain tuple, because most outputs are one; several consumers may share the sequence.
Delivery: TypeAlias = tuple[object, Sequence[Reference]]


class EndOfMessages(NamedTuple):
    """Nothing (more) for a consumer: the end of a browse, or of the time a pull may wait."""

    tag: Any  # mypyc takes no `object` here


class ConsumerClosed(NamedTuple):
    """The broker ended this consumer (its destination is gone)."""

    tag: Any


class WindowChanged(NamedTuple):
    """The broker chose another prefetch than the client asked for."""

    tag: Any
    destination: Destination
    prefetch: int


class Introduction(NamedTuple):
    """Addresses of the brokers a client may use: comma lists, empty for this one alone.

    With `rebalances` it is to move to the first of them.
    """

    connected_brokers: str
    reconnect_to: str
    rebalances: bool = False


class Disconnect(NamedTuple):
    """The broker ends the connection; the reason is for the peer."""

    error: BrokerError


class Outbox(Protocol):
    """A connection, as known by what is sent through it."""

    dirty: "list[Any]"
    outbox: "list[Output]"

    def put(self, output: "Output") -> None:
        """Add one output to the outbox."""


class Reply:
    """The answer to a request, given when what it asked for is durable."""

    __slots__ = ("connection", "correlation")

    def __init__(self, connection: Outbox, correlation: int) -> None:
        self.connection = connection
        self.correlation = correlation

    def settle(self) -> None:
        """Send the answer."""
        self.connection.put(self)


class Failure:
    """The answer to a request that was refused."""

    __slots__ = ("correlation", "error")

    def __init__(self, correlation: int, error: BrokerError) -> None:
        self.correlation = correlation
        self.error = error


class Prepared(NamedTuple):
    """The answer to the preparation of a transaction: whether there is anything to commit."""

    correlation: int
    read_only: bool


class InDoubt(NamedTuple):
    """The answer to a recovery request: the transactions that are prepared."""

    correlation: int
    transactions: tuple[TransactionId, ...]


class ProducerCredit:
    """*size* bytes of a producer's window are free again."""

    __slots__ = ("connection", "producer_id", "size")

    def __init__(self, connection: Outbox, producer_id: ProducerId, size: int) -> None:
        self.connection = connection
        self.producer_id = producer_id
        self.size = size

    def settle(self) -> None:
        """Send the credit."""
        self.connection.put(self)


# Everything but messages: each becomes one command.
Notice: TypeAlias = (
    EndOfMessages
    | ConsumerClosed
    | WindowChanged
    | Introduction
    | Disconnect
    | Reply
    | Failure
    | Prepared
    | InDoubt
    | ProducerCredit
)


class ForPeer(NamedTuple):
    """Something that the session of another connection has to say to this one's peer.

    Both speak the same protocol, which knows what the words are.
    """

    words: Any


Output: TypeAlias = Delivery | Notice | StreamOutput | ForPeer
