"""Reads: what is there is answered at once, and who finds nothing waits for the next message."""

from dataclasses import dataclass
from typing import Any

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import BrokerError, ResourceAllocationError
from lockkeeper.broker.streams.filters import EVERYTHING, Filter
from lockkeeper.broker.streams.outputs import ReadResult, ReadStatus, Refused
from lockkeeper.broker.streams.partition import Partition, Scan
from lockkeeper.broker.streams.settings import StreamLimits
from lockkeeper.broker.timers import Timer


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
    """Answers reads, one output each."""

    def __init__(self, context: Context, limits: StreamLimits) -> None:
        self._context = context
        self._limits = limits
        self._by_partition: dict[Partition, dict[Wait, None]] = {}
        self._by_connection: dict[Connection, dict[Wait, None]] = {}
        self.count = 0

    def read(self, connection: Connection, tag: Any, read: Read, partition: Partition) -> None:
        """Answer a read now or later. Raises BrokerError."""
        read.count = max(1, min(read.count, self._limits.read_messages))
        read.bytes_max = max(1, min(read.bytes_max, self._limits.read_bytes))
        if not partition.minimum <= read.offset <= partition.maximum:
            connection.put(_outside(tag, read, partition))
            return
        wait = Wait(connection, tag, read, partition)
        if self._answer(wait):
            return
        if not read.wait_ms:
            connection.put(_result(wait, ReadStatus.NOT_YET, Scan([], read.offset)))
            return
        if self.count >= self._limits.waiting_reads:
            raise ResourceAllocationError(
                f"{self.count} reads wait already (streams.limits.waitingReads)"
            )
        self._keep(wait)

    def _answer(self, wait: Wait) -> bool:
        """Answer a read if there is something to say; otherwise it goes on where it looked last."""
        read, partition = wait.read, wait.partition
        scan = partition.scan(read.offset, read.count, read.bytes_max, read.wanted)
        if scan.records:
            wait.connection.put(_result(wait, ReadStatus.FOUND, scan))
            return True
        is_at_end = scan.next_offset >= partition.maximum
        if not is_at_end or (scan.next_offset > read.offset and not read.wait_ms):
            wait.connection.put(_result(wait, ReadStatus.NO_MATCH, scan))
            return True
        read.offset = scan.next_offset
        return False

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
        """Answer those who wait for messages of a partition."""
        for wait in list(self._by_partition.get(partition, ())):
            if self._answer(wait):
                self._forget(wait)

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
