"""Connections as the core sees them: who is there, and what is to be told to them."""

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from lockkeeper.broker.access.rights import Rights
from lockkeeper.broker.advisories.names import is_advisory
from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.outputs import Disconnect, Failure, Output, Reply
from lockkeeper.broker.producer_audit import ProducerAudit
from lockkeeper.broker.routing.rule import Region
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.transactions import Transaction
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import MessageId, TransactionId
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt

# How much one connection may have waiting for memory before the broker stops reading from it.
STALLED_BYTES_MAX: Final = 1 << 20
BURST_BYTES_MAX: Final = 1 << 20


class Sender(Protocol):
    """The transport of a connection."""

    def flush(self) -> None:
        """Send what the session of the connection has to say."""

    def abort(self) -> None:
        """End the connection at once."""

    def hand_over(self, session: Any) -> None:
        """Go on with another session of the protocol for the same connection."""

    def ended(self) -> None:
        """Hear that the connection has ended in words; its socket is to end soon."""


class Audit(Protocol):
    """Knows which messages were taken already; see `ProducerAudit`."""

    def record(self, message: Message) -> None:
        """Note a message that was taken."""

    def is_duplicate(self, message: Message) -> bool:
        """Tell whether a message has come before."""

    def stored_id(self, message: Message, sequence: int) -> MessageId | None:
        """Return the id of what is stored elsewhere than a message goes to, None for its own."""


def _no_figures() -> tuple[int, int]:
    return 0, 0


Refuse: TypeAlias = Callable[[Message, Receipt | None, BrokerError], None]
"""Deals with a message that is refused."""


class NetworkPeer:
    """Another broker, by its id and name; `connector` is the name of the bridge to it.

    `paths` are those of its temporary destinations: the ids of the brokers from the one that a
    destination was made at to this peer. With `is_forwarded_to` messages go to it, whose
    confirmations are waited for: it has to be read, and what it may send is limited by itself. One
    that `forwards` sends messages here; one that `has_dialled` is where the bridge began. `figures`
    tells how many messages it has confirmed, and how many it has brought that were new; `refuse`
    is for those of them that waited for room in vain.
    """

    __slots__ = (
        "broker_id",
        "broker_name",
        "broker_url",
        "connector",
        "figures",
        "forwards",
        "has_dialled",
        "is_forwarded_to",
        "paths",
        "refuse",
    )

    def __init__(
        self,
        broker_id: str,
        broker_name: str,
        broker_url: str = "",
        has_dialled: bool = False,
        connector: str = "",
        forwards: bool = False,
    ) -> None:
        self.broker_id = broker_id
        self.broker_name = broker_name
        self.broker_url = broker_url
        self.has_dialled = has_dialled
        self.connector = connector
        self.forwards = forwards
        self.figures: Callable[[], tuple[int, int]] = _no_figures
        self.refuse: Refuse | None = None
        self.is_forwarded_to = False
        self.paths: dict[Destination, tuple[str, ...]] = {}


class Connection:
    """One peer. `outbox` is emptied by its protocol whenever the core lists it as dirty.

    `congested` is set by the transport while the peer does not take what it was sent, and
    `burst_bytes` to what a topic may send it at once, as it may be one of many;
    `stalled_bytes` counts messages that wait for room, and `blocked_sends` is how many do, or did
    when the connection ended. A `fault_tolerant` client sends again what was not answered once it
    is `reconnected`; the `audit` knows what came already. Another broker is a `network` peer.
    Without `rights` it may do everything. `is_ended` asks the protocol to part with the peer after
    what the outbox holds. `sender` is set by the transport.
    The last destination and its route are kept, because the next message is for the same as a
    rule; so is the last transaction. `producers` have no destination when each of their messages
    names its own.
    """

    __slots__ = (
        "address",
        "audit",
        "blocked_sends",
        "burst_bytes",
        "client_id",
        "congested",
        "consumers",
        "dirty",
        "fault_tolerant",
        "identifier",
        "is_ended",
        "last_destination",
        "last_route",
        "last_transaction",
        "last_transaction_id",
        "network",
        "outbox",
        "producers",
        "reconnected",
        "rights",
        "sender",
        "stalled_bytes",
        "temporary",
        "transactions",
        "user_name",
    )

    def __init__(
        self, dirty: "list[Connection]", address: str = "", audit: "Audit | None" = None
    ) -> None:
        self.dirty = dirty
        self.address = address
        self.audit: Audit = ProducerAudit() if audit is None else audit
        self.network: NetworkPeer | None = None
        self.identifier = ""
        self.client_id = ""
        self.user_name = ""
        self.rights: Rights | None = None
        self.fault_tolerant = False
        self.reconnected = False
        self.outbox: list[Output] = []
        self.congested = False
        self.burst_bytes = BURST_BYTES_MAX
        self.is_ended = False
        self.stalled_bytes = 0
        self.blocked_sends = 0
        self.consumers: dict[object, Consumer] = {}
        self.producers: dict[object, Destination | None] = {}
        self.transactions: dict[TransactionId, Transaction] = {}
        self.sender: Sender | None = None
        self.last_destination: Destination | None = None
        self.last_route: Region | None = None
        self.last_transaction_id: TransactionId | None = None
        self.last_transaction: Transaction | None = None
        self.temporary: set[Destination] = set()

    @property
    def stalled(self) -> bool:
        """Tell whether the broker should stop reading from the peer for now."""
        if self.stalled_bytes <= STALLED_BYTES_MAX:
            return False
        return self.network is None or self.is_one_way

    @property
    def is_one_way(self) -> bool:
        """Tell whether the peer is another broker that only sends, and can wait for that."""
        return self.network is not None and not self.network.is_forwarded_to

    @property
    def must_be_read(self) -> bool:
        """Tell whether there may be more to read than messages for one destination.

        Every Java client listens to advisories; nothing depends on its acknowledging them. A bridge
        has one producer for all destinations.
        """
        if self.network is not None or self.transactions or len(self.producers) > 1:
            return True
        return not all(is_advisory(each.destination) for each in self.consumers.values())

    def refuse(self, receipt: Receipt | None, error: BrokerError) -> None:
        """Answer with an error: to the request, or to the connection when none waits.

        A producer with a window gets its room back: nobody else would give it.
        """
        if isinstance(receipt, Reply):
            self.put(Failure(receipt.correlation, error))
            return
        self.put(Disconnect(error))
        if receipt is not None:
            receipt.settle()

    def refuse_message(self, message: Message, receipt: Receipt | None, error: BrokerError) -> None:
        """Refuse a message that waited for room; what comes of that is a bridge's own matter."""
        if self.network is not None and self.network.refuse is not None:
            self.network.refuse(message, receipt, error)
        else:
            self.refuse(receipt, error)

    def part(self) -> None:
        """Tell the transport that the peer has ended the connection in words."""
        if self.sender is not None:
            self.sender.ended()

    def end_transaction(self, identifier: TransactionId) -> None:
        """Forget a transaction that has its outcome, or gets it elsewhere now."""
        del self.transactions[identifier]
        self.last_transaction_id = self.last_transaction = None

    def announce(self) -> None:
        """Have the transport look at the session at the end of this turn."""
        self.dirty.append(self)

    def put(self, output: Output) -> None:
        """Add one output to the outbox."""
        if not self.outbox:
            self.dirty.append(self)
        self.outbox.append(output)
