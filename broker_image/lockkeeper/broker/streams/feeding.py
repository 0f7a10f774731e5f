"""Feeds: a stream's messages go into queues, each once.

A feed is a consumer group of the broker's own. What it moves is one batch of the journal: the
queue's messages, and the group's offsets behind them. So after a crash both are there or neither,
and lag, reset and fail-over are those of any group.

One batch of a feed is written at a time, and a turn of the event loop moves a few: a long stream
holds nobody up. A feed whose queue has no room waits, its messages stay in the stream.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from lockkeeper.broker.chores import Chore
from lockkeeper.broker.context import LOOK_BYTES, Context
from lockkeeper.broker.errors import BrokerError, InvalidDestinationError
from lockkeeper.broker.flow.space import lack_of_room
from lockkeeper.broker.regions.arrival import Arrival
from lockkeeper.broker.routing.names import check_name, is_own
from lockkeeper.broker.routing.rule import QueueFollower, Region
from lockkeeper.broker.streams.filters import EVERYTHING
from lockkeeper.broker.streams.groups import Groups, Place
from lockkeeper.broker.streams.jms import as_message
from lockkeeper.broker.streams.names import check_group_name
from lockkeeper.broker.streams.partition import Partition
from lockkeeper.broker.streams.stream import Stream
from lockkeeper.message.destination import (
    ANY_CHILD,
    ANY_DESCENDANT,
    Destination,
    path_matches,
    queue,
)
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import LocalTransactionId
from lockkeeper.message.message import Message
from lockkeeper.store.base import Add, Reference

FEED_PREFIX: Final = "%QUEUE%"
"""What the name of a feed's group begins with; that of its queue follows."""
MESSAGES_AT_ONCE: Final = 1_024
BYTES_AT_ONCE: Final = 512 << 10
"""So much of a stream is one batch of a feed, or a single larger message."""
TURN_BYTES: Final = 1 << 20
"""So much all feeds move in a turn, or a batch more."""
RETRY_MS: Final = 100
"""After so long a feed looks again whether its queue has room."""
_PRODUCER: Final = "ID:lockkeeper-stream-feed"

Transactions = Callable[[], LocalTransactionId]


def check_queues(names: Sequence[str]) -> None:
    """Raise BrokerError for queues that no stream can feed.

    A wildcard stands for queues that somebody opens; not for any queue whatsoever.
    """
    for name in names:
        destination = queue(name)
        check_name(destination, may_be_wildcard=True)
        if not destination.is_pattern:
            check_group_name(FEED_PREFIX + name)
        elif destination.path[0] in (ANY_CHILD, ANY_DESCENDANT):
            raise InvalidDestinationError(
                f"toQueues: {name} stands for queues of all kinds; begin with a level that they "
                "share, as in Consumer.*.orders"
            )
    if len(set(names)) < len(names):
        raise InvalidDestinationError(f"toQueues names a queue twice: {', '.join(names)}")


class Feed:
    """The way of one stream's messages into one queue."""

    def __init__(
        self,
        context: Context,
        groups: Groups,
        stream: Stream,
        destination: Destination,
        next_transaction: Transactions,
        wake: "Callable[[Feed], None]",
    ) -> None:
        self._context = context
        self._groups = groups
        self._stream = stream
        self._destination = destination
        self._next_transaction = next_transaction
        self._wake = wake
        self._turn = 0
        self.is_writing = self.is_ended = self._is_waiting = False

    @property
    def group(self) -> str:
        """Name of the consumer group that holds the offsets."""
        return FEED_PREFIX + self._destination.name

    def move(self) -> int:
        """Move a batch if there is one, and room for it; returns how many bytes that was."""
        if self.is_writing or self.is_ended or not self._has_more():
            return 0
        route = self._context.find_route(self._destination)
        if lack_of_room(self._context, route, is_persistent=True) is not None:
            self.wait()
            return 0
        offsets, messages, size = self._next_batch()
        if not offsets:
            return size
        references = [Reference(message, len(message.body)) for message in messages]
        arrival = Arrival(self._context, route, references)
        stored = route.stored_later(references)
        added = [Add(route.destination, stored)] if stored else []
        identifier, receipt = self._next_transaction(), Fed(self, arrival)
        self._groups.commit_with(identifier, self.group, offsets, added, receipt)
        arrival.begin()
        self.is_writing = True
        return size

    def wait(self) -> None:
        """Look again a little later."""
        if not self._is_waiting:
            self._is_waiting = True
            self._context.timers.call_at(self._context.steady + RETRY_MS, self._look_again)

    def _look_again(self) -> None:
        self._is_waiting = False
        self._wake(self)

    def done(self) -> None:
        """Go on: what was moved is durable."""
        self.is_writing = False
        self._wake(self)

    def _next_offset(self, partition: Partition) -> int:
        """Return the offset of the first message of a partition that is still to be moved."""
        group = self._groups.find(self.group)
        place = partition.stream, partition.number
        known = 0 if group is None else group.offsets.get(place, 0)
        return max(known, partition.minimum)

    def _has_more(self) -> bool:
        return any(self._next_offset(each) < each.maximum for each in self._stream.partitions)

    def _next_batch(self) -> tuple[dict[Place, int], list[Message], int]:
        """Return new offsets, the messages up to there, and the bytes that were read.

        The partitions have their turns.
        """
        partitions = self._stream.partitions
        offsets: dict[Place, int] = {}
        messages: list[Message] = []
        size = 0
        for at in range(len(partitions)):
            partition = partitions[(self._turn + at) % len(partitions)]
            place = partition.stream, partition.number
            offset = self._next_offset(partition)
            # Small messages take their time, too.
            count = min(MESSAGES_AT_ONCE - len(messages), (BYTES_AT_ONCE - size) // LOOK_BYTES)
            if count <= 0:
                break
            if offset >= partition.maximum:
                continue
            scan = partition.scan(offset, count, BYTES_AT_ONCE - size, EVERYTHING)
            offsets[place] = scan.next_offset
            for record in scan.records:
                size += LOOK_BYTES + record.size
                try:
                    messages.append(as_message(self._context, record, *place, self._destination))
                except MalformedMessageError as error:
                    self._context.containment.note_error("message", self._destination, error)
        self._turn += 1
        return offsets, messages, size


class Fed:
    """The receipt of a batch: its messages become visible."""

    def __init__(self, feed: Feed, arrival: Arrival) -> None:
        self._feed = feed
        self._arrival = arrival

    def settle(self) -> None:
        """Show the messages to consumers, once, and go on with the next ones."""
        self._arrival.settle()
        self._feed.done()


class Feeds:
    """All feeds of a broker. A stream without one costs a look into a dictionary.

    A stream that names wildcards feeds the queues that are there, as they come and go.
    """

    def __init__(
        self, context: Context, groups: Groups, follow: Callable[[QueueFollower], None]
    ) -> None:
        self._context = context
        self._groups = groups
        self._follow = follow
        self._is_following = False
        self._queues: dict[Destination, None] = {}
        self._wildcards: dict[str, tuple[Stream, list[Destination]]] = {}
        self._by_stream: dict[str, dict[Destination, Feed]] = {}
        self._ready: dict[Feed, None] = {}
        self._moving = Chore(context, self._move_some, TURN_BYTES)
        self._is_called = False
        self._count = 0
        groups.streams_fed_by = self._streams_fed_by

    def adopt(self, stream: Stream) -> None:
        """Feed the queues that a stream's settings name, and no others."""
        named = [queue(name) for name in stream.settings.to_queues]
        wildcards = [each for each in named if each.is_pattern]
        self._wildcards.pop(stream.name, None)
        if wildcards:
            self._follow_queues()
            self._wildcards[stream.name] = stream, wildcards
        matching = [each for each in self._queues if _stands_for_any(wildcards, each)]
        wanted = dict.fromkeys([*(each for each in named if not each.is_pattern), *matching])
        known = self._by_stream.pop(stream.name, {})
        for destination, feed in known.items():
            feed.is_ended = destination not in wanted
        for destination in wanted:
            self._begin_feed(stream, destination, known.get(destination))

    def _begin_feed(self, stream: Stream, destination: Destination, known: Feed | None) -> None:
        ways = self._next_transaction, self._wake
        feed = known or Feed(self._context, self._groups, stream, destination, *ways)
        self._by_stream.setdefault(stream.name, {})[destination] = feed
        self._wake(feed)

    def _follow_queues(self) -> None:
        """Hear of queues from now on: only a broker with a wildcard pays for that."""
        if not self._is_following:
            self._is_following = True
            self._follow(self)

    def opened(self, region: Region) -> None:
        """Feed a queue that somebody has opened, if a wildcard stands for it."""
        destination = region.destination
        if destination.is_temporary or destination.is_pattern or destination in self._queues:
            return
        if is_own(destination):
            return
        try:
            check_name(destination)
            check_group_name(FEED_PREFIX + destination.name)
        except BrokerError:
            # A queue of any name may be opened; nobody can be told here why it is not fed.
            return
        self._queues[destination] = None
        for stream, wildcards in list(self._wildcards.values()):
            is_fed = destination in self._by_stream.get(stream.name, {})
            if not is_fed and _stands_for_any(wildcards, destination):
                self._begin_feed(stream, destination, None)

    def closed(self, region: Region) -> None:
        """Let a queue be that is no more; its group knows where to go on."""
        destination = region.destination
        self._queues.pop(destination, None)
        for name, (stream, _) in self._wildcards.items():
            if destination.name not in stream.settings.to_queues:
                feed = self._by_stream.get(name, {}).pop(destination, None)
                if feed is not None:
                    feed.is_ended = True

    def forget(self, name: str) -> None:
        """End the feeds of a stream that is deleted."""
        self._wildcards.pop(name, None)
        for feed in self._by_stream.pop(name, {}).values():
            feed.is_ended = True

    def published(self, stream: str) -> None:
        """Hear that there is more of a stream."""
        for feed in self._by_stream.get(stream, {}).values():
            self._wake(feed)

    def _streams_fed_by(self, group: str) -> list[str]:
        """Return the names of the streams whose messages a group's feeds move."""
        if not group.startswith(FEED_PREFIX):
            return []
        fed = queue(group[len(FEED_PREFIX) :])
        return sorted(name for name, feeds in self._by_stream.items() if fed in feeds)

    def _next_transaction(self) -> LocalTransactionId:
        self._count += 1
        return LocalTransactionId(_PRODUCER, self._count)

    def _wake(self, feed: Feed) -> None:
        """Have a feed look for messages in one of the next turns."""
        self._ready[feed] = None
        if not self._is_called:
            self._is_called = True
            self._context.timers.call_at(self._context.steady, self._begin)

    def _begin(self) -> None:
        self._is_called = False
        self._moving.begin()

    def _move_some(self) -> Iterator[int]:
        """Move a batch of each feed in turn; one that fails tries again, and harms no other."""
        while self._ready:
            feed = next(iter(self._ready))
            del self._ready[feed]
            try:
                moved = feed.move()
            except Exception as error:
                self._context.containment.note_error("command", feed.group, error)
                feed.wait()
                moved = 0
            yield LOOK_BYTES + moved


def _stands_for_any(wildcards: list[Destination], destination: Destination) -> bool:
    return any(path_matches(each.path, destination.path) for each in wildcards)
