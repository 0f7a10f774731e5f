"""Delayed messages: a stream of ours with one partition for each level of delay.

All messages of a level wait equally long, so they come out in the order they went in: a position
for each level is all there is to remember. A message for a time of its own goes from level to
level, each the longest that is not too long; it is at most the shortest level late.

A level's length goes by the steady clock, whatever that of people is set to meanwhile. What was
there when the broker started waits from when it was stored by the clock of people, at the latest
from the start. One that cannot be delivered goes round: it waits once more, and holds up nobody.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple

from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import InvalidDestinationError
from lockkeeper.broker.streams.drafts import Draft, StreamRecord, read_draft
from lockkeeper.broker.streams.filters import EVERYTHING
from lockkeeper.broker.streams.partition import LOADED_BYTES_MAX, SCANNED_MAX, Partition
from lockkeeper.broker.streams.states import StateBook
from lockkeeper.broker.timers import Timer
from lockkeeper.message.errors import MalformedMessageError

DELAY_STREAM: Final = "SCHEDULE_TOPIC_XXXX"
STATE: Final = "delays"
REAL_STREAM, REAL_PARTITION = "REAL_TOPIC", "REAL_QID"
_DUE: Final = "lockkeeperDue"
_AT_ONCE: Final = 64
_BYTES_AT_ONCE: Final = 1 << 20
_RETRY_MS: Final = 20
_ROUND_MS: Final = 60_000
"""About so long a message waits that could not be delivered."""


def check_not_ours(name: str) -> None:
    """Raise InvalidDestinationError for the stream in which delayed messages wait."""
    if name == DELAY_STREAM:
        raise InvalidDestinationError(f"stream {name} is the broker's own")


class Delivery(Enum):
    """Outcome of a delivery: REFUSED is a message that may be taken another time, or never.

    BUSY is a broker that takes no messages now.
    """

    DONE = "done"
    BUSY = "busy"
    REFUSED = "refused"


Deliver = Callable[[str, int, Draft], Delivery]
"""Adds a message to a stream's partition."""


class Delayed(NamedTuple):
    """Messages for a stream that wait in one level: how many, and in how many ms the first is due.

    `is_all` is false where there are too many to look at all of them.
    """

    messages: int
    due_in: int
    is_all: bool


class _ForStream:
    """The filter of delayed messages that are for one stream."""

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def accepts_hash(self, tag_hash: int) -> bool:
        """Return True: the properties have to be read."""
        return True

    def accepts_frame(self, frame: bytes) -> bool:
        """Tell whether a message is for the stream."""
        try:
            return read_draft(frame).properties.get(REAL_STREAM) == self._stream
        except MalformedMessageError:
            return False


class Delays:
    """Moves messages on when their time has come."""

    def __init__(
        self,
        context: Context,
        levels_ms: tuple[int, ...],
        book: StateBook,
        deliver: Deliver,
    ) -> None:
        self._context = context
        self._levels = levels_ms
        self._book = book
        self._deliver = deliver
        self._positions: dict[int, int] = {}
        self._timers: dict[int, Timer] = {}

    @property
    def levels(self) -> int:
        """Number of levels; the first is level 1."""
        return len(self._levels)

    def recover(self, state: Mapping[str, Any]) -> None:
        """Take back how far each level is."""
        positions = state.get("positions")
        if isinstance(positions, list):
            for level, position in enumerate(positions):
                self._positions[level] = position if isinstance(position, int) else 0

    def begin(self, partitions: list[Partition]) -> None:
        """Go on with the partitions of the delay stream, when they are there.

        An offset that a level has passed is never given again, if others took its messages away.
        """
        for level, partition in enumerate(partitions):
            partition.pass_over(self._positions.get(level, 0))
            self.added(level, partition)

    def delayed(
        self, draft: Draft, stream: str, partition: int, level: int, due: int
    ) -> tuple[int, Draft]:
        """Return the partition of the delay stream for a message, and what is put there.

        *level* counts from 1, the highest one is the most; *due*, in ms since the epoch, is for a
        time instead, 0 for none.
        """
        properties = {
            **draft.properties,
            REAL_STREAM: stream,
            REAL_PARTITION: str(partition),
        }
        # It may be a client's own, who knows why.
        properties.pop(_DUE, None)
        if due:
            properties[_DUE] = str(due)
            number = self._level_for(due - self._context.now)
        else:
            number = max(1, min(level, self.levels)) - 1
        return number, replace(draft, properties=properties)

    def _level_for(self, milliseconds: int) -> int:
        """Return the longest level that is not too long, or the shortest."""
        fitting = [at for at, length in enumerate(self._levels) if length <= milliseconds]
        by_length = self._levels.__getitem__
        if fitting:
            return max(fitting, key=by_length)
        return min(range(self.levels), key=by_length)

    def waiting_for(self, stream: str, partitions: Sequence[Partition]) -> Iterator[Delayed]:
        """Yield what waits for a stream in each level, of which *partitions* are those.

        Blocks while messages are read, for some MiB a level. Raises StoreError.
        """
        for level, partition in enumerate(partitions):
            position = max(self._positions.get(level, 0), partition.minimum)
            wanted = _ForStream(stream)
            scan = partition.scan(position, SCANNED_MAX, LOADED_BYTES_MAX, wanted)
            due_in = 0
            if scan.records:
                first = scan.records[0]
                since = partition.steady_at(first.offset, first.stored_at)
                due_in = max(0, since + self._length(level) - self._context.steady)
            is_all = scan.next_offset >= partition.maximum
            yield Delayed(len(scan.records), due_in, is_all)

    def added(self, level: int, partition: Partition) -> None:
        """Look after a level in which there is a message."""
        position = max(self._positions.get(level, 0), partition.minimum)
        if level in self._timers or position >= partition.maximum:
            return
        since = partition.steady_at(position, partition.stored_at_offset(position) or 0)
        self._set_timer(level, partition, since + self._length(level))

    def _length(self, level: int) -> int:
        """Return the delay of a level; one of settings that had more of them waits for the last."""
        return self._levels[min(level, self.levels - 1)]

    def _set_timer(self, level: int, partition: Partition, due: int) -> None:
        action = partial(self._move, level, partition)
        self._timers[level] = self._context.timers.call_at(due, action)

    def _move(self, level: int, partition: Partition) -> None:
        """Move on what is due in a level."""
        self._timers.pop(level, None)
        position = self._positions.get(level, 0)
        scan = partition.scan(position, _AT_ONCE, _BYTES_AT_ONCE, EVERYTHING)
        latest = self._context.steady - self._length(level)
        position = scan.next_offset if not scan.records else position
        for record in scan.records:
            # What was before it is gone: to wait there would be to look there again at once.
            position = record.offset
            if partition.steady_at(record.offset, record.stored_at) > latest:
                break
            if self._move_on(record) is Delivery.BUSY:
                self._keep(level, position, partition)
                self._set_timer(level, partition, self._context.steady + _RETRY_MS)
                return
            position = record.offset + 1
        self._keep(level, position, partition)
        self.added(level, partition)

    def _keep(self, level: int, position: int, partition: Partition) -> None:
        """Write how far a level is, behind the messages that it passed, which end here."""
        if position > self._positions.get(level, 0):
            self._positions[level] = position
            levels = range(max(self._positions) + 1)
            positions = [self._positions.get(each, 0) for each in levels]
            self._book.put(STATE, {"positions": positions})
            partition.end_before(position)

    def _move_on(self, record: StreamRecord) -> Delivery:
        """Add a message where it belongs now; what nobody can read ends here."""
        try:
            draft = record.draft
            stream, number = draft.properties.pop(REAL_STREAM), draft.properties.pop(REAL_PARTITION)
            partition, due = int(number), int(draft.properties.pop(_DUE, "0"))
        except (MalformedMessageError, LookupError, ValueError) as error:
            # It is none of ours: somebody put it there at ActiveMQ.
            self._context.containment.note_error("message", f"delayed, {record.offset}", error)
            return Delivery.REFUSED
        if due <= self._context.now:
            delivery = self._deliver(stream, partition, draft)
            if delivery is not Delivery.REFUSED:
                return delivery
            due = self._context.now + _ROUND_MS
        level, again = self.delayed(draft, stream, partition, 0, due)
        return self._deliver(DELAY_STREAM, level, again)
