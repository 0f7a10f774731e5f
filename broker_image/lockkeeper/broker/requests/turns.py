"""Turns of requests: one request of a connection at a time, and a part of each in turn."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Final, NamedTuple, TypeAlias

from lockkeeper.broker.chores import Chore
from lockkeeper.broker.connections import STALLED_BYTES_MAX, Connection
from lockkeeper.broker.context import END_BYTES, MESSAGE_BYTES, TICK_BYTES_MAX, Context
from lockkeeper.broker.errors import BrokerError, ResourceAllocationError, internal_error
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt

# What one connection may have asked for that is not done: more than is read in one piece, after
# which it is not read from, unless it has to be.
ASKED_BYTES_MAX: Final = 2 << 20
# A bridge that goes one way can wait: it is not read from while so much of what it asked for is not
# done, even with what one more piece asks for.
_BRIDGED_BYTES_MAX: Final = 256 << 10
# So much of a request is carried out before others have their turn.
PART_BYTES: Final = 256 << 10
_HELD_BYTES: Final = STALLED_BYTES_MAX + 1
WAITS: Final = -1

Steps: TypeAlias = Generator[int, None, None]
"""Yields what each step weighed, WAITS as long as there is no room for the next one."""

Settle: TypeAlias = Callable[[Receipt], None]
"""Settles the receipt of a request that is done, perhaps only when that is durable."""


def settle_at_once(receipt: Receipt) -> None:
    """Settle the receipt of what needs nothing to be durable."""
    receipt.settle()


class Request(NamedTuple):
    """Request by a message of a connection; what is only *for the asker* ends when that is gone."""

    message: Message
    receipt: Receipt | None
    steps: Steps
    settle: Settle = settle_at_once
    is_for_asker: bool = False


class _Line(deque[Request]):
    """The requests of a connection that are not done, oldest first, and what they weigh."""

    weight = 0

    def add(self, request: Request) -> None:
        """Let a request wait behind the others."""
        self.append(request)
        self.weight += MESSAGE_BYTES + len(request.message.body)

    def take(self) -> Request:
        """Take the first one out."""
        request = self.popleft()
        self.weight -= MESSAGE_BYTES + len(request.message.body)
        return request


class Turns:
    """The requests of all connections that are not done, oldest first in each one's line.

    A connection is not read from until its last request is done. While that waits for room,
    which may depend on what the connection acknowledges, it is read where it has to be.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lines: dict[Connection, _Line] = {}
        self._ready: deque[Connection] = deque()
        self._waiting: set[Connection] = set()
        self._held: set[Connection] = set()
        self._work = Chore(context, self._take_turns, TICK_BYTES_MAX)

    def add(self, connection: Connection, request: Request) -> None:
        """Carry out a request when its turn comes. Raises ResourceAllocationError."""
        line = self._lines.setdefault(connection, _Line())
        if line.weight > ASKED_BYTES_MAX:
            to = request.message.destination
            raise ResourceAllocationError(
                f"the connection has {len(line)} requests (this one to {to}) that are not done"
            )
        line.add(request)
        if len(line) == 1:
            self._hold(connection)
            self._ready.append(connection)
            self._work.begin_soon()
        elif not self._is_read(connection):
            self._hold(connection)

    def go_on(self, connection: Connection) -> None:
        """Go on with a request that waited for room."""
        if connection in self._waiting:
            self._waiting.remove(connection)
            self._hold(connection)
            self._ready.append(connection)
            self._work.begin_soon()

    def forget(self, connection: Connection) -> None:
        """End what was only for a connection that is gone; the rest is carried out."""
        line = self._lines.pop(connection, None)
        if line is None:
            return
        self._waiting.discard(connection)
        if connection in self._ready:
            self._ready.remove(connection)
        left = _Line()
        for request in line:
            if request.is_for_asker:
                request.steps.close()
            else:
                left.add(request)
        self._go_on_with(connection, left)
        self._work.begin_soon()

    def _take_turns(self) -> Iterator[int]:
        while self._ready:
            yield self._carry_on(self._ready.popleft())

    def _carry_on(self, connection: Connection) -> int:
        """Carry out a part of a connection's first request; return what that weighed."""
        request, weight = self._lines[connection][0], END_BYTES
        error: BrokerError | None = None
        try:
            for step in request.steps:
                if step == WAITS:
                    self._wait(connection)
                    return weight
                weight += step
                if weight >= PART_BYTES:
                    self._ready.append(connection)
                    return weight
        except BrokerError as refusal:
            error = refusal
        except Exception as unexpected:
            self._context.containment.note_error("command", request.message.destination, unexpected)
            error = internal_error(unexpected)
        self._end(connection, error)
        return weight

    def _wait(self, connection: Connection) -> None:
        """Let a connection's first request wait for room."""
        self._waiting.add(connection)
        if self._is_read(connection):
            self._release(connection)

    def _is_read(self, connection: Connection) -> bool:
        """Tell whether a connection is read from while its first request waits for room."""
        is_too_much = self._lines[connection].weight > _BRIDGED_BYTES_MAX
        return connection.must_be_read and not (is_too_much and connection.is_one_way)

    def _end(self, connection: Connection, error: BrokerError | None) -> None:
        """Answer a connection's first request, and let the next one have its turns."""
        line = self._lines[connection]
        request = line.take()
        self._go_on_with(connection, line)
        if error is not None:
            connection.refuse_message(request.message, request.receipt, error)
        elif request.receipt is not None:
            request.settle(request.receipt)

    def _go_on_with(self, connection: Connection, line: _Line) -> None:
        """Let the rest of a connection's requests have their turns."""
        if line:
            self._lines[connection] = line
            self._ready.append(connection)
        else:
            self._lines.pop(connection, None)
            self._release(connection)

    def _hold(self, connection: Connection) -> None:
        """Have a connection not read from."""
        if connection not in self._held:
            self._held.add(connection)
            connection.stalled_bytes += _HELD_BYTES

    def _release(self, connection: Connection) -> None:
        if connection in self._held:
            self._held.remove(connection)
            connection.stalled_bytes -= _HELD_BYTES
