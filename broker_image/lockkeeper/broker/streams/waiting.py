"""Reads: what is there is answered at once, and who finds nothing waits for the next message."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from lockkeeper.broker.chores import Chore
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import LOOK_BYTES, Context
from lockkeeper.broker.errors import BrokerError, ResourceAllocationError
from lockkeeper.broker.streams.filters import EVERYTHING, Filter
from lockkeeper.broker.streams.outputs import ReadResult, ReadStatus, Refused
from lockkeeper.broker.streams.partition import Partition, Scan
from lockkeeper.broker.streams.settings import StreamLimits
from lockkeeper.broker.timers import Timer

ANSWERED_AT_ONCE: Final = 2 << 20
"""So many bytes are answered in a turn to those who wait; a look at a read is LOOK_BYTES."""

CONNECTIONS_AT_LEAST: Final = 8
"""So many connections must come before all reads that may wait do."""


@dataclass(slots=True)
class Read:
    """A read of one partition: up to `count` messages of `bytes_max` bytes from `offset` on.

    Without any it waits for `wait_ms`, 0 for not at all.
    """

    stream: str
    partition: int
    offset: int
    count: int = 32
    bytes_max: int = 256 << 10
    wait_ms: int = 0
    wanted: Filter = EVERYTHING


class Wait:
    """A read that waits; `timer` ends it."""

    __slots__ = ("connection", "partition", "read", "tag", "timer")

    def __init__(self, connection: Connection, tag: Any, read: Read, partition: Partition) -> None:
        self.connection = connection
        self.tag = tag
        self.read = read
        self.partition = partition
        self.timer: Timer | None = None


class Reads:
    """Answers reads, one output each.

    Those who wait are answered as soon as there is something for them, some of them in each turn
    when they are many.
    """

    def __init__(self, context: Context, limits: StreamLimits) -> None:
        self._context = context
        self._limits = limits
        self._by_partition: dict[Partition, dict[Wait, None]] = {}
        self._by_connection: dict[Connection, dict[Wait, None]] = {}
        # Partitions with messages at which not all have looked who wait.
        self._news: dict[Partition, None] = {}
        self._looking = Chore(context, self._look_at_news, ANSWERED_AT_ONCE)
        self._looked_at = self._answered = 0
        self.count = 0

    def read(self, connection: Connection, tag: Any, read: Read, partition: Partition) -> None:
        """Answer a read now or later. Raises BrokerError."""
        read.count = max(1, min(read.count, self._limits.read_messages))
        read.bytes_max = max(1, min(read.bytes_max, self._limits.read_bytes))
        if not partition.minimum <= read.offset <= partition.maximum:
            connection.put(_outside(tag, read, partition))
            return
        wait = Wait(connection, tag, read, partition)
        if self._answer(wait) is not None:
            return
        if not read.wait_ms:
            connection.put(_result(wait, ReadStatus.NOT_YET, Scan([], read.offset)))
            return
        self._check_number(connection)
        self._keep(wait)

    def _check_number(self, connection: Connection) -> None:
        """Raise ResourceAllocationError where too many reads wait, or too many of one client."""
        if self.count >= self._limits.waiting_reads:
            raise ResourceAllocationError(
                f"{self.count} reads wait already (streams.limits.waitingReads)"
            )
        own = len(self._by_connection.get(connection, ()))
        if own >= max(1, self._limits.waiting_reads // CONNECTIONS_AT_LEAST):
            raise ResourceAllocationError(
                f"{own} reads of this connection wait already, 1/{CONNECTIONS_AT_LEAST} of those "
                "of all (streams.limits.waitingReads)"
            )

    def _answer(self, wait: Wait) -> int | None:
        """Answer a read if there is something to say; returns how many bytes that was.

        Otherwise it goes on where it looked last.
        """
        read, partition = wait.read, wait.partition
        scan = partition.scan(read.offset, read.count, read.bytes_max, read.wanted)
        if scan.records:
            wait.connection.put(_result(wait, ReadStatus.FOUND, scan))
            return sum(record.size for record in scan.records)
        is_at_end = scan.next_offset >= partition.maximum
        if not is_at_end or (scan.next_offset > read.offset and not read.wait_ms):
            wait.connection.put(_result(wait, ReadStatus.NO_MATCH, scan))
            return 0
        read.offset = scan.next_offset
        return None

    def _keep(self, wait: Wait) -> None:
        self.count += 1
        self._by_partition.setdefault(wait.partition, {})[wait] = None
        self._by_connection.setdefault(wait.connection, {})[wait] = None
        due = self._context.steady + wait.read.wait_ms
        wait.timer = self._context.timers.call_at(due, lambda: self._give_up(wait))

    def _give_up(self, wait: Wait) -> None:
        """Answer that nothing came in time."""
        self._forget(wait)
        wait.connection.put(_result(wait, ReadStatus.NOT_YET, Scan([], wait.read.offset)))

    def _forget(self, wait: Wait) -> None:
        self.count -= 1
        if wait.timer is not None:
            wait.timer.cancel()
        keepers: tuple[dict[Any, dict[Wait, None]], ...] = (
            self._by_partition,
            self._by_connection,
        )
        for kept, key in zip(keepers, (wait.partition, wait.connection), strict=True):
            del kept[key][wait]
            if not kept[key]:
                del kept[key]

    def published(self, partition: Partition) -> None:
        """Answer those who wait for messages of a partition, now or in the next turns."""
        waiting = self._by_partition.get(partition)
        if waiting is None:
            return
        if self._looked_at != self._context.steady:
            self._looked_at, self._answered = self._context.steady, 0
        self._answered += len(waiting) * LOOK_BYTES
        if self._answered < ANSWERED_AT_ONCE and partition not in self._news:
            for wait in list(waiting):
                if self._answered >= ANSWERED_AT_ONCE:
                    break
                self._answered += self._look(wait)
            else:
                return
        self._news[partition] = None
        self._looking.begin()

    def _look_at_news(self) -> Iterator[int]:
        while self._news:
            partition = next(iter(self._news))
            # What comes from here on is news again, for all.
            del self._news[partition]
            for wait in list(self._by_partition.get(partition, ())):
                if wait in self._by_partition.get(partition, ()):
                    yield LOOK_BYTES + self._look(wait)

    def _look(self, wait: Wait) -> int:
        """Answer a read that waits if it can be; returns how many bytes that was.

        One that fails is refused, and harms no other one.
        """
        answered: int | None = 0
        try:
            answered = self._answer(wait)
        except Exception as error:
            self._context.containment.note_error("command", "read of a stream", error)
            refusal = BrokerError(f"{type(error).__name__}: {error}")
            wait.connection.put(Refused(wait.tag, refusal))
        if answered is not None:
            self._forget(wait)
        return answered or 0

    def forget(self, connection: Connection) -> None:
        """Forget the reads of a connection that has ended."""
        for wait in list(self._by_connection.get(connection, ())):
            self._forget(wait)

    def refuse(self, partition: Partition, error: BrokerError) -> None:
        """Answer those who wait for a partition that is gone."""
        for wait in list(self._by_partition.get(partition, ())):
            self._forget(wait)
            wait.connection.put(Refused(wait.tag, error))


def _result(wait: Wait, status: ReadStatus, scan: Scan) -> ReadResult:
    read, partition = wait.read, wait.partition
    return ReadResult(
        wait.tag,
        status,
        read.stream,
        read.partition,
        scan.records,
        scan.next_offset,
        partition.minimum,
        partition.maximum,
    )


def _outside(tag: Any, read: Read, partition: Partition) -> ReadResult:
    is_before = read.offset < partition.minimum
    return ReadResult(
        tag,
        ReadStatus.TOO_SMALL if is_before else ReadStatus.TOO_LARGE,
        read.stream,
        read.partition,
        (),
        partition.minimum if is_before else partition.maximum,
        partition.minimum,
        partition.maximum,
    )
