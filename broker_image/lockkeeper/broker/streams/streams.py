"""The streams of a broker: what protocols ask of them, and what they get back.

Commands raise BrokerError with nothing changed. Those with a `tag` are answered by exactly one
output of `outputs` with that tag, in the outbox of the connection: at once, or once what they did
is durable; the others return their answer.

Whether a user may do it is the session's question: a stream is a topic of its name there.

To a session:

* `append` a run of messages to a partition → `Appended`, once durable
* `read` from an offset, with a filter, waiting if nothing is there → `ReadResult`
* `queries`: offsets, by time and by key, single messages, lag: answered at once
* `groups`: heartbeats, members (→ notices `MembersChanged`), offsets, locks (→ `Locked`)
* `send_back` → `Done`
* `begin_transaction` → `HalfStored`; `end_transaction` → `Appended` or `Done`; questions about
  transactions come as `CheckTransaction`
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import (
    BrokerError,
    ResourceAllocationError,
)
from lockkeeper.broker.streams.bridges import Bridges, Routing
from lockkeeper.broker.streams.capacity import Capacity
from lockkeeper.broker.streams.checking import check_drafts
from lockkeeper.broker.streams.delays import DELAY_STREAM, Delays, Delivery, check_not_ours
from lockkeeper.broker.streams.delays import STATE as DELAYS_STATE
from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.errors import (
    IllegalMessageError,
    NoSuchStreamError,
    StreamsBusyError,
)
from lockkeeper.broker.streams.feeding import FEED_PREFIX
from lockkeeper.broker.streams.groups import Groups, Place
from lockkeeper.broker.streams.names import check_stream_name
from lockkeeper.broker.streams.outputs import Appended, Done
from lockkeeper.broker.streams.partition import Partition, Pending, RecentFrames
from lockkeeper.broker.streams.queries import Queries
from lockkeeper.broker.streams.retaining import Retaining
from lockkeeper.broker.streams.settings import Retention, StreamSettings, StreamsSettings
from lockkeeper.broker.streams.states import StateBook
from lockkeeper.broker.streams.stream import Stream, read_settings, settings_state
from lockkeeper.broker.streams.transactions import HALVES, Half, Halves, Outcome
from lockkeeper.broker.streams.waiting import Read, Reads
from lockkeeper.message.segments import GROUP_PREFIX, STATES, STREAM_PREFIX
from lockkeeper.store.base import Receipt, Recovered, StoreFullError
from lockkeeper.store.segment import Segment

RETRY_PREFIX, DEAD_LETTER_PREFIX = "%RETRY%", "%DLQ%"
ORIGINAL_STREAM: Final = "RETRY_TOPIC"
"""The property that tells which stream a message of a retry stream was first in."""
FIRST_RETRY_LEVEL: Final = 3
ANY_PARTITION: Final = -1
RECONSUMED_MAX: Final = (1 << 31) - 1


class Streams:
    """All streams and consumer groups of one broker; see the module for how to ask."""

    def __init__(self, context: Context, settings: StreamsSettings, routing: Routing) -> None:
        self._context = context
        self.settings = settings
        self._streams: dict[str, Stream] = {}
        self._recent = RecentFrames()
        self._book = StateBook(context)
        self._reads = Reads(context, settings.limits)
        self._pending_bytes = 0
        self._capacity = Capacity(settings.limits)
        self._retaining = Retaining(context, self._partitions)
        self.queries = Queries(context, self.get, settings.limits)
        self.groups = Groups(context, settings, self._book, self._is_there)
        self._bridges = Bridges(context, self.groups, self._count_pending, routing)
        self.halves = Halves(context, settings, self._route, self._count_pending)
        self.delays = Delays(context, settings.delay_levels, self._book, self._deliver)

    # Beginning

    def recover(self, recovered: Recovered) -> None:
        """Take back what the store holds of streams, so that nobody else takes it for queues."""
        states = self._book.recover([*recovered.queues.pop(STATES, ())])
        halves = [*recovered.queues.pop(HALVES, ())]
        segments: dict[tuple[str, int], list[Segment]] = {}
        for segment in sorted(recovered.segments, key=lambda each: each.base):
            place = segment.name.stream, segment.name.partition
            segments.setdefault(place, []).append(segment)
        for state in states:
            if state.name.startswith(STREAM_PREFIX):
                name = state.name[len(STREAM_PREFIX) :]
                self._make(name, read_settings(state.value), segments)
            elif state.name.startswith(GROUP_PREFIX):
                self.groups.recover(state.name[len(GROUP_PREFIX) :], state.value)
            elif state.name == DELAYS_STATE:
                self.delays.recover(state.value)
        for stream, number in sorted(segments.keys()):
            if stream not in self._streams or number >= len(self._streams[stream].partitions):
                settings = self.settings.defaults
                if stream in self._streams:
                    settings = self._streams.pop(stream).settings
                partitions = max(settings.partitions, number + 1)
                self._make(stream, replace(settings, partitions=partitions), segments)
        self._capacity.partitions = sum(1 for _ in self._partitions())
        self._skip_what_groups_have_seen()
        self.halves.recover(halves)
        if DELAY_STREAM in self._streams:
            self.delays.begin(self._streams[DELAY_STREAM].partitions)

    def _skip_what_groups_have_seen(self) -> None:
        """Never give an offset again that a group has passed, if others took the messages away."""
        for group in self.groups:
            for (name, number), offset in group.offsets.items():
                stream = self._streams.get(name)
                if stream is not None and number < len(stream.partitions):
                    stream.partitions[number].pass_over(offset)

    # Streams

    def __iter__(self) -> Iterator[Stream]:
        """Iterate over all streams."""
        return iter(self._streams.values())

    def find(self, name: str) -> Stream | None:
        """Return a stream, if it is there."""
        return self._streams.get(name)

    def _partitions(self) -> Iterator[Partition]:
        """Return all partitions, whatever comes and goes meanwhile."""
        for stream in list(self._streams.values()):
            yield from stream.partitions

    def _is_there(self, place: Place) -> bool:
        stream = self._streams.get(place[0])
        return stream is not None and 0 <= place[1] < len(stream.partitions)

    def get(self, name: str) -> Stream:
        """Return a stream. Raises NoSuchStreamError."""
        stream = self._streams.get(name)
        if stream is None:
            raise NoSuchStreamError(f"there is no stream {name}; declare it, or send to it first")
        return stream

    def open(self, name: str) -> Stream:
        """Return a stream, made by this use of it where that is allowed. Raises BrokerError."""
        stream = self._streams.get(name)
        if stream is not None:
            return stream
        if not self.settings.create_on_first_use:
            raise NoSuchStreamError(
                f"there is no stream {name}, and none is made by its first use "
                "(streams.createOnFirstUse); declare it as a Destination of kind Stream"
            )
        return self.declare(name, self.settings.defaults)

    def declare(self, name: str, settings: StreamSettings) -> Stream:
        """Make a stream, or let it go by other settings; partitions are only ever added.

        Raises BrokerError.
        """
        check_stream_name(name)
        check_not_ours(name)
        self._bridges.check(settings)
        known = self._streams.get(name)
        has = None if known is None else len(known.partitions)
        self._capacity.check(name, settings.partitions, has, len(self._streams))
        if known is not None and known.settings == settings:
            return known
        if known is not None:
            count = max(settings.partitions, len(known.partitions))
            settings = replace(settings, partitions=count)
        stream = self._make(name, settings, {})
        self._book.put(STREAM_PREFIX + name, settings_state(settings))
        return stream

    def _make(
        self,
        name: str,
        settings: StreamSettings,
        segments: dict[tuple[str, int], list[Segment]],
    ) -> Stream:
        """Return a stream with these settings, whose partitions have these segments."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Stream(name, settings)
        stream.adopt(settings)
        for number in range(len(stream.partitions), settings.partitions):
            kept = segments.get((name, number), ())
            self._capacity.partitions += 1
            stream.partitions.append(
                Partition(
                    self._context,
                    self._recent,
                    name,
                    number,
                    kept,
                    settings.retention,
                    self._published,
                    is_steady=name == DELAY_STREAM,
                )
            )
        self._retaining.begin()
        self._bridges.adopt(stream)
        return stream

    def remove(self, name: str) -> None:
        """Delete a stream with its messages, and what groups know of it. Raises BrokerError."""
        stream = self.get(name)
        check_not_ours(name)
        error = NoSuchStreamError(f"stream {name} was deleted")
        del self._streams[name]
        self._bridges.forget(name)
        # So a crash leaves neither feeds without offsets, nor offsets of what comes again by name.
        self._book.remove(STREAM_PREFIX + name)
        self.groups.forget_stream(name)
        self._capacity.partitions -= len(stream.partitions)
        for partition in stream.partitions:
            self._reads.refuse(partition, error)
            partition.end()

    def _route(self, name: str, number: int) -> Partition:
        """Return a partition for a message of the broker's own, whatever the settings."""
        stream = self._streams.get(name)
        if stream is None:
            is_ours = name.startswith((RETRY_PREFIX, DEAD_LETTER_PREFIX))
            defaults = self.settings.defaults
            ours = replace(defaults, partitions=1, from_topics=(), to_queues=())
            stream = self.declare(name, ours if is_ours else defaults)
        if not 0 <= number < len(stream.partitions):
            return stream.next_partition()
        return stream.partitions[number]

    # Adding

    def append(
        self,
        connection: Connection,
        tag: Any,
        stream: str,
        partition: int,
        drafts: Sequence[Draft],
        delay_level: int = 0,
        deliver_at: int = 0,
    ) -> None:
        """Add messages to a partition, in order; answered by `Appended` once they are durable.

        ANY_PARTITION takes the next one in turn. With a delay (*delay_level* counts from 1,
        *deliver_at* is in ms since the epoch) there is one message, and the answer names where it
        waits. Raises BrokerError: StreamsBusyError to be tried again at once.
        """
        place = self._place(stream, partition)
        check_drafts(drafts, self.settings.limits)
        if delay_level > 0 or deliver_at > self._context.now:
            if len(drafts) != 1:
                raise IllegalMessageError("delayed messages come one by one, not as a batch")
            place, draft = self._delayed(drafts[0], stream, place.number, delay_level, deliver_at)
            drafts = [draft]

        def done(pending: Pending, locations: tuple[int, ...]) -> None:
            where = (place.stream, place.number, pending.first)
            connection.put(Appended(tag, *where, locations, pending.stored_at))

        self._add(place, drafts, done)

    def _place(self, stream: str, partition: int) -> Partition:
        """Return the partition that a producer names, or the next one. Raises BrokerError."""
        check_not_ours(stream)
        target = self.open(stream)
        return target.next_partition() if partition < 0 else target.partition(partition)

    def _add(
        self,
        partition: Partition,
        drafts: Sequence[Draft],
        done: Callable[[Pending, tuple[int, ...]], None],
    ) -> None:
        """Add messages; *done* is called when they are durable. Raises BrokerError."""
        self._check_room()
        first = self._context.next_sequence(len(drafts))
        try:
            pending = partition.prepare(drafts, first, self._durable(done))
        except ValueError as error:
            raise IllegalMessageError(str(error)) from error
        self._count_pending(pending.bytes)
        partition.add(pending)

    def _check_room(self) -> None:
        """Raise StreamsBusyError while too much waits for the disk, or what a full store is."""
        if self._pending_bytes >= self.settings.limits.pending_bytes:
            raise StreamsBusyError(
                f"{self._pending_bytes} bytes wait for the disk (streams.limits.pendingBytes); "
                "try again"
            )
        try:
            self._context.store.check_full()
        except StoreFullError as error:
            raise ResourceAllocationError(str(error)) from error

    def _count_pending(self, size: int) -> None:
        """Count bytes that wait for the disk, less than 0 of those that do no more."""
        self._pending_bytes += size

    def _durable(
        self, done: Callable[[Pending, tuple[int, ...]], None]
    ) -> Callable[[Pending, tuple[int, ...]], None]:
        def settled(pending: Pending, locations: tuple[int, ...]) -> None:
            self._count_pending(-pending.bytes)
            done(pending, locations)

        return settled

    def _published(self, partition: Partition) -> None:
        """Hear that readers see more of a partition."""
        self._reads.published(partition)
        self._bridges.published(partition.stream)
        if partition.stream == DELAY_STREAM:
            self.delays.added(partition.number, partition)

    # Delays and retries

    def _delayed(
        self, draft: Draft, stream: str, partition: int, level: int, due: int
    ) -> tuple[Partition, Draft]:
        """Return where a message waits for its time, and as what."""
        waiting_in = self._streams.get(DELAY_STREAM)
        if waiting_in is None or len(waiting_in.partitions) < self.delays.levels:
            # What waits is never too old; what has been moved on ends by itself.
            settings = StreamSettings(self.delays.levels, Retention(time=0))
            self.delays.begin(self._make(DELAY_STREAM, settings, {}).partitions)
            self._book.put(STREAM_PREFIX + DELAY_STREAM, settings_state(settings))
        number, waiting = self.delays.delayed(draft, stream, partition, level, due)
        return self._streams[DELAY_STREAM].partition(number), waiting

    def _deliver(self, stream: str, partition: int, draft: Draft) -> Delivery:
        """Add a message whose time has come."""
        try:
            self._check_room()
        except ResourceAllocationError:
            return Delivery.BUSY
        try:
            self._add(self._route(stream, partition), [draft], _nothing)
        except BrokerError as error:
            self._context.containment.note_error("message", f"delayed, for {stream}", error)
            return Delivery.REFUSED
        return Delivery.DONE

    def send_back(
        self,
        connection: Connection,
        tag: Any,
        group: str,
        stream: str,
        partition: int,
        offset: int,
        delay_level: int = 0,
        reconsume_max: int = 16,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Have a message that a group could not consume come again; answered by `Done`.

        It comes in `%RETRY%group`, after a delay that grows with each time, or of *delay_level*,
        with *properties* beside its own.
        After *reconsume_max* times, or with a negative level, it goes to `%DLQ%group`. Raises
        BrokerError.
        """
        record = self.queries.record(stream, partition, offset)
        draft = record.draft
        draft.properties.update(properties or {})
        draft.properties.setdefault(ORIGINAL_STREAM, stream)
        is_over = delay_level < 0 or draft.reconsumed >= reconsume_max
        level = delay_level or FIRST_RETRY_LEVEL + draft.reconsumed
        draft.reconsumed = min(draft.reconsumed + 1, RECONSUMED_MAX)

        def done(pending: Pending, locations: tuple[int, ...]) -> None:
            connection.put(Done(tag))

        if is_over:
            self._add(self._route(DEAD_LETTER_PREFIX + group, 0), [draft], done)
            return
        retry = self._route(RETRY_PREFIX + group, 0)
        place, waiting = self._delayed(draft, retry.stream, retry.number, level, 0)
        self._add(place, [waiting], done)

    # Reading

    def read(self, connection: Connection, tag: Any, read: Read) -> None:
        """Read a partition; answered by `ReadResult`, now or later. Raises BrokerError."""
        self._reads.read(connection, tag, read, self.get(read.stream).partition(read.partition))

    @property
    def waiting_reads(self) -> int:
        """Number of reads that wait for messages."""
        return self._reads.count

    # Groups

    def commit_offset(self, group: str, stream: str, partition: int, offset: int) -> None:
        """Note up to where a group has consumed a partition; on the disk within some seconds.

        An offset beyond the last message is that behind it. Raises BrokerError.
        """
        place = self.get(stream).partition(partition)
        self.groups.commit(group, (stream, partition), max(0, min(offset, place.maximum)))
        if group.startswith(FEED_PREFIX):
            self._bridges.published(stream)

    def reset_offsets(self, group: str, stream: str, to: int | Mapping[int, int]) -> dict[int, int]:
        """Let a group go on at what was stored at a time, or at offsets by partition.

        Returns where it goes on, by partition. Members that run have to be told by their protocol.
        Raises BrokerError.
        """
        found = self.get(stream)
        if isinstance(to, int):
            offsets = {each.number: each.offset_at(to) for each in found.partitions}
        else:
            offsets = {
                number: max(0, min(offset, found.partition(number).maximum))
                for number, offset in to.items()
            }
        for number, offset in offsets.items():
            self.groups.commit(group, (stream, number), offset)
        self._bridges.published(stream)
        return offsets

    # Transactions

    @property
    def pending_transactions(self) -> int:
        """Number of half messages that wait for their producers' decision."""
        return len(self.halves)

    def begin_transaction(
        self,
        connection: Connection,
        tag: Any,
        group: str,
        stream: str,
        partition: int,
        draft: Draft,
        immunity_ms: int = 0,
    ) -> None:
        """Keep a message that nobody sees yet; answered by `HalfStored` once it is durable.

        Its producer *group* is asked about it after *immunity_ms*, 0 for the usual time. Raises
        BrokerError.
        """
        place = self._place(stream, partition)
        check_drafts([draft], self.settings.limits)
        self._check_room()
        self.halves.begin(connection, tag, group, place, draft, immunity_ms)

    def end_transaction(
        self, connection: Connection, tag: Any, number: int, outcome: Outcome
    ) -> None:
        """Decide about a half message: `Appended` for a commit, `Done` otherwise.

        Raises NoSuchTransactionError.
        """
        self.halves.end(connection, tag, number, outcome)

    def find_transaction(self, number: int) -> Half | None:
        """Return a half message that waits for its outcome."""
        return self.halves.find(number)

    def producer_heartbeat(self, connection: Connection, group: str, client_id: str) -> None:
        """Hear of a producer that may be asked about transactions of its group.

        Raises ResourceAllocationError.
        """
        self.halves.heartbeat(connection, group, client_id)

    def producer_leaves(self, connection: Connection, group: str) -> None:
        """Ask a producer no more."""
        self.halves.leave(connection, group)

    # Ending

    def settle_behind(self, receipt: Receipt) -> None:
        """Give *receipt* back once all that was changed so far is durable."""
        self._context.settle_behind(receipt)

    def forget(self, connection: Connection) -> None:
        """Let go of everything that a connection did here, as it has ended."""
        self._reads.forget(connection)
        self.groups.forget(connection)
        self.halves.forget(connection)

    def close(self) -> None:
        """Write what is known of groups: the broker ends in order."""
        self.groups.write()


def _nothing(pending: Pending, locations: tuple[int, ...]) -> None:
    """Tell nobody."""
