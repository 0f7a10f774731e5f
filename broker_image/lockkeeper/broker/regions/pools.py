"""Parts of lanes: tastes that consumers share, lanes of messages, pools of lanes.

Messages are ordered by their rank (the negative of their level where priorities count, else 0)
and then by their number in the queue: the smallest comes first.
"""

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from lockkeeper.broker.message_properties import property_lookup

if TYPE_CHECKING:
    from lockkeeper.broker.policies.message_groups import GroupKey
    from lockkeeper.broker.subscriptions.consumer import Consumer
    from lockkeeper.message.message import Message
    from lockkeeper.store.base import Reference


class Taste:
    """Consumers with the same selector: each message is judged once for all of them.

    Those that do not want their own connection's messages share one only within it.
    """

    __slots__ = ("consumers", "judge")

    def __init__(self, consumer: "Consumer") -> None:
        self.judge = consumer
        self.consumers = [consumer]


class Tastes:
    """What the consumers of a queue want: `plain` ones everything, others what is to their taste.

    A taste stays known when its last consumer leaves, for one that comes with the same.
    """

    __slots__ = ("_tastes", "plain")

    def __init__(self) -> None:
        self._tastes: dict[object, Taste] = {}
        self.plain: list[Consumer] = []

    def add(self, consumer: "Consumer") -> bool:
        """Add a consumer; returns whether it wants what nobody has asked for before."""
        if not consumer.is_selective():
            self.plain.append(consumer)
            return False
        taste = self._tastes.get(_key_of(consumer))
        if taste is None:
            self._tastes[_key_of(consumer)] = Taste(consumer)
            return True
        taste.consumers.append(consumer)
        return False

    def remove(self, consumer: "Consumer") -> None:
        """Remove a consumer."""
        if consumer.is_selective():
            self._tastes[_key_of(consumer)].consumers.remove(consumer)
        else:
            self.plain.remove(consumer)

    def of(self, message: "Message") -> tuple[Taste, ...]:
        """Return the tastes that *message* is to; it is read at most once for all of them."""
        lookup = property_lookup(message)
        return tuple(
            taste for taste in self._tastes.values() if taste.judge.accepts(message, lookup)
        )


def _key_of(consumer: "Consumer") -> object:
    selector = consumer.selector
    text = None if selector is None else selector.text
    return (text, consumer.connection.identifier if consumer.no_local else None)


class Lane:
    """Messages that the same consumers want, of one group (or bucket of groups) or of none.

    An entry is rank, number, message, and whether the message begins its group anew. `pool` is
    None while the lane is empty, or its group's owner does not want it.
    """

    __slots__ = ("entries", "group", "pool", "tastes")

    def __init__(self, tastes: tuple[Taste, ...], group: "GroupKey | None") -> None:
        self.tastes = tastes
        self.group = group
        self.entries: list[tuple[int, int, Reference, bool]] = []
        self.pool: Pool | None = None

    def wanted_by(self, consumer: "Consumer") -> bool:
        """Tell whether a consumer wants the messages of this lane."""
        if not consumer.is_selective():
            return True
        return any(consumer in taste.consumers for taste in self.tastes)


class Pool:
    """Lanes from which the same consumers may take.

    They are the owner of the lanes' groups, or else all whom `tastes` satisfy; `takers` is None
    until that is found out.
    """

    __slots__ = ("_heads", "number", "takers", "tastes")

    def __init__(
        self, number: int, tastes: tuple[Taste, ...], takers: "list[Consumer] | None" = None
    ) -> None:
        self.number = number
        self.tastes = tastes
        self.takers = takers
        self._heads: list[tuple[int, int, Lane]] = []

    def enter(self, lane: Lane) -> None:
        """Take a lane in, or note that it has another first message."""
        lane.pool = self
        rank, number, _, _ = lane.entries[0]
        heappush(self._heads, (rank, number, lane))

    def first(self) -> Lane | None:
        """Return the lane with the first message of all."""
        heads = self._heads
        while heads:
            _, number, lane = heads[0]
            if lane.pool is self and lane.entries and lane.entries[0][1] == number:
                return lane
            # The message has gone, another came before it, or the lane is elsewhere now.
            heappop(heads)
        return None
