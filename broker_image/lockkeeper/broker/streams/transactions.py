"""Transactional messages: halves that nobody sees until their producer decides.

A half is a message in a queue of ours. Its commit moves it into its partition in one batch of the
journal: after a crash it is in one of the two places. A producer that says nothing is asked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import ResourceAllocationError
from lockkeeper.broker.streams.answering import AnswerReceipt
from lockkeeper.broker.streams.drafts import Draft, compose, read_draft
from lockkeeper.broker.streams.errors import IllegalMessageError, NoSuchTransactionError
from lockkeeper.broker.streams.outputs import Appended, CheckTransaction, Done, HalfStored
from lockkeeper.broker.streams.partition import Partition, Pending
from lockkeeper.broker.streams.settings import StreamsSettings
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import LocalTransactionId
from lockkeeper.store.base import Reference, Remove
from lockkeeper.store.segment import SEGMENT_PREFIX, lane_of

HALVES: Final = queue(f"{SEGMENT_PREFIX}Halves")
UNDECIDED_STREAM: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
"""The stream that gets what no producer decided about, however often it was asked."""
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
        self._is_check_due = False
        self._count = self._last = 0

    def __len__(self) -> int:
        """Return how many halves wait for their producers."""
        return len(self._halves)

    def recover(self, references: Sequence[Reference]) -> None:
        """Take back what was not decided about; blocks while it is read."""
        store, context = self._context.store, self._context
        ask_at = context.steady + self._settings.transaction_timeout
        for start in range(0, len(references), 1024):
            some = references[start : start + 1024]
            store.load(some, context.next_sequence(len(some)))
            for reference in some:
                self._recover(reference, ask_at)
        if self._halves:
            self._have_checked()

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

    # Producers

    def heartbeat(self, connection: Connection, group: str, client_id: str) -> None:
        """Hear of a producer that can be asked about the transactions of its group.

        Raises ResourceAllocationError.
        """
        limit = self._settings.limits.groups
        if group not in self._producers and len(self._producers) >= limit:
            raise ResourceAllocationError(
                f"there are {limit} groups of producers already (streams.limits.groups)"
            )
        self._producers.setdefault(group, {})[connection] = client_id

    def leave(self, connection: Connection, group: str) -> None:
        """Ask a producer no more."""
        producers = self._producers.get(group, {})
        producers.pop(connection, None)
        if not producers:
            self._producers.pop(group, None)

    def forget(self, connection: Connection) -> None:
        """Ask nobody whose connection has ended."""
        for group in [name for name, each in self._producers.items() if connection in each]:
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
        """Keep a half message; see `Streams.begin_transaction`."""
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
            message = compose(
                kept, topic(partition.stream), _LANE, number, context.now, context.next_sequence()
            )
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
        self._have_checked()

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

        pending = partition.prepare([draft], context.now, context.next_sequence(), done)
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

    def _have_checked(self) -> None:
        if not self._is_check_due and self._halves:
            self._is_check_due = True
            earliest = min(half.ask_at for half in self._halves.values())
            self._context.timers.call_at(max(earliest, self._context.steady + 1), self._check)

    def _check(self) -> None:
        """Ask about transactions that are late."""
        self._is_check_due = False
        steady, settings = self._context.steady, self._settings
        for half in [each for each in self._halves.values() if each.ask_at <= steady]:
            half.ask_at = steady + settings.check_interval
            if half.checks >= settings.checks_max:
                self._move(half, self._route(UNDECIDED_STREAM, 0))
            else:
                self._ask(half)
        self._have_checked()

    def _ask(self, half: Half) -> None:
        """Ask a producer of the group, the others in turn; without one nothing is counted."""
        producers = list(self._producers.get(half.group, ()))
        if not producers:
            return
        connection = producers[half.checks % len(producers)]
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


def _let_go(reference: Reference) -> None:
    """Keep a body on the disk alone."""
    if reference.location:
        reference.message = None
