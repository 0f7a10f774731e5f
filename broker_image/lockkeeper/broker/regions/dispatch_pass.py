"""One round of selective dispatch: everybody with room gets the first messages it may take."""

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush, heapreplace
from typing import Protocol

from lockkeeper.broker.context import END_BYTES, LOOK_BYTES, SHARE_BYTES_MAX, Context
from lockkeeper.broker.policies.message_groups import GroupKey
from lockkeeper.broker.regions.consumer_sets import ConsumerSet, SubQueue
from lockkeeper.broker.regions.line import Line
from lockkeeper.broker.regions.priority_queue import PriorityQueue, level_of
from lockkeeper.broker.regions.sub_queues import Selective, SubQueues
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message
from lockkeeper.message.rewrite import first_of_group
from lockkeeper.store.base import Reference


class Dispatching(Selective, Protocol):
    """A queue, as a round of its dispatch knows it."""

    is_active: bool
    destination: Destination
    ready: deque[Reference] | Line | PriorityQueue

    @property
    def context(self) -> Context:
        """The services of the core."""

    def dispatch(self) -> None:
        """Send what consumers have room for."""

    def next_ready(self) -> Reference:
        """Take the next message that no sub-queue has, into memory if it is not there."""

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


class DispatchPass:
    """The room that consumers have, and what each of them will be sent."""

    __slots__ = ("_candidates", "_given", "_hand", "_queue", "_room", "_runs", "_sub_queues")

    def __init__(self, queue: Dispatching, sub_queues: SubQueues) -> None:
        self._queue = queue
        self._sub_queues = sub_queues
        self._room = {
            consumer: room
            for consumer in queue.order.active
            if (room := _room_of(queue, consumer)) > 0
        }
        self._runs: dict[Consumer, tuple[list[Reference], list[Reference]]] = {}
        self._given: list[Reference] = []
        # What is neither in a sub-queue nor given; if anything fails, it has to come back.
        self._hand: Reference | None = None
        self._candidates: list[tuple[int, int, int, ConsumerSet]] = []
        if not queue.context.has_room():
            self._keep_to_the_needy()
        sub_queues.touched.clear()
        for consumer_set in sub_queues.consumer_sets():
            self._consider(consumer_set)

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
        queue, sub_queues = self._queue, self._sub_queues
        context = queue.context
        enough = context.unsent + SHARE_BYTES_MAX
        while self._room and context.unsent < enough:
            sub_queue = self._first()
            if sub_queue is not None and not self._is_outranked(sub_queue):
                self._send(sub_queue)
            elif queue.ready:
                self._hand = queue.next_ready()
                context.unsent += self._hand.size + LOOK_BYTES
                self._sort(self._hand)
            else:
                break
            while sub_queues.touched:
                self._consider(sub_queues.touched.pop())
        for consumer, (references, shown) in self._runs.items():
            queue.hand_over(consumer, references, shown)
        self._number()
        return context.unsent >= enough

    def _sort(self, reference: Reference) -> None:
        """Put a message where those find it who want it; one that cannot be judged ends."""
        try:
            self._sub_queues.sort(reference)
        except Exception as error:
            if reference in self._sub_queues.in_order():
                raise
            self._queue.quarantine(reference, error)

    def _number(self) -> None:
        """Number what was sent in the queue's order, not by consumer: so it would come back."""
        context = self._queue.context
        for reference in self._given:
            context.delivery += 1
            reference.delivery = context.delivery

    def _consider(self, consumer_set: ConsumerSet) -> None:
        """Look at a set's first message when its turn comes, if somebody has room for it."""
        sub_queue = consumer_set.first()
        if sub_queue is not None and self._has_room(consumer_set):
            rank, number, _, _ = sub_queue.entries[0]
            heappush(self._candidates, (rank, number, consumer_set.number, consumer_set))

    def _has_room(self, consumer_set: ConsumerSet) -> bool:
        room = self._room
        return any(consumer in room for consumer in self._sub_queues.takers(consumer_set))

    def _first(self) -> SubQueue | None:
        """Return the sub-queue with the first of all messages that somebody with room may take."""
        candidates = self._candidates
        while candidates:
            rank, number, _, consumer_set = candidates[0]
            sub_queue = consumer_set.first()
            if sub_queue is None or not self._has_room(consumer_set):
                heappop(candidates)
            elif sub_queue.entries[0][:2] != (rank, number):
                heapreplace(
                    candidates, (*sub_queue.entries[0][:2], consumer_set.number, consumer_set)
                )
            else:
                return sub_queue
        return None

    def _is_outranked(self, sub_queue: SubQueue) -> bool:
        """Tell whether a message that is not sorted yet comes first by its priority."""
        queue = self._queue
        if not queue.is_prioritized or not queue.ready:
            return False
        return -level_of(queue.ready[0]) < sub_queue.entries[0][0]

    def _send(self, sub_queue: SubQueue) -> None:
        """Send the first message of a sub-queue to whoever of those with room is next."""
        queue, sub_queues, consumer_set, begins = (
            self._queue,
            self._sub_queues,
            sub_queue.consumer_set,
            sub_queue.entries[0][3],
        )
        assert consumer_set is not None
        reference = self._hand = sub_queues.take_first(sub_queue)
        if queue.is_expired(reference.loaded):
            queue.context.unsent += END_BYTES
            queue.expire(reference)
            sub_queues.place(sub_queue)
            return
        willing = [
            consumer for consumer in sub_queues.takers(consumer_set) if consumer in self._room
        ]
        if sub_queue.group is None:
            self._give(queue.order.choose(willing), reference, reference)
            sub_queues.place(sub_queue)
        else:
            self._send_of_group(sub_queue.group, reference, begins, willing)

    def _send_of_group(
        self, key: GroupKey, reference: Reference, begins: bool, willing: list[Consumer]
    ) -> None:
        """Send a message to its group's owner, which may be found, or be owner no more, by it."""
        owners, sub_queues = self._queue.groups, self._sub_queues
        assert owners is not None
        message, shown = reference.loaded, reference
        owner = None if begins else owners.owner(key)
        if owner is not None:
            consumer = owner
        else:
            consumer = self._queue.order.choose(willing, owners)
            shown = Reference(first_of_group(message), reference.size)
            shown.redeliveries = reference.redeliveries
        if message.group_sequence < 0:
            owners.release(key)
        elif owner is None:
            forgotten = owners.assign(key, consumer)
            if forgotten is not None:
                sub_queues.place_group(forgotten)
        else:
            owners.touch(key)
        self._give(consumer, reference, shown)
        sub_queues.place_group(key)

    def _give(self, consumer: Consumer, reference: Reference, shown: Reference) -> None:
        references, shown_ones = self._runs.setdefault(consumer, ([], []))
        references.append(reference)
        self._given.append(reference)
        self._queue.context.unsent += reference.size
        shown_ones.append(shown)
        self._room[consumer] -= 1
        if not self._room[consumer]:
            del self._room[consumer]


def _room_of(queue: Dispatching, consumer: Consumer) -> int:
    """Return how many messages a consumer may be sent now."""
    return consumer.credit() if queue.bridged is None else queue.bridged.room(consumer)
