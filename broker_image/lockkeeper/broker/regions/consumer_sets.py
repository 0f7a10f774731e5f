"""Interests that consumers share, sub-queues of messages, and sets of consumers that share those.

Messages are ordered by their rank (the negative of their level where priorities count, else 0)
and then by their number in the queue: the smallest comes first.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from lockkeeper.broker.message_properties import property_lookup

if TYPE_CHECKING:
    from lockkeeper.broker.policies.message_groups import GroupKey
    from lockkeeper.broker.selectors import Lookup
    from lockkeeper.broker.subscriptions.consumer import Consumer
    from lockkeeper.message.message import Message
    from lockkeeper.store.base import Reference


class Interest:
    """Consumers with the same selector: each message is judged once for all of them.

    Those that do not want their own connection's messages share one only within it.
    """

    __slots__ = ("consumers", "judge")

    def __init__(self, consumer: "Consumer") -> None:
        self.judge = consumer
        self.consumers = [consumer]


class WaysBack(Protocol):
    """Bridges of a queue, as its interests know them."""

    def ways_back(
        self, interests: "Iterable[Interest]", message: "Message", lookup: "Lookup"
    ) -> tuple[Interest, ...]:
        """Return by whom a message may go back that nobody takes here, and no bridge onwards."""


class Interests:
    """Interests of a queue's consumers; the `plain` ones want everything.

    An interest stays known when its last consumer leaves, for one that comes with the same.
    """

    __slots__ = ("_interests", "plain")

    def __init__(self) -> None:
        self._interests: dict[object, Interest] = {}
        self.plain: list[Consumer] = []

    def add(self, consumer: "Consumer") -> bool:
        """Add a consumer; returns whether it wants what nobody has asked for before."""
        if not consumer.is_selective():
            self.plain.append(consumer)
            return False
        interest = self._interests.get(_key_of(consumer))
        if interest is None:
            self._interests[_key_of(consumer)] = Interest(consumer)
            return True
        interest.consumers.append(consumer)
        return False

    def remove(self, consumer: "Consumer") -> None:
        """Remove a consumer."""
        if consumer.is_selective():
            self._interests[_key_of(consumer)].consumers.remove(consumer)
        else:
            self.plain.remove(consumer)

    def of(self, message: "Message", bridged: WaysBack | None = None) -> tuple[Interest, ...]:
        """Return the interests that want *message*; it is read at most once for all of them.

        If nobody does, those of bridges that it may go back by.
        """
        lookup = property_lookup(message)
        found = tuple(
            interest
            for interest in self._interests.values()
            if interest.judge.accepts(message, lookup)
        )
        if bridged is None or self.plain or any(interest.consumers for interest in found):
            return found
        back = bridged.ways_back(self._interests.values(), message, lookup)
        return back or found


def _key_of(consumer: "Consumer") -> object:
    selector = consumer.selector
    text = None if selector is None else selector.text
    return (text, consumer.connection.identifier if consumer.no_local else None)


class SubQueue:
    """Messages that the same consumers want, of one group (or bucket of groups) or of none.

    An entry is rank, number, message, and whether the message begins its group anew. `consumer_set`
    is None while the sub-queue is empty, or its group's owner does not want it.
    """

    __slots__ = ("consumer_set", "entries", "group", "interests")

    def __init__(self, interests: tuple[Interest, ...], group: "GroupKey | None") -> None:
        self.interests = interests
        self.group = group
        self.entries: list[tuple[int, int, Reference, bool]] = []
        self.consumer_set: ConsumerSet | None = None

    def wanted_by(self, consumer: "Consumer") -> bool:
        """Tell whether a consumer wants the messages of this sub-queue."""
        if not consumer.is_selective():
            return True
        return any(consumer in interest.consumers for interest in self.interests)


class ConsumerSet:
    """Consumers that may take from the same sub-queues.

    They are the owner of the sub-queues' groups, or else all whom `interests` satisfy; `takers` is
    None until that is found out.
    """

    __slots__ = ("_heads", "interests", "number", "takers")

    def __init__(
        self,
        number: int,
        interests: tuple[Interest, ...],
        takers: "list[Consumer] | None" = None,
    ) -> None:
        self.number = number
        self.interests = interests
        self.takers = takers
        self._heads: list[tuple[int, int, SubQueue]] = []

    def enter(self, sub_queue: SubQueue) -> None:
        """Take a sub-queue in, or note that it has another first message."""
        sub_queue.consumer_set = self
        rank, number, _, _ = sub_queue.entries[0]
        heappush(self._heads, (rank, number, sub_queue))

    def first(self) -> SubQueue | None:
        """Return the sub-queue with the first message of all."""
        heads = self._heads
        while heads:
            _, number, sub_queue = heads[0]
            if (
                sub_queue.consumer_set is self
                and sub_queue.entries
                and sub_queue.entries[0][1] == number
            ):
                return sub_queue
            # The message has gone, another came before it, or the sub-queue is elsewhere now.
            heappop(heads)
        return None
