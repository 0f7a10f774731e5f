"""Selective dispatch: messages sorted by who may get them, by selectors and message groups.

Every message is looked at once. It goes to the sub-queue of exactly those consumers that want it,
and each group to sub-queues of its own. So one that nobody wants, or whose consumers are all busy,
keeps nobody else waiting. Sub-queues that the same consumers may take from share a consumer set: a
group's sub-queues are in its owner's, and in that of all who want them when the group is closed or
its owner leaves.
"""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Protocol

from lockkeeper.broker.policies.message_groups import GroupKey, GroupOwners
from lockkeeper.broker.regions.body_cache import BodyCache
from lockkeeper.broker.regions.consumer_sets import (
    ConsumerSet,
    Interest,
    Interests,
    SubQueue,
)
from lockkeeper.broker.regions.dispatch_order import DispatchOrder
from lockkeeper.broker.regions.priority_queue import level_of
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.message.message import Message
from lockkeeper.store.base import Reference

if TYPE_CHECKING:
    from lockkeeper.broker.regions.bridged import Bridged

PAGE_MESSAGES_MAX: Final = 100
# The JMSXGroupSeq of a message that begins its group anew, whoever owns it.
GROUP_BEGINS: Final = 1
# What was given back is numbered by its delivery, from here on: below all new messages.
GIVEN_BACK: Final = -(1 << 62)


class Selective(Protocol):
    """A queue, as its sub-queues know it."""

    is_prioritized: bool
    groups: GroupOwners | None

    @property
    def consumers(self) -> Sequence[Consumer]:
        """Consumers that take messages."""

    @property
    def body_cache(self) -> BodyCache:
        """Cache that bodies are read back to."""

    @property
    def order(self) -> DispatchOrder:
        """Order of the consumers."""

    @property
    def bridged(self) -> "Bridged | None":
        """Policy for bridges, if there is one."""

    def page_messages(self) -> int:
        """Return how many bodies may be read back at once."""

    def meet_groups(self) -> GroupOwners:
        """Keep groups together from now on; returns who owns them."""


class SubQueues:
    """The sub-queues of one queue; made anew when a consumer comes that wants something new.

    `size` counts the messages in them. `touched` are consumer sets with another first message than
    before, until somebody clears it.
    """

    __slots__ = (
        "_back",
        "_by_group",
        "_consumer_sets",
        "_interests",
        "_number",
        "_owned",
        "_queue",
        "_sub_queues",
        "size",
        "touched",
    )

    def __init__(self, queue: Selective) -> None:
        self._queue = queue
        self._interests = Interests()
        for consumer in queue.consumers:
            self._interests.add(consumer)
        self._sub_queues: dict[tuple[tuple[Interest, ...], GroupKey | None], SubQueue] = {}
        self._by_group: dict[GroupKey, list[SubQueue]] = {}
        self._consumer_sets: dict[tuple[Interest, ...], ConsumerSet] = {}
        self._owned: dict[Consumer, ConsumerSet] = {}
        self._back = self._number = 0
        self.size = 0
        self.touched: list[ConsumerSet] = []

    def in_order(self) -> list[Reference]:
        """Return what waits in all sub-queues, in the queue's order."""
        entries = [entry for sub_queue in self._sub_queues.values() for entry in sub_queue.entries]
        entries.sort(key=lambda entry: entry[:2])
        return [entry[2] for entry in entries]

    def and_then(self, rest: Iterable[Reference]) -> list[Reference]:
        """Return what waits in all sub-queues, and *rest* that is in none, in the queue's order."""
        waiting = [*self.in_order(), *rest]
        if self._queue.is_prioritized:
            waiting.sort(key=level_of, reverse=True)
        return waiting

    def first(self, other: Reference | None) -> Reference | None:
        """Return which message comes next, where *other* is the first one in no sub-queue."""
        sub_queues = self._sub_queues.values()
        heads = [sub_queue.entries[0] for sub_queue in sub_queues if sub_queue.entries]
        if not heads:
            return other
        first = min(heads, key=itemgetter(0, 1))[2]
        if other is None or not self._queue.is_prioritized or level_of(other) <= level_of(first):
            return first
        return other

    def unwanted(self) -> int:
        """Return how many messages wait that nobody wants who is there."""
        if self._interests.plain:
            return 0
        return sum(
            len(sub_queue.entries)
            for sub_queue in self._sub_queues.values()
            if not any(interest.consumers for interest in sub_queue.interests)
        )

    # Consumers

    def join(self, consumer: Consumer) -> bool:
        """Let a consumer take part; returns False when all must be sorted anew for it."""
        is_known = not self._interests.add(consumer)
        self._rearrange()
        return is_known

    def leave(self, consumer: Consumer) -> None:
        """End a consumer's part; its groups are for somebody else."""
        self._interests.remove(consumer)
        self._release_groups(consumer)
        self._rearrange()

    def _rearrange(self) -> None:
        """Find out anew who may take, now that others take part."""
        for consumer_set in self._consumer_sets.values():
            consumer_set.takers = None
        owners, exclusive = self._queue.groups, self._queue.order.exclusive
        if owners is None or exclusive is None:
            return
        for owner in owners.consumers():
            # Somebody has the queue for itself now, the groups of others too.
            if owner is not exclusive:
                self._release_groups(owner)

    def _release_groups(self, owner: Consumer) -> None:
        owners = self._queue.groups
        for key in () if owners is None else owners.forget(owner):
            self.place_group(key)
        self._owned.pop(owner, None)

    def consumer_sets(self) -> Iterable[ConsumerSet]:
        """Return all consumer sets."""
        return chain(self._consumer_sets.values(), self._owned.values())

    def takers(self, consumer_set: ConsumerSet) -> list[Consumer]:
        """Return who may take from a consumer set, in the order in which they came."""
        if consumer_set.takers is None:
            interests = (interest.consumers for interest in consumer_set.interests)
            willing = {*self._interests.plain, *chain.from_iterable(interests)}
            consumer_set.takers = [each for each in self._queue.order.active if each in willing]
        return consumer_set.takers

    # Messages

    def sort(self, reference: Reference) -> None:
        """Put a message, which is in memory, into its sub-queue, behind all others."""
        if reference.delivery < 0:
            self._insert(reference, GIVEN_BACK - reference.delivery)
        else:
            self._back += 1
            self._insert(reference, self._back)

    def give_back(self, references: Sequence[Reference]) -> None:
        """Take messages that were sent before: by that they are ordered, ahead of new ones."""
        unloaded = [reference for reference in references if reference.message is None]
        self._queue.body_cache.load(unloaded)
        for reference in references:
            self._insert(reference, GIVEN_BACK - reference.delivery)

    def take_first(self, sub_queue: SubQueue) -> Reference:
        """Take the first message of a sub-queue, into memory if it is not there.

        Afterwards the sub-queue is without a place: `place` or `place_group` gives it one.
        """
        if sub_queue.entries[0][2].message is None:
            self._load_page(sub_queue)
        self.size -= 1
        return heappop(sub_queue.entries)[2]

    def _load_page(self, sub_queue: SubQueue) -> None:
        # A heap that was filled in order is in order; it need not be exact for reading ahead.
        count = min(PAGE_MESSAGES_MAX, self._queue.page_messages())
        page = [entry[2] for entry in sub_queue.entries[:count]]
        self._queue.body_cache.load([each for each in page if each.message is None])

    def _insert(self, reference: Reference, number: int) -> None:
        message = reference.loaded
        group = message.group
        key = None if group is None else self._queue.meet_groups().key(group)
        begins = key is not None and message.group_sequence == GROUP_BEGINS
        sub_queue = self._sub_queue(self._interests.of(message, self._queue.bridged), key)
        rank = -level_of(reference) if self._queue.is_prioritized else 0
        heappush(sub_queue.entries, (rank, number, reference, begins))
        self.size += 1
        if sub_queue.entries[0][1] == number:
            self.place(sub_queue)

    def _sub_queue(self, interests: tuple[Interest, ...], key: GroupKey | None) -> SubQueue:
        sub_queue = self._sub_queues.get((interests, key))
        if sub_queue is None:
            sub_queue = self._sub_queues[interests, key] = SubQueue(interests, key)
            if key is not None:
                self._by_group.setdefault(key, []).append(sub_queue)
        return sub_queue

    def ahead(self, reference: Reference, message: Message) -> Reference | None:
        """Return what must go before a message of a group, because it is the group's, too."""
        owners, group = self._queue.groups, message.group
        if owners is None or group is None:
            return None
        interests = self._interests.of(message, self._queue.bridged)
        sub_queue = self._sub_queues.get((interests, owners.key(group)))
        if sub_queue is None or not sub_queue.entries or sub_queue.entries[0][2] is reference:
            return None
        return sub_queue.entries[0][2]

    # Where sub-queues are

    def place(self, sub_queue: SubQueue) -> None:
        """Enter a sub-queue, the first message of which is new, where it belongs."""
        if not sub_queue.entries:
            self._drop(sub_queue)
            return
        consumer_set = self._consumer_set_for(sub_queue)
        if consumer_set is None:
            sub_queue.consumer_set = None
        else:
            consumer_set.enter(sub_queue)
            self.touched.append(consumer_set)

    def place_group(self, key: GroupKey) -> None:
        """Enter all sub-queues of a group where they belong, now that its owner is another."""
        for sub_queue in list(self._by_group.get(key, ())):
            self.place(sub_queue)

    def _consumer_set_for(self, sub_queue: SubQueue) -> ConsumerSet | None:
        """Return who may take from a sub-queue; None while its owner will not."""
        owners = self._queue.groups
        owner = None
        if sub_queue.group is not None and owners is not None and not sub_queue.entries[0][3]:
            owner = owners.owner(sub_queue.group)
        if owner is None:
            if sub_queue.interests not in self._consumer_sets:
                self._consumer_sets[sub_queue.interests] = ConsumerSet(
                    self._next_number(), sub_queue.interests
                )
            return self._consumer_sets[sub_queue.interests]
        if not sub_queue.wanted_by(owner):
            return None
        if owner not in self._owned:
            self._owned[owner] = ConsumerSet(self._next_number(), (), [owner])
        return self._owned[owner]

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _drop(self, sub_queue: SubQueue) -> None:
        """Forget an empty sub-queue of a group; there may be any number of groups."""
        sub_queue.consumer_set = None
        if sub_queue.group is None:
            return
        del self._sub_queues[sub_queue.interests, sub_queue.group]
        siblings = self._by_group[sub_queue.group]
        siblings.remove(sub_queue)
        if not siblings:
            del self._by_group[sub_queue.group]
