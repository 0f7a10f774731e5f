"""Transactional messages: halves that nobody sees until their producer decides.

A half is a message in a queue of ours. Its commit moves it into its partition in one batch of the
journal: after a crash it is in one of the two places. A producer that says nothing is asked.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import Any, Final

from lockkeeper.broker.chores import Chore
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import END_BYTES, Context
from lockkeeper.broker.errors import AccessDeniedError, ResourceAllocationError
from lockkeeper.broker.streams.answering import AnswerReceipt
from lockkeeper.broker.streams.drafts import Draft, compose, read_draft, tag_hash_of
from lockkeeper.broker.streams.errors import IllegalMessageError, NoSuchTransactionError
from lockkeeper.broker.streams.names import check_group_name
from lockkeeper.broker.streams.outputs import Appended, CheckTransaction, Done, HalfStored
from lockkeeper.broker.streams.partition import Partition, Pending
from lockkeeper.broker.streams.settings import StreamsSettings
from lockkeeper.broker.timers import NEVER, Timer
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import LocalTransactionId
from lockkeeper.message.segments import SEGMENT_PREFIX, lane_of
from lockkeeper.store.base import Reference, Remove

HALVES: Final = queue(f"{SEGMENT_PREFIX}Halves")
UNDECIDED_STREAM: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
"""The stream that gets what no producer decided about, however often it was asked."""
ASKED_AT_ONCE: Final = 1 << 20
"""So many bytes of questions are asked in a turn, END_BYTES more each."""
PAUSE_MS: Final = 10
"""Pause until more is asked: the answers come at that pace, too."""
UNREAD_MAX: Final = 64
"""A producer that has not taken so many outputs, or ASKED_AT_ONCE, is asked later."""
_BUSY_MS: Final = 1_000
_ENDED_MAX: Final = 1_000
_ENDED_WEIGHT: Final = 64
_LANE: Final = lane_of(HALVES.name, 0)
_PARTITION, _GROUP = "lockkeeperPartition", "lockkeeperProducerGroup"


class Outcome(Enum):
    """Decision of a producer about its half message; UNKNOWN asks to be asked again."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Half:
    """A message that is to be decided about; times are in ms of the steady clock."""

    number: int
    group: str
    stream: str
    partition: int
    reference: Reference
    ask_at: int
    checks: int = 0


class HalfReceipt:
    """Tells a producer that its half message is durable."""

    def __init__(
        self, connection: Connection, tag: Any, half: Half, count: Callable[[int], None]
    ) -> None:
        self._connection = connection
        self._tag = tag
        self._half = half
        self._count = count

    def settle(self) -> None:
        """Send the answer; from here on the body is on the disk alone, if there is one."""
        half = self._half
        self._count(-half.reference.size)
        self._connection.put(HalfStored(self._tag, half.number, half.reference.location))
        _let_go(half.reference)


class Halves:
    """All half messages. `route` finds the partition of a stream; it may raise BrokerError.

    `count` is told how many bytes more wait for the disk, or less.
    """

    def __init__(
        self,
        context: Context,
        settings: StreamsSettings,
        route: Callable[[str, int], Partition],
        count: Callable[[int], None],
    ) -> None:
        self._context = context
        self._settings = settings
        self._route = route
        self._count_bytes = count
        self._halves: dict[int, Half] = {}
        self._producers: dict[str, dict[Connection, str]] = {}
        self._groups: dict[Connection, dict[str, None]] = {}
        # By when their producers are asked, those that have their outcome among them.
        self._late: list[tuple[int, int]] = []
        self._check: Timer | None = None
        self._check_at = NEVER
        self._asking = Chore(context, self._ask_late_ones, ASKED_AT_ONCE, PAUSE_MS)
        self._count = self._last = 0

    def __len__(self) -> int:
        """Return how many halves wait for their producers."""
        return len(self._halves)

    def find(self, number: int) -> Half | None:
        """Return a half that has no outcome yet."""
        return self._halves.get(number)

    def wait_for(self, stream: str) -> bool:
        """Tell whether a half is to come into a stream."""
        return any(half.stream == stream for half in self._halves.values())

    def recover(self, references: Sequence[Reference]) -> None:
        """Take back what was not decided about; blocks while it is read."""
        store, context = self._context.store, self._context
        ask_at = context.steady + self._settings.transaction_timeout
        for start in range(0, len(references), 1024):
            some = references[start : start + 1024]
            store.load(some, context.next_sequence(len(some)))
            for reference in some:
                self._recover(reference, ask_at)

    def _recover(self, reference: Reference, ask_at: int) -> None:
        message = reference.loaded
        _let_go(reference)
        try:
            properties = read_draft(message.body).properties
            number = int(properties.get(_PARTITION, "-1"))
        except (MalformedMessageError, ValueError):
            return
        half = Half(
            message.number,
            properties.get(_GROUP, ""),
            message.destination.name,
            number,
            reference,
            ask_at,
        )
        self._halves[half.number] = half
        self._last = max(self._last, half.number)
        self._have_asked(half, ask_at)

    # Producers

    def heartbeat(self, connection: Connection, group: str, client_id: str) -> None:
        """Hear of a producer that can be asked about the transactions of its group.

        Raises BrokerError.
        """
        limit = self._settings.limits.groups
        if group not in self._producers:
            check_group_name(group)
            if len(self._producers) >= limit:
                raise ResourceAllocationError(
                    f"there are {limit} groups of producers already (streams.limits.groups)"
                )
        self._producers.setdefault(group, {})[connection] = client_id
        self._groups.setdefault(connection, {})[group] = None

    def leave(self, connection: Connection, group: str) -> None:
        """Ask a producer no more."""
        _take_out(self._producers, group, connection)
        _take_out(self._groups, connection, group)

    def forget(self, connection: Connection) -> None:
        """Ask nobody whose connection has ended."""
        for group in list(self._groups.get(connection, ())):
            self.leave(connection, group)

    # Messages

    def begin(
        self,
        connection: Connection,
        tag: Any,
        group: str,
        partition: Partition,
        draft: Draft,
        immunity_ms: int,
    ) -> None:
        """Keep a half message; see `Streams.begin_transaction`. Raises BrokerError."""
        check_group_name(group)
        limit, context = self._settings.limits.pending_transactions, self._context
        if len(self._halves) >= limit:
            raise ResourceAllocationError(
                f"{limit} transactions wait for their outcome already "
                "(streams.limits.pendingTransactions)"
            )
        # Later than all that are known, whatever the clock was set to meanwhile.
        number = self._last = max(self._last + 1, context.next_sequence())
        ours = {_PARTITION: str(partition.number), _GROUP: group}
        kept = replace(draft, properties={**draft.properties, **ours})
        try:
            place, sequence = topic(partition.stream), context.next_sequence()
            tag_hash = tag_hash_of(kept.tags)
            message = compose(kept, place, _LANE, number, context.now, sequence, tag_hash)
        except ValueError as error:
            raise IllegalMessageError(str(error)) from error
        reference = Reference(message, len(message.body))
        wait = immunity_ms or self._settings.transaction_timeout
        half = Half(
            number, group, partition.stream, partition.number, reference, context.steady + wait
        )
        self._halves[number] = half
        self._count_bytes(reference.size)
        receipt = HalfReceipt(connection, tag, half, self._count_bytes)
        context.store.add(HALVES, reference, receipt)
        self._have_asked(half, half.ask_at)

    def end(self, connection: Connection, tag: Any, number: int, outcome: Outcome) -> None:
        """Decide about a half message; see `Streams.end_transaction`."""
        half = self._halves.get(number)
        if half is None:
            raise NoSuchTransactionError(
                f"no transaction with number {number} waits: it has its outcome already"
            )
        if outcome is Outcome.UNKNOWN:
            connection.put(Done(tag))
        elif outcome is Outcome.ROLLBACK:
            del self._halves[number]
            receipt = AnswerReceipt(connection, Done(tag))
            self._context.store.remove(HALVES, half.reference, receipt, skip_unwritten=False)
        else:
            self._move(half, self._route(half.stream, half.partition), connection, tag)

    def _move(
        self,
        half: Half,
        partition: Partition,
        connection: Connection | None = None,
        tag: Any = None,
    ) -> None:
        """Put a half message into a partition, in one batch with its end here."""
        context = self._context
        draft = self._read(half)

        def done(pending: Pending, locations: tuple[int, ...]) -> None:
            if connection is not None:
                where = (partition.stream, partition.number, pending.first)
                connection.put(Appended(tag, *where, locations, pending.stored_at))

        pending = partition.prepare([draft], context.next_sequence(), done)
        self._count += 1
        context.store.commit(
            LocalTransactionId("ID:lockkeeper-stream", self._count),
            [partition.addition(pending), Remove(HALVES, [half.reference])],
            pending,
        )
        del self._halves[half.number]

    def _read(self, half: Half) -> Draft:
        """Return a half message as its producer sent it; blocks. Raises StoreError."""
        self._context.store.load([half.reference], self._context.next_sequence())
        draft = read_draft(half.reference.loaded.body)
        for name in (_PARTITION, _GROUP):
            draft.properties.pop(name, None)
        return draft

    # Questions

    def _have_asked(self, half: Half, ask_at: int) -> None:
        """Ask about a half message at a time, in ms of the steady clock."""
        half.ask_at = ask_at
        if len(self._late) > 2 * len(self._halves) + _ENDED_MAX:
            self._late = [(each.ask_at, number) for number, each in self._halves.items()]
            heapify(self._late)
        else:
            heappush(self._late, (ask_at, half.number))
        self._have_checked()

    def _have_checked(self) -> None:
        if self._late and self._late[0][0] < self._check_at:
            if self._check is not None:
                self._check.cancel()
            self._check_at = self._late[0][0]
            self._check = self._context.timers.call_at(self._check_at, self._begin_asking)

    def _begin_asking(self) -> None:
        self._check, self._check_at = None, NEVER
        self._asking.begin()

    def _ask_late_ones(self) -> Iterator[int]:
        """Ask about transactions that are late, each for itself."""
        while self._late and self._late[0][0] <= self._context.steady:
            ask_at, number = heappop(self._late)
            half = self._halves.get(number)
            if half is None or half.ask_at != ask_at:
                yield _ENDED_WEIGHT
                continue
            self._have_asked(half, self._context.steady + self._settings.check_interval)
            self._context.containment.call("message", self._attend_to, half)
            yield END_BYTES + half.reference.size
        self._have_checked()

    def _attend_to(self, half: Half) -> None:
        """Ask about a transaction that is late, or set its message aside."""
        if half.checks >= self._settings.checks_max:
            self._move(half, self._route(UNDECIDED_STREAM, 0))
        else:
            self._ask(half)

    def _ask(self, half: Half) -> None:
        """Ask a producer of the group, the others in turn; without one nothing is counted.

        One that does not take what it is told is asked a little later.
        """
        producers = [each for each in self._producers.get(half.group, ()) if _may(each, half)]
        if not producers:
            return
        connection = producers[half.checks % len(producers)]
        if not _may_be_asked(connection):
            self._have_asked(half, self._context.steady + _BUSY_MS)
            return
        half.checks += 1
        draft = self._read(half)
        _let_go(half.reference)
        connection.put(
            CheckTransaction(
                half.group,
                half.number,
                half.reference.location,
                half.stream,
                half.partition,
                draft,
                half.checks,
            )
        )


def _may(connection: Connection, half: Half) -> bool:
    """Tell whether a producer's user may send what it would decide about, and see it."""
    try:
        if connection.rights is not None:
            connection.rights.check_write(topic(half.stream))
    except AccessDeniedError:
        return False
    return True


def _may_be_asked(connection: Connection) -> bool:
    """Tell whether a producer takes what it is told."""
    if connection.congested or len(connection.outbox) >= UNREAD_MAX:
        return False
    questions = [each for each in connection.outbox if isinstance(each, CheckTransaction)]
    return sum(len(each.draft.body) for each in questions) < ASKED_AT_ONCE


def _take_out(kept: dict[Any, dict[Any, Any]], key: object, value: object) -> None:
    """Take a value out of those of a key, and the key with the last of them."""
    values = kept.get(key, {})
    values.pop(value, None)
    if not values:
        kept.pop(key, None)


def _let_go(reference: Reference) -> None:
    """Keep a body on the disk alone."""
    if reference.location:
        reference.message = None
