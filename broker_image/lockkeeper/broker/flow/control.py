"""Producer flow control: sends that wait for room, in lines, and leave them in order.

A line is for one destination and one delivery mode, so that nobody waits behind a message that
lacks something else. What waits holds up nothing else of its connection, but for what goes to the
same place by another name (a composite and a part of it): that would overtake it.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from lockkeeper.broker.connections import STALLED_BYTES_MAX, Connection
from lockkeeper.broker.context import MESSAGE_BYTES, Context
from lockkeeper.broker.errors import BrokerError, ResourceAllocationError, internal_error
from lockkeeper.broker.flow.space import Limit, described, has_window, lack_of_room
from lockkeeper.broker.routing.rule import Region
from lockkeeper.broker.settings import SystemUsage
from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt, Reference, StoreFullError

if TYPE_CHECKING:
    from lockkeeper.broker.timers import Timer

# What transactions may hold beyond the limit, which must not keep them from their outcome.
_RESERVE_BYTES: Final = 16 << 20
# What waits in files takes some memory, too: so many of a bridge's messages do before that waits.
_BRIDGED_SENDS_MAX: Final = 10_000
_FOR_MEMORY = (Limit.MEMORY_USAGE, Limit.TEMP_USAGE)

Take = Callable[[Connection, Message, Receipt | None, bool], None]
"""Takes a message; with True it has waited for room already."""


Key = tuple[Destination, bool]
"""A line: the destination, and whether the messages are persistent."""


Place: TypeAlias = tuple[Connection, Region, bool]
"""Where a connection's messages stay in order: a region, and whether they are persistent."""


class BlockedSend:
    """A send that waits since `since` (ms since the epoch) for room in its `regions`.

    Its message may be in a temporary file, and is known by the `mark` of its JMSMessageID;
    `stalled_bytes` is what it weighs if it is not there. `behind` are sends of its connection to
    some of its regions that wait in other lines. `take` takes it.
    """

    __slots__ = (
        "behind",
        "connection",
        "is_waiting",
        "key",
        "limit",
        "mark",
        "receipt",
        "reference",
        "regions",
        "since",
        "stalled_bytes",
        "take",
        "timer",
    )

    def __init__(
        self,
        connection: Connection,
        message: Message,
        receipt: Receipt | None,
        regions: Sequence[Region],
        limit: Limit,
        since: int,
        take: Take,
    ) -> None:
        self.connection = connection
        self.key: Key = (message.destination, message.persistent)
        self.reference = Reference(message, len(message.body))
        self.receipt = receipt
        self.regions = regions
        self.limit = limit
        self.since = since
        self.take = take
        self.stalled_bytes = len(message.body)
        self.mark = hash(message.identifier)
        self.timer: Timer | None = None
        self.is_waiting = True
        self.behind: tuple[BlockedSend, ...] = ()

    def places(self) -> Iterator[Place]:
        """Yield where its connection has to keep its order."""
        for region in self.regions:
            yield self.connection, region, self.key[1]


class Blocked(NamedTuple):
    """A line as it is told: who waits where, for what, since when (ms), with how much."""

    destination: Destination
    is_persistent: bool
    limit: Limit
    since: int
    sends: int
    bytes: int
    connections: tuple[Connection, ...]


class FlowControl:
    """The sends that wait; `lines` by destination and delivery mode, oldest first in each."""

    def __init__(self, context: Context, usage: SystemUsage, take: Take) -> None:
        """*take* takes a message for which there is room now, unless it has its own way."""
        self._context = context
        self._usage = usage
        self._take = take
        self.lines: dict[Key, deque[BlockedSend]] = {}
        self._last: dict[Place, BlockedSend] = {}

    def admits(
        self,
        connection: Connection,
        message: Message,
        receipt: Receipt | None,
        regions: Sequence[Region],
        take: Take | None = None,
    ) -> bool:
        """Tell whether a message may come in now; if not, it waits until it is to *take*.

        Raises ResourceAllocationError when it is not to wait, and StoreFullError for one of a
        transaction: those never wait, as the outcome would have to wait with them.
        """
        if message.transaction_id is not None:
            self._check_reserve(message)
            return True
        limit = self._obstacle(connection, message, regions)
        if limit is None:
            return True
        since, take = self._context.now, take or self._take
        self._wait(BlockedSend(connection, message, receipt, regions, limit, since, take))
        self._advise(connection, message, limit)
        return False

    def has_room(self, route: Region, messages: Sequence[Message]) -> bool:
        """Tell whether several messages may come in now, whatever they are; a quick look."""
        memory = self._context.memory
        size = MESSAGE_BYTES * len(messages) + sum([len(message.body) for message in messages])
        if memory.used + size >= memory.gate or route.policy.memory_limit:
            return False
        try:
            self._context.store.check_full()
        except StoreFullError:
            return False
        return True

    def _check_reserve(self, message: Message) -> None:
        memory = self._context.memory
        if message.persistent:
            self._context.store.check_full()
        if memory.used >= memory.limit + max(memory.limit // 4, _RESERVE_BYTES):
            raise ResourceAllocationError(
                f"{Limit.MEMORY_USAGE.value} ({memory.limit} bytes) is used up, and so is what "
                "transactions may hold beyond it: make them smaller, or raise the limit"
            )

    def _obstacle(
        self, connection: Connection, message: Message, regions: Sequence[Region]
    ) -> Limit | None:
        """Return what a message that comes now has to wait for, behind those that wait.

        One that goes nowhere, as a rule has it, waits for nothing.
        """
        if not regions:
            return None
        line = self.lines.get((message.destination, message.persistent))
        if line:
            return line[0].limit
        for region in regions:
            ahead = self._last.get((connection, region, message.persistent))
            if ahead is not None:
                return ahead.limit
        limit = self._lack(regions, message.persistent)
        if limit is not None or message.persistent or all(map(has_window, regions)):
            return limit
        waiting = (line[0].limit for line in self.lines.values())
        return next((each for each in waiting if each in _FOR_MEMORY), None)

    def _lack(self, regions: Sequence[Region], is_persistent: bool) -> Limit | None:
        lacks = (lack_of_room(self._context, region, is_persistent) for region in regions)
        return next((limit for limit in lacks if limit is not None), None)

    def _wait(self, send: BlockedSend) -> None:
        """Let a send wait. Raises ResourceAllocationError when it is not to."""
        policy, usage = send.regions[0].policy.flow, self._usage
        # Another broker has nobody to tell, and would only send again.
        is_client = send.connection.network is None
        if is_client and _chosen(policy.send_fail_if_no_space, usage.send_fail_if_no_space):
            raise self._refusal(send)
        self._make_bearable(send)
        send.connection.blocked_sends += 1
        timeout = _chosen(
            policy.send_fail_if_no_space_after_timeout, usage.send_fail_if_no_space_after_timeout
        )
        if timeout and is_client:
            due = self._context.steady + timeout
            send.timer = self._context.timers.call_at(due, partial(self._give_up, send))
        self.lines.setdefault(send.key, deque()).append(send)
        ahead = {self._last.get(place) for place in send.places()}
        send.behind = tuple(each for each in ahead if each is not None and each.key != send.key)
        self._last.update(dict.fromkeys(send.places(), send))
        self._context.memory.gate = 0

    def _advise(self, connection: Connection, message: Message, limit: Limit) -> None:
        """Tell who listens for it that a message has to wait."""
        context = self._context
        name, used = "memory", context.memory.used
        if limit in (Limit.STORE_USAGE, Limit.TEMP_USAGE):
            usage, is_store = context.store.usage(), limit is Limit.STORE_USAGE
            name = "store" if is_store else "temp"
            used = usage.bytes_on_disk if is_store else usage.spooled_bytes
        context.advisories.stalled(connection, message, name, used)

    def _make_bearable(self, send: BlockedSend) -> None:
        """See to it that what waits does not grow without bounds.

        A connection that only sends to one destination is not read from for a while. Any other
        must be, for its acknowledgements: what it sends waits in a temporary file. A bridge that
        goes one way is read for other destinations, as long as there is room in files.
        """
        connection = send.connection
        is_too_much = connection.stalled_bytes + send.stalled_bytes > STALLED_BYTES_MAX
        if is_too_much and connection.must_be_read:
            self._put_into_file(send)
        connection.stalled_bytes += send.stalled_bytes

    def _put_into_file(self, send: BlockedSend) -> None:
        """Let a send wait in a temporary file; without room there, only if its connection can wait.

        Raises ResourceAllocationError if it cannot.
        """
        connection = send.connection
        if connection.is_one_way and connection.blocked_sends >= _BRIDGED_SENDS_MAX:
            return
        if self._context.store.spool([send.reference]):
            send.reference.message = None
            send.stalled_bytes = 0
        elif not connection.is_one_way:
            raise self._refusal(send)

    def _refusal(self, send: BlockedSend) -> ResourceAllocationError:
        destination = send.regions[0].destination
        return ResourceAllocationError(
            f"no room for {destination}: {described(self._context.store, send.limit)}"
        )

    def resume(self) -> None:
        """Take what waited, as far as there is room now; each line has its turn to be first."""
        for key in list(self.lines):
            line = self.lines.pop(key)
            with self._context.containment.at("command", key[0]):
                self._advance(line, is_persistent=key[1])
            # What was refused of it may wait in the same place as a dead letter.
            line.extend(self.lines.pop(key, ()))
            if line:
                self.lines[key] = line
        self._set_gate()

    def _advance(self, line: deque[BlockedSend], is_persistent: bool) -> None:
        while line:
            first = line[0]
            limits = [each.limit for each in first.behind if each.is_waiting]
            limit = self._lack(first.regions, is_persistent) or next(iter(limits), None)
            if limit is not None:
                first.limit = limit
                return
            self._admit(line.popleft())

    def _admit(self, send: BlockedSend) -> None:
        """Take a message that waited; whoever sent it learns of what is wrong with it."""
        # Where it goes may have been removed meanwhile, and not every connection was told.
        connection = send.connection
        connection.last_destination = None
        connection.blocked_sends -= 1
        try:
            message = self._end(send)
            try:
                send.take(connection, message, send.receipt, True)
            except BrokerError as refusal:
                connection.refuse_message(message, send.receipt, refusal)
            except Exception as error:
                connection.refuse_message(message, send.receipt, self._noted(send, error))
        except Exception as error:
            connection.refuse(send.receipt, self._noted(send, error))

    def _noted(self, send: BlockedSend, error: Exception) -> BrokerError:
        """Note an error that nobody expected; return what is told of it."""
        self._context.containment.note_error("command", send.key[0], error)
        return internal_error(error)

    def _end(self, send: BlockedSend) -> Message:
        """End the waiting of a send that left its line; returns its message."""
        send.connection.stalled_bytes -= send.stalled_bytes
        send.is_waiting, send.behind = False, ()
        for place in send.places():
            if self._last.get(place) is send:
                del self._last[place]
        if send.timer is not None:
            send.timer.cancel()
        reference, store = send.reference, self._context.store
        if reference.location:
            store.load([reference], self._context.next_sequence())
            store.unspool([reference])
        return reference.loaded

    def _give_up(self, send: BlockedSend) -> None:
        """Refuse a send that waited as long as it was to."""
        self._end(send)
        self._drop(send)
        self._set_gate()
        send.connection.blocked_sends -= 1
        send.connection.refuse(send.receipt, self._refusal(send))

    def forget(self, connection: Connection) -> None:
        """Drop what waited of a connection that is gone."""
        for line in list(self.lines.values()):
            for send in [each for each in line if each.connection is connection]:
                self._end(send)
                self._drop(send)
        self._set_gate()

    def _drop(self, send: BlockedSend) -> None:
        line = self.lines.get(send.key)
        if line is None or send not in line:
            return
        line.remove(send)
        if not line:
            del self.lines[send.key]

    def _set_gate(self) -> None:
        memory = self._context.memory
        memory.gate = 0 if self.lines else memory.limit

    def find(self, identifier: bytes) -> tuple[int, BlockedSend] | None:
        """Return the send that waits with a JMSMessageID, and how many do before it in its line.

        No body is read for that: there may be very many, and large ones, in files.
        """
        mark = hash(identifier)
        for line in self.lines.values():
            for position, send in enumerate(line):
                if send.mark == mark:
                    return position, send
        return None

    def count_blocked(self, destination: Destination) -> int:
        """Return how many persistent messages for *destination* wait."""
        return len(self.lines.get((destination, True), ()))

    def blocked(self) -> list[Blocked]:
        """Return who waits, for what, since when."""
        return [
            Blocked(
                destination,
                is_persistent,
                line[0].limit,
                line[0].since,
                len(line),
                sum(send.reference.size for send in line),
                tuple(dict.fromkeys(send.connection for send in line)),
            )
            for (destination, is_persistent), line in self.lines.items()
        ]


def _chosen(own: "bool | int | None", general: "bool | int") -> "bool | int":
    return general if own is None else own
