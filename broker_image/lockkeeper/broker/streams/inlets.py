"""Inlets: what JMS's producers send to a topic goes into a stream, too.

An inlet is a partition, seen as a destination that messages are forwarded to. So the stream's
message is in the batch of the topic's, and in that of a transaction's commit; an offset is given
as the batch is handed to the store, hence in its order, and nothing is given for a rollback.
"""

import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import InvalidDestinationError, TransactionError
from lockkeeper.broker.routing.names import check_name
from lockkeeper.broker.routing.rule import Forward, Hop, Label
from lockkeeper.broker.streams.checking import PROPERTIES_CHARACTERS_MAX
from lockkeeper.broker.streams.drafts import KEYS, TAGS, UNIQUE_KEY, Draft
from lockkeeper.broker.streams.originals import SHARDING_KEY
from lockkeeper.broker.streams.partition import Partition, Pending
from lockkeeper.broker.streams.stream import Stream
from lockkeeper.message.destination import Destination, topic
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import XATransactionId
from lockkeeper.message.message import Message
from lockkeeper.message.rewrite import decoded, properties_of
from lockkeeper.message.segments import SegmentName
from lockkeeper.message.text import decode_text
from lockkeeper.store.base import Receipt, Reference

if TYPE_CHECKING:
    from lockkeeper.broker.routing.rule import Region, Rule

XA_REFUSED: Final = -6
SESSION_PARTS: Final = 2
"""Parts of a JMSMessageID behind its session: the producer's number, and the message's."""


RouteAnew: TypeAlias = "Callable[[Rule, Sequence[Destination]], None]"
"""Told that a rule applies to other topics than before."""


def check_topics(names: Sequence[str]) -> None:
    """Raise BrokerError for topics that cannot go into a stream."""
    for name in names:
        check_name(topic(name))
    if len(set(names)) < len(names):
        raise InvalidDestinationError(f"fromTopics names a topic twice: {', '.join(names)}")


class Inlet:
    """One partition as a destination of messages; `destination` is where they are stored.

    One that `is_ended` takes no more: what was sent to it in a transaction goes elsewhere alone.
    """

    def __init__(
        self, context: Context, partition: Partition, count: Callable[[int], None]
    ) -> None:
        self._context = context
        self._partition = partition
        self._count = count
        self._pending: dict[Reference, Pending] = {}
        name = SegmentName(partition.stream, partition.number, partition.next)
        self.destination: Destination = name.destination
        self.policy = context.policies.find(self.destination)
        self.is_gone = self.is_ended = False
        self.rules: tuple[Rule, ...] = ()

    def accept(self, message: Message, receipt: Receipt | None) -> None:
        """See `Route.accept`."""
        reference = Reference(message, len(message.body))
        if self.stores(reference):
            self._context.store.add(self.destination, reference, receipt)
        elif receipt is not None:
            receipt.settle()
        self.admit(reference)

    def accept_run(self, messages: Sequence[Message], receipts: Sequence[Receipt | None]) -> None:
        """See `Route.accept_run`."""
        for message, receipt in zip(messages, receipts, strict=True):
            self.accept(message, receipt)

    def stores(self, reference: Reference) -> bool:
        """Make a message one of the stream, which stores whatever comes."""
        return bool(self.stored_later([reference]))

    def stored_later(self, references: Sequence[Reference]) -> Sequence[Reference]:
        """See `Route.stored_later`."""
        if self.is_ended or not references:
            return ()
        self._prepare(list(references))
        return references

    def stores_never(self, references: Sequence[Reference]) -> None:
        """Leave a gap where messages were to be."""
        for reference in references:
            pending = self._pending.pop(reference, None)
            if pending is not None:
                self._weigh(-pending.bytes)

    def _weigh(self, size: int) -> None:
        """Count bytes that wait for the disk: producers wait for room in memory."""
        self._count(size)
        self._context.memory.used += size

    def _prepare(self, references: list[Reference]) -> None:
        """Give messages their offsets, and the form in which the stream keeps them."""
        drafts = [draft_of(reference.loaded) for reference in references]
        first = self._context.next_sequence(len(drafts))
        pending = self._partition.prepare(drafts, first, self._settled)
        for reference, made in zip(references, pending.references, strict=True):
            reference.message, reference.size = made.message, made.size
        pending.references = references
        self._weigh(pending.bytes)
        self.destination = pending.segment.destination
        self._pending[references[-1]] = pending

    def _settled(self, pending: Pending, _: tuple[int, ...]) -> None:
        self._weigh(-pending.bytes)

    def admit(self, reference: Reference) -> None:
        """Let readers see a message once it is durable."""
        pending = self._pending.pop(reference, None)
        if pending is not None:
            self._context.settle_behind(pending)

    def admit_run(self, references: Sequence[Reference]) -> None:
        """Let readers see messages whose commit is durable."""
        for reference in references:
            pending = self._pending.pop(reference, None)
            if pending is not None:
                self._context.containment.call("receipt", pending.settle)

    def memory_full(self) -> bool:
        """Return False: messages are on the disk."""
        return False

    def memory_used(self) -> int:
        """Return 0: see `memory_full`."""
        return 0

    def is_wanted(self, message: Message) -> bool:
        """Return True: a stream wants whatever comes."""
        return True

    def keeps_messages(self) -> bool:
        """Return True: see `Region.keeps_messages`."""
        return True

    def keeps_on_disk(self) -> bool:
        """Return True: see `Region.keeps_on_disk`."""
        return True

    def is_read(self) -> bool:
        """Return False: nobody takes messages as they come."""
        return False


class InletRule:
    """Forwards what is sent to the topics that streams name; *route_anew* is told of changes.

    The messages of a JMSXGroupID, else those of a session, go into one partition: their order is
    what JMS promises.
    """

    def __init__(
        self, context: Context, count: Callable[[int], None], route_anew: RouteAnew
    ) -> None:
        self._context = context
        self._count = count
        self._route_anew = route_anew
        self._by_topic: dict[Destination, dict[str, list[Inlet]]] = {}
        self._inlets: dict[str, list[Inlet]] = {}
        self._topics: dict[str, tuple[str, ...]] = {}

    def adopt(self, stream: Stream) -> None:
        """Take the topics in that a stream's settings name, with its partitions of now."""
        self._set(stream.name, stream.settings.from_topics, stream.partitions)

    def forget(self, name: str) -> None:
        """Let go of a stream that is deleted."""
        self._set(name, (), ())

    def _set(self, name: str, topics: tuple[str, ...], partitions: Sequence[Partition]) -> None:
        before = self._topics.pop(name, ())
        for each in before:
            streams = self._by_topic[topic(each)]
            del streams[name]
            if not streams:
                del self._by_topic[topic(each)]
        inlets = self._inlets.pop(name, [])
        if not topics:
            for inlet in inlets:
                inlet.is_ended = True
        else:
            more = partitions[len(inlets) :]
            inlets += [Inlet(self._context, each, self._count) for each in more]
            self._topics[name], self._inlets[name] = topics, inlets
        for each in topics:
            self._by_topic.setdefault(topic(each), {})[name] = inlets
        if topics != before:
            self._route_anew(self, [topic(each) for each in {*before, *topics}])

    def applies_to(self, destination: Destination) -> bool:
        """See `Rule.applies_to`."""
        return destination in self._by_topic

    def forward(self, region: "Region", message: Message, label: Label) -> Forward:
        """See `Rule.forward`: the topic gets the message, too.

        Raises TransactionError for a distributed transaction, whose second phase may be long
        after: offsets are given in the order of the journal.
        """
        streams = self._by_topic.get(region.destination, {})
        if streams and isinstance(message.transaction_id, XATransactionId):
            raise TransactionError(
                f"{region.destination} goes into the stream {next(iter(streams))}, which takes no "
                "part in XA transactions: send in a local one, or to another topic",
                XA_REFUSED,
            )
        hash_ = _hash_of(message)
        return Forward([Hop(each[hash_ % len(each)], label) for each in streams.values()], True)


def _hash_of(message: Message) -> int:
    """Return what chooses the partition of a message."""
    return zlib.crc32(message.group or message.identifier.rsplit(b":", SESSION_PARTS)[0])


def draft_of(message: Message) -> Draft:
    """Return a message of JMS as one for a stream; its bytes, where they cannot be read.

    Tag, keys, unique id and sharding key are its properties of these names, else JMSType,
    JMSCorrelationID, JMSMessageID and JMSXGroupID. None is longer than a message of streams allows.
    """
    identifier = decode_text(message.identifier)
    try:
        fields = decoded(message)
        own = properties_of(fields)
    except MalformedMessageError:
        return Draft(message.body, {UNIQUE_KEY: identifier})
    headers = {
        TAGS: fields.type,
        KEYS: fields.correlation_id,
        UNIQUE_KEY: identifier,
        SHARDING_KEY: fields.group_id,
    }
    found = {name: own.get(name, value) for name, value in headers.items()}
    texts = {name: str(value) for name, value in found.items() if value}
    short = {name: text for name, text in texts.items() if len(text) <= PROPERTIES_CHARACTERS_MAX}
    return Draft(b"", short, original=message)
