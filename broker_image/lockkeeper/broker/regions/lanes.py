"""Selective dispatch: messages sorted by who may get them, by selectors and message groups.

Every message is looked at once. It goes to the lane of exactly those consumers that want it,
each group to lanes of its own, so one that nobody wants, or whose consumers are all busy, keeps
nobody else waiting. Lanes that the same consumers may take from are a pool: a group's lanes are
in its owner's, and in that of all who want them when the group is closed or its owner leaves.
"""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import chain
from typing import Protocol

from lockkeeper.broker.policies.message_groups import GroupKey, GroupOwners
from lockkeeper.broker.regions.levels import level_of
from lockkeeper.broker.regions.pools import Lane, Pool, Taste, Tastes
from lockkeeper.broker.regions.residency import Residency
from lockkeeper.broker.regions.turns import Turns
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.message.message import Message
from lockkeeper.store.base import Reference

PAGE_MESSAGES_MAX = 100
# The JMSXGroupSeq of a message that begins its group anew, whoever owns it.
GROUP_BEGINS = 1
# What was given back is numbered by its delivery, from here on: below all new messages.
GIVEN_BACK = -(1 << 62)


class Selective(Protocol):
    """A queue, as its lanes know it."""

    is_prioritized: bool
    groups: GroupOwners | None

    @property
    def consumers(self) -> Sequence[Consumer]:
        """Who takes messages."""

    @property
    def residency(self) -> Residency:
        """Where bodies are read back to."""

    @property
    def turns(self) -> Turns:
        """Who is next."""

    def page_messages(self) -> int:
        """Return how many bodies may be read back at once."""

    def meet_groups(self) -> GroupOwners:
        """Keep groups together from now on; returns who owns them."""


class Lanes:
    """The lanes of one queue; made anew when a consumer comes that wants something new.

    `size` counts the messages in them. `touched` are pools with another first message than
    before, until somebody clears it.
    """

    __slots__ = (
        "_back",
        "_by_group",
        "_lanes",
        "_number",
        "_owned",
        "_pools",
        "_queue",
        "_tastes",
        "size",
        "touched",
    )

    def __init__(self, queue: Selective) -> None:
        self._queue = queue
        self._tastes = Tastes()
        for consumer in queue.consumers:
            self._tastes.add(consumer)
        self._lanes: dict[tuple[tuple[Taste, ...], GroupKey | None], Lane] = {}
        self._by_group: dict[GroupKey, list[Lane]] = {}
        self._pools: dict[tuple[Taste, ...], Pool] = {}
        self._owned: dict[Consumer, Pool] = {}
        self._back = self._number = 0
        self.size = 0
        self.touched: list[Pool] = []

    def in_order(self) -> list[Reference]:
        """Return what waits in all lanes, in the queue's order."""
        entries = [entry for lane in self._lanes.values() for entry in lane.entries]
        entries.sort(key=lambda entry: entry[:2])
        return [entry[2] for entry in entries]

    # Consumers

    def join(self, consumer: Consumer) -> bool:
        """Let a consumer take part; returns False when all must be sorted anew for it."""
        is_known = not self._tastes.add(consumer)
        self._rearrange()
        return is_known

    def leave(self, consumer: Consumer) -> None:
        """End a consumer's part; its groups are for somebody else."""
        self._tastes.remove(consumer)
        self._release_groups(consumer)
        self._rearrange()

    def _rearrange(self) -> None:
        """Find out anew who may take, now that others take part."""
        for pool in self._pools.values():
            pool.takers = None
        owners, exclusive = self._queue.groups, self._queue.turns.exclusive
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

    def pools(self) -> Iterable[Pool]:
        """Return all pools."""
        return chain(self._pools.values(), self._owned.values())

    def takers(self, pool: Pool) -> list[Consumer]:
        """Return who may take from a pool, in the order in which they came."""
        if pool.takers is None:
            tastes = (taste.consumers for taste in pool.tastes)
            willing = {*self._tastes.plain, *chain.from_iterable(tastes)}
            pool.takers = [each for each in self._queue.turns.active if each in willing]
        return pool.takers

    # Messages

    def sort(self, reference: Reference) -> None:
        """Put a message, which is in memory, into its lane, behind all others."""
        if reference.delivery < 0:
            self._insert(reference, GIVEN_BACK - reference.delivery)
        else:
            self._back += 1
            self._insert(reference, self._back)

    def give_back(self, references: Sequence[Reference]) -> None:
        """Take messages that were sent before: by that they are ordered, ahead of new ones."""
        unloaded = [reference for reference in references if reference.message is None]
        self._queue.residency.load(unloaded)
        for reference in references:
            self._insert(reference, GIVEN_BACK - reference.delivery)

    def take(self, lane: Lane) -> Reference:
        """Take the first message of a lane, into memory if it is not there.

        Afterwards the lane is without a place: `place` or `place_group` gives it one.
        """
        if lane.entries[0][2].message is None:
            self._load_page(lane)
        self.size -= 1
        return heappop(lane.entries)[2]

    def _load_page(self, lane: Lane) -> None:
        # A heap that was filled in order is in order; it need not be exact for reading ahead.
        count = min(PAGE_MESSAGES_MAX, self._queue.page_messages())
        page = [entry[2] for entry in lane.entries[:count]]
        self._queue.residency.load([each for each in page if each.message is None])

    def _insert(self, reference: Reference, number: int) -> None:
        message = reference.loaded
        group = message.group
        key = None if group is None else self._queue.meet_groups().key(group)
        begins = key is not None and message.group_sequence == GROUP_BEGINS
        lane = self._lane(self._tastes.of(message), key)
        rank = -level_of(reference) if self._queue.is_prioritized else 0
        heappush(lane.entries, (rank, number, reference, begins))
        self.size += 1
        if lane.entries[0][1] == number:
            self.place(lane)

    def _lane(self, tastes: tuple[Taste, ...], key: GroupKey | None) -> Lane:
        lane = self._lanes.get((tastes, key))
        if lane is None:
            lane = self._lanes[tastes, key] = Lane(tastes, key)
            if key is not None:
                self._by_group.setdefault(key, []).append(lane)
        return lane

    def ahead(self, reference: Reference, message: Message) -> Reference | None:
        """Return what must go before a message of a group, because it is the group's, too."""
        owners, group = self._queue.groups, message.group
        if owners is None or group is None:
            return None
        lane = self._lanes.get((self._tastes.of(message), owners.key(group)))
        if lane is None or not lane.entries or lane.entries[0][2] is reference:
            return None
        return lane.entries[0][2]

    # Where lanes are

    def place(self, lane: Lane) -> None:
        """Enter a lane, the first message of which is new, where it belongs."""
        if not lane.entries:
            self._drop(lane)
            return
        pool = self._pool_for(lane)
        if pool is None:
            lane.pool = None
        else:
            pool.enter(lane)
            self.touched.append(pool)

    def place_group(self, key: GroupKey) -> None:
        """Enter all lanes of a group where they belong, now that its owner is another."""
        for lane in list(self._by_group.get(key, ())):
            self.place(lane)

    def _pool_for(self, lane: Lane) -> Pool | None:
        """Return the pool of those who may take from a lane; None while its owner will not."""
        owners = self._queue.groups
        owner = None
        if lane.group is not None and owners is not None and not lane.entries[0][3]:
            owner = owners.owner(lane.group)
        if owner is None:
            if lane.tastes not in self._pools:
                self._pools[lane.tastes] = Pool(self._next_number(), lane.tastes)
            return self._pools[lane.tastes]
        if not lane.wanted_by(owner):
            return None
        if owner not in self._owned:
            self._owned[owner] = Pool(self._next_number(), (), [owner])
        return self._owned[owner]

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _drop(self, lane: Lane) -> None:
        """Forget an empty lane of a group; there may be any number of groups."""
        lane.pool = None
        if lane.group is None:
            return
        del self._lanes[lane.tastes, lane.group]
        siblings = self._by_group[lane.group]
        siblings.remove(lane)
        if not siblings:
            del self._by_group[lane.group]
