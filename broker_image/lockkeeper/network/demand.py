"""Demand: consumers of another broker, and the consumer of ours that stands for them."""

from collections.abc import Iterator
from typing import TypeAlias

from lockkeeper.broker.errors import InvalidSelectorError
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.selectors import Lookup
from lockkeeper.broker.subscriptions.choosing import compiled
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.message.destination import Destination
from lockkeeper.message.openwire import ConsumerId, ConsumerInfo

Subscriber: TypeAlias = tuple[str, str]
"""Client id and name of a durable subscription."""


class Demand:
    """One consumer of ours; the core knows it by this as its tag.

    `remotes` are the consumers it stands for, by their ids; `subscribers` and `forced` are durable
    subscriptions and plain consumers that it is durable for. `outstanding` messages were taken,
    and are not acknowledged here yet. One that `is_ending` takes no more, and goes with the last
    of them.
    """

    __slots__ = (
        "consumer",
        "destination",
        "forced",
        "info",
        "is_ending",
        "is_static",
        "outstanding",
        "priority",
        "remotes",
        "subscribers",
        "subscription_name",
    )

    def __init__(self, info: ConsumerInfo, destination: Destination, priority: int) -> None:
        self.info = info
        self.destination = destination
        self.priority = priority
        self.remotes: dict[ConsumerId, ConsumerInfo] = {}
        self.subscribers: set[Subscriber] = set()
        self.forced: set[ConsumerId] = set()
        self.subscription_name: str | None = None
        self.is_static = False
        self.is_ending = False
        self.outstanding = 0
        self.consumer: Consumer | None = None

    def stands_for(self, ids: frozenset[ConsumerId], destination: Destination) -> bool:
        """Tell whether one of the consumers has one of these ids, and is of *destination*.

        A consumer behind a virtual destination is one of both, by the same id.
        """
        return any(
            each.destination == destination and not ids.isdisjoint(ids_of(each))
            for each in self.remotes.values()
        )

    def nearest(self, lookup: Lookup) -> int | None:
        """Return how many bridges lead to the nearest consumer that wants a message, if one does.

        *lookup* is of the message's properties.
        """
        distances = (
            1 + len(info.broker_path or ())
            for info in self.remotes.values()
            if not _is_of_a_list(info) and _wants(info.selector, lookup)
        )
        return min(distances, default=None)

    def waiting(self) -> int:
        """Return how many messages wait here that our consumer may get, among others perhaps."""
        consumer = self.consumer
        return 0 if consumer is None else sum(each.depth() for each in consumer.backlogs)

    def stranded(self) -> int:
        """Return how many messages wait here that neither a consumer nor a bridge takes."""
        sorted_ones = (queue.sub_queues for queue in self._queues())
        return sum(each.unwanted() for each in sorted_ones if each is not None)

    def judge_again(self) -> None:
        """Find out anew what our consumer may take: it stands for others now."""
        for queue in self._queues():
            if queue.bridged is not None:
                queue.sort_anew()

    def _queues(self) -> Iterator[Queue]:
        backlogs = () if self.consumer is None else self.consumer.backlogs
        return (each for each in backlogs if isinstance(each, Queue))

    def is_needed(self) -> bool:
        """Tell whether anybody at the other end is still interested."""
        return bool(self.is_static or self.remotes or self.subscribers or self.forced)


def _wants(text: str | None, lookup: Lookup) -> bool:
    """Tell whether a selector wants a message; one of a broker that knows others counts as none."""
    try:
        selector = compiled(text)
    except InvalidSelectorError:
        return True
    return selector is None or selector.matches(lookup)


def _is_of_a_list(info: ConsumerInfo) -> bool:
    """Tell whether the first consumer on a way is a bridge's, for destinations that it lists.

    Nobody need consume behind it. It names itself before the bridge's consumer, by the same
    connection; others are of a client's connection, then of a bridge's.
    """
    ids = ids_of(info)
    return len(ids) > 1 and ids[0].connection_id == ids[1].connection_id


def ids_of(info: ConsumerInfo) -> tuple[ConsumerId, ...]:
    """Return all ids by which a network knows a consumer: those on its way here, and its own."""
    own = () if info.consumer_id is None else (info.consumer_id,)
    return (*(info.network_consumer_path or ()), *own)
