"""One round of selective dispatch: everybody with room gets the first messages it may take."""

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush, heapreplace
from typing import Protocol

from lockkeeper.broker.context import END_BYTES, LOOK_BYTES, SHARE_BYTES_MAX, Context
from lockkeeper.broker.policies.message_groups import GroupKey
from lockkeeper.broker.regions.lanes import Lanes, Selective
from lockkeeper.broker.regions.levels import Levels, level_of
from lockkeeper.broker.regions.line import Line
from lockkeeper.broker.regions.pools import Lane, Pool
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message
from lockkeeper.message.rewrite import first_of_group
from lockkeeper.store.base import Reference


class Dispatching(Selective, Protocol):
    """A queue, as a round of its dispatch knows it."""

    is_active: bool
    destination: Destination
    ready: deque[Reference] | Line | Levels

    @property
    def context(self) -> Context:
        """The services of the core."""

    def dispatch(self) -> None:
        """Send what consumers have room for."""

    def next_ready(self) -> Reference:
        """Take the next message that no lane has, into memory if it is not there."""

    def is_expired(self, message: Message) -> bool:
        """Tell whether the message's time is over."""

    def expire(self, reference: Reference) -> None:
        """End a message whose time is over."""

    def quarantine(self, reference: Reference, error: Exception) -> None:
        """End a message that cannot be read, and keep its bytes."""

    def put_back(self, taken: Iterable[Reference]) -> None:
        """Let those wait again that nobody has and that have not ended."""

    def hand_over(
        self, consumer: Consumer, references: list[Reference], shown: list[Reference]
    ) -> None:
        """Send messages that are in memory and not expired."""


class Round:
    """The room that consumers have, and what each of them will be sent."""

    __slots__ = ("_candidates", "_given", "_hand", "_lanes", "_queue", "_room", "_runs")

    def __init__(self, queue: Dispatching, lanes: Lanes) -> None:
        self._queue = queue
        self._lanes = lanes
        self._room = {
            consumer: room for consumer in queue.turns.active if (room := consumer.credit()) > 0
        }
        self._runs: dict[Consumer, tuple[list[Reference], list[Reference]]] = {}
        self._given: list[Reference] = []
        # What is neither in a lane nor given; if anything fails, it has to come back.
        self._hand: Reference | None = None
        self._candidates: list[tuple[int, int, int, Pool]] = []
        if not queue.context.has_room():
            self._keep_to_the_needy()
        lanes.touched.clear()
        for pool in lanes.pools():
            self._consider(pool)

    def _keep_to_the_needy(self) -> None:
        """Leave consumers out that hold messages already: there is no memory for more."""
        holding = [consumer for consumer in self._room if consumer.dispatched]
        for consumer in holding:
            del self._room[consumer]
        if holding:
            self._queue.context.starve(self._queue)

    def run(self) -> bool:
        """Send what can be sent; returns whether there is more to look at in another round."""
        try:
            return self._run()
        except Exception:
            hand = () if self._hand is None else (self._hand,)
            self._queue.put_back([*self._given, *hand])
            raise

    def _run(self) -> bool:
        queue, lanes = self._queue, self._lanes
        context = queue.context
        enough = context.unsent + SHARE_BYTES_MAX
        while self._room and context.unsent < enough:
            lane = self._first()
            if lane is not None and not self._is_outranked(lane):
                self._send(lane)
            elif queue.ready:
                self._hand = queue.next_ready()
                context.unsent += self._hand.size + LOOK_BYTES
                self._sort(self._hand)
            else:
                break
            while lanes.touched:
                self._consider(lanes.touched.pop())
        for consumer, (references, shown) in self._runs.items():
            queue.hand_over(consumer, references, shown)
        self._number()
        return context.unsent >= enough

    def _sort(self, reference: Reference) -> None:
        """Put a message where those find it who want it; one that cannot be judged ends."""
        try:
            self._lanes.sort(reference)
        except Exception as error:
            if reference in self._lanes.in_order():
                raise
            self._queue.quarantine(reference, error)

    def _number(self) -> None:
        """Number what was sent in the queue's order, not by consumer: so it would come back."""
        context = self._queue.context
        for reference in self._given:
            context.delivery += 1
            reference.delivery = context.delivery

    def _consider(self, pool: Pool) -> None:
        """Look at a pool's first message when its turn comes, if somebody has room for it."""
        lane = pool.first()
        if lane is not None and self._has_room(pool):
            rank, number, _, _ = lane.entries[0]
            heappush(self._candidates, (rank, number, pool.number, pool))

    def _has_room(self, pool: Pool) -> bool:
        room = self._room
        return any(consumer in room for consumer in self._lanes.takers(pool))

    def _first(self) -> Lane | None:
        """Return the lane with the first of all messages that somebody with room may take."""
        candidates = self._candidates
        while candidates:
            rank, number, _, pool = candidates[0]
            lane = pool.first()
            if lane is None or not self._has_room(pool):
                heappop(candidates)
            elif lane.entries[0][:2] != (rank, number):
                heapreplace(candidates, (*lane.entries[0][:2], pool.number, pool))
            else:
                return lane
        return None

    def _is_outranked(self, lane: Lane) -> bool:
        """Tell whether a message that is not sorted yet comes first by its priority."""
        queue = self._queue
        if not queue.is_prioritized or not queue.ready:
            return False
        return -level_of(queue.ready[0]) < lane.entries[0][0]

    def _send(self, lane: Lane) -> None:
        """Send the first message of a lane to whoever of those with room is next."""
        queue, lanes, pool, begins = self._queue, self._lanes, lane.pool, lane.entries[0][3]
        assert pool is not None
        reference = self._hand = lanes.take(lane)
        if queue.is_expired(reference.loaded):
            queue.context.unsent += END_BYTES
            queue.expire(reference)
            lanes.place(lane)
            return
        willing = [consumer for consumer in lanes.takers(pool) if consumer in self._room]
        if lane.group is None:
            self._give(queue.turns.choose(willing), reference, reference)
            lanes.place(lane)
        else:
            self._send_of_group(lane.group, reference, begins, willing)

    def _send_of_group(
        self, key: GroupKey, reference: Reference, begins: bool, willing: list[Consumer]
    ) -> None:
        """Send a message to its group's owner, which may be found, or be owner no more, by it."""
        owners, lanes = self._queue.groups, self._lanes
        assert owners is not None
        message, shown = reference.loaded, reference
        owner = None if begins else owners.owner(key)
        if owner is not None:
            consumer = owner
        else:
            consumer = self._queue.turns.choose(willing, owners)
            shown = Reference(first_of_group(message), reference.size)
            shown.redeliveries = reference.redeliveries
        if message.group_sequence < 0:
            owners.release(key)
        elif owner is None:
            forgotten = owners.assign(key, consumer)
            if forgotten is not None:
                lanes.place_group(forgotten)
        else:
            owners.touch(key)
        self._give(consumer, reference, shown)
        lanes.place_group(key)

    def _give(self, consumer: Consumer, reference: Reference, shown: Reference) -> None:
        references, shown_ones = self._runs.setdefault(consumer, ([], []))
        references.append(reference)
        self._given.append(reference)
        self._queue.context.unsent += reference.size
        shown_ones.append(shown)
        self._room[consumer] -= 1
        if not self._room[consumer]:
            del self._room[consumer]
