"""A consumer: its window of unacknowledged messages, its selector, its pulls.

The window rule is openwire.md section 7.3: a consumer may hold `prefetch` messages, plus those
it reported as delivered; with a prefetch of 0 it gets one message for each pull.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

from lockkeeper.broker.access.rights import Rights
from lockkeeper.broker.errors import AcknowledgeError
from lockkeeper.broker.message_properties import property_lookup
from lockkeeper.broker.outputs import EndOfMessages, Outbox
from lockkeeper.broker.regions.statistics import Statistics
from lockkeeper.broker.selectors import Lookup, Selector
from lockkeeper.broker.subscriptions.places import Places
from lockkeeper.broker.subscriptions.request import ConsumeRequest
from lockkeeper.broker.timers import Timer
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt, Reference, Subscription

PREFETCH_MAX: Final = 1_000_000


class Peer(Outbox, Protocol):
    """A connection, as its consumers know it; see `Connection`."""

    address: str
    burst_bytes: int
    client_id: str
    congested: bool
    consumers: "dict[object, Consumer]"
    identifier: str
    rights: Rights | None
    user_name: str

    @property
    def transactions(self) -> "Mapping[TransactionId, Undecided]":
        """The transactions of the connection that are not over."""


class Undecided(Protocol):
    """A transaction, as known by what was consumed in it; see `Transaction`."""

    consumed: "list[ConsumedRun]"


class Deliveries(Protocol):
    """The numbers of deliveries, and who asked for more in this tick; see `Context`."""

    delivery: int
    roused: "set[Consumer]"


class Pending(Protocol):
    """Messages that wait, as consumers know them; see `Backlog`."""

    destination: Destination
    is_active: bool
    statistics: Statistics
    subscription: Subscription | None

    @property
    def context(self) -> Deliveries:
        """The services of the core."""

    def depth(self) -> int:
        """Return how many messages wait."""

    def activate(self) -> None:
        """Have `dispatch` called at the end of this tick."""

    def dispatch(self) -> None:
        """Send what can be sent."""

    def detach(self, consumer: "Consumer") -> None:
        """End a consumer's part; what it held is given back separately."""

    def consumed(
        self, consumer: "Consumer", references: Sequence[Reference], receipt: Receipt | None
    ) -> None:
        """Forget acknowledged messages; the receipt is for when that is durable."""

    def kept(self, references: Sequence[Reference]) -> list[Reference]:
        """Return those of *references* that the store knows, so that it must learn of their end."""

    def forget_applied(self, references: Sequence[Reference], at: int) -> None:
        """Let go of messages whose removal a committed transaction has stored."""

    def expire_held(self, reference: Reference) -> None:
        """End a message of a consumer whose time was over when it came there."""

    def poison_held(self, reference: Reference, cause: str) -> None:
        """End a message that its consumer could not process."""

    def count_failures(self, references: Sequence[Reference]) -> None:
        """Count a delivery that failed, for each of these messages."""

    def give_back(self, references: Sequence[Reference]) -> None:
        """Let messages wait again whose consumer has gone."""

    def put_back(self, taken: Iterable[Reference]) -> None:
        """Let those wait again that nobody has and that have not ended."""

    def abandon(self, references: Iterable[Reference]) -> None:
        """Let go of messages that end with what they waited in."""


class ConsumedRun(NamedTuple):
    """Messages acknowledged one after the other; a recovery brings no consumer."""

    backlog: Pending
    references: list[Reference]
    consumer: "Consumer | None"


class Consumer:
    """One consumer of a connection.

    `dispatched` holds what was sent and is not acknowledged, by brokerSequenceId, in dispatch
    order. `tag` belongs to the protocol, which keeps there what it needs at each delivery.
    """

    __slots__ = (
        "_own",
        "_places",
        "backlogs",
        "browser",
        "closed",
        "connection",
        "delivered",
        "destination",
        "dispatched",
        "extension",
        "identifier",
        "no_local",
        "prefetch",
        "pull_timer",
        "pulls",
        "request",
        "selector",
        "subscription_name",
        "tag",
    )

    def __init__(
        self,
        connection: Peer,
        request: ConsumeRequest,
        selector: Selector | None = None,
    ) -> None:
        self.connection = connection
        self.request = request
        self.identifier = request.identifier
        self.destination = request.destination
        self.prefetch = min(max(request.prefetch, 0), PREFETCH_MAX)
        self.selector = selector
        self.no_local = request.no_local
        self._own = own_prefix(connection) if request.no_local else None
        self.browser = request.browser
        self.subscription_name = request.subscription_name
        self.tag = request.tag
        self.extension = 0
        self.pulls = 0
        self.pull_timer: Timer | None = None
        self.dispatched: dict[int, Reference] = {}
        self.backlogs: list[Pending] = []
        self._places: Places[Pending] | None = None
        self.closed = False
        self.delivered = 0

    def credit(self) -> int:
        """Return how many more messages the consumer may be sent now."""
        if self.connection.congested:
            return 0
        if self.prefetch == 0:
            return self.pulls
        return self.prefetch + self.extension - len(self.dispatched)

    def is_selective(self) -> bool:
        """Tell whether the consumer wants only some of the messages."""
        return self.selector is not None or self.no_local

    def is_slow(self) -> bool:
        """Tell whether messages wait for the consumer, and its window is full."""
        if not self.prefetch or self.credit() > 0:
            return False
        return any(backlog.depth() for backlog in self.backlogs)

    def accepts(self, message: Message, lookup: Lookup | None = None) -> bool:
        """Tell whether the consumer wants *message*; *lookup* is `property_lookup` of it."""
        return wants(message, self.selector, self._own, lookup)

    def deliver(
        self, references: Sequence[Reference], shown: Sequence[Reference] | None = None
    ) -> None:
        """Send messages, which are in memory; the caller has checked the credit.

        *shown* are what the client gets to see where that differs from what the broker keeps.
        """
        dispatched, context = self.dispatched, self.backlogs[0].context
        delivery = context.delivery
        for reference in references:
            message = reference.message
            assert message is not None
            dispatched[message.sequence] = reference
            reference.held += 1
            delivery += 1
            reference.delivery = delivery
        context.delivery = delivery
        count = len(references)
        self.delivered += count
        if self.pulls:
            self.pulls -= count
        connection = self.connection
        if not connection.outbox:
            connection.dirty.append(connection)
        connection.outbox.append((self.tag, references if shown is None else shown))

    def end_pull(self) -> None:
        """Tell the consumer that its pull waited long enough, if it still waits."""
        self.pull_timer = None
        if self.pulls and not self.closed:
            self.end()

    def end(self) -> None:
        """Tell the consumer that there is nothing (more) for it."""
        self.pulls = 0
        self.connection.put(EndOfMessages(self.tag))

    def take_dispatched(self, last: int, count: int) -> list[Reference]:
        """Remove and return the *count* dispatched messages up to and with sequence *last*.

        A count of 0 means from the first one dispatched. Raises AcknowledgeError, with nothing
        removed, when the range is not what was dispatched (openwire.md section 7.5).
        """
        dispatched = self.dispatched
        if count == 1:
            single = dispatched.pop(last, None)
            if single is None:
                raise AcknowledgeError(self._unmatched(last, count))
            return [single]
        sequences: list[int] = []
        for sequence in dispatched:
            sequences.append(sequence)
            if sequence == last:
                break
        else:
            raise AcknowledgeError(self._unmatched(last, count))
        if count > len(sequences):
            raise AcknowledgeError(self._unmatched(last, count))
        return [dispatched.pop(sequence) for sequence in sequences[-count:]]

    def backlog_of(self, reference: Reference) -> Pending:
        """Return what a dispatched message came from."""
        backlogs = self.backlogs
        if len(backlogs) == 1:
            return backlogs[0]
        return self._sorted().find(backlogs, reference.loaded.destination)

    def _sorted(self) -> Places[Pending]:
        if self._places is None:
            self._places = Places()
        return self._places

    def by_backlog(self, references: Sequence[Reference]) -> list[tuple[Pending, list[Reference]]]:
        """Return dispatched messages, in order, with what they came from, several at a time.

        All that the consumer has messages from may send more; what these came from goes last.
        """
        found = [(backlog, list(run)) for backlog, run in groupby(references, self.backlog_of)]
        places = self._sorted()
        for backlog, _ in found:
            places.serve(backlog)
        self.reactivate()
        return found

    def consumed(self, references: Sequence[Reference], receipt: Receipt | None) -> None:
        """Forget messages that it acknowledged, each where it came from."""
        backlogs = self.backlogs
        if len(backlogs) == 1:
            backlogs[0].consumed(self, references, receipt)
            return
        for backlog, own in self.by_backlog(references):
            backlog.consumed(self, own, receipt if own[-1] is references[-1] else None)

    def reactivate(self) -> None:
        """Have sent what there is room for now; of several destinations, once a turn."""
        backlogs = self.backlogs
        if len(backlogs) > 1:
            roused = backlogs[0].context.roused
            if self in roused:
                return
            roused.add(self)
            backlogs = self.backlogs = self._sorted().turned(backlogs)
        for backlog in backlogs:
            backlog.activate()

    def take_back(self, references: list[Reference]) -> None:
        """Hold messages again that `take` gave away, in the order in which they were sent."""
        held = [*references, *self.dispatched.values()]
        if self.destination.is_queue:
            # A topic's messages may have been sent to others since: then that is not ours.
            held.sort(key=attrgetter("delivery"))
        self.dispatched = {reference.loaded.sequence: reference for reference in held}

    def _unmatched(self, last: int, count: int) -> str:
        return (
            f"Unmatched acknowledge: {count} message(s) up to broker sequence {last}, but the "
            f"consumer {self.identifier} has {len(self.dispatched)} dispatched"
        )

    def held_of(self, backlog: Pending) -> list[Reference]:
        """Return those of the dispatched messages that came from *backlog*."""
        if len(self.backlogs) == 1:
            return list(self.dispatched.values())
        return self._sorted().held(self.dispatched, self.delivered, backlog.destination)

    def extend(self, count: int) -> None:
        """Widen the window by *count* messages that the application has taken."""
        self.extension = min(self.extension + count, len(self.dispatched))

    def shrink(self, count: int) -> None:
        """Take back what `extend` gave for *count* messages now acknowledged."""
        if self.extension:
            self.extension = max(0, self.extension - count)


def own_prefix(connection: Peer) -> bytes:
    """Return what the id of every message begins with that *connection* sends."""
    return connection.identifier.encode() + b":"


def wants(
    message: Message, selector: Selector | None, own: bytes | None, lookup: Lookup | None = None
) -> bool:
    """Tell whether *message* fits *selector*, and its id does not begin with *own*.

    *lookup* is `property_lookup` of the message, if the caller has it already.
    """
    if own is not None and message.identifier.startswith(own):
        return False
    if selector is None:
        return True
    return selector.matches(property_lookup(message) if lookup is None else lookup)
