"""All destinations of a broker, and the consumers whose wildcard may match new ones."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import ResourceAllocationError
from lockkeeper.broker.regions.patterns import Patterns, stands_for
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.broker.regions.tree import Tree
from lockkeeper.broker.routing.names import check_name
from lockkeeper.broker.routing.router import Router
from lockkeeper.message.destination import Destination

if TYPE_CHECKING:
    from lockkeeper.broker.subscriptions.consumer import Consumer


class Follower(Protocol):
    """Somebody who is told of each new topic that a wildcard stands for."""

    def extend(self, topics: Sequence[Topic]) -> None:
        """Take in topics that there were not before."""


class Registry:
    """Queues and topics by destination, made when they are first used."""

    def __init__(self, router: Router, destinations_max: int) -> None:
        self._router = router
        self._destinations_max = destinations_max
        self._regions: dict[Destination, Queue | Topic] = {}
        self._wildcards: dict[Consumer, list[Destination]] = {}
        self._tree = Tree()
        self._patterns = Patterns()
        self._followers: list[tuple[Destination, Follower]] = []

    def __iter__(self) -> Iterator[Queue | Topic]:
        """Iterate over all queues and topics."""
        return iter(list(self._regions.values()))

    def find(self, destination: Destination) -> Queue | Topic | None:
        """Return the queue or topic, if it exists."""
        return self._regions.get(destination)

    def find_queue(self, destination: Destination) -> Queue | None:
        """Return the queue, if it exists."""
        region = self._regions.get(destination)
        return region if isinstance(region, Queue) else None

    def find_topic(self, destination: Destination) -> Topic | None:
        """Return the topic, if it exists."""
        region = self._regions.get(destination)
        return region if isinstance(region, Topic) else None

    def open(self, context: Context, destination: Destination) -> Queue | Topic:
        """Return the queue or topic, made now if need be, for a client. Raises BrokerError."""
        region = self._regions.get(destination)
        if region is not None:
            return region
        return self._open_new(context, destination, may_be_wildcard=False)

    def open_claimed(self, context: Context, pattern: Destination) -> None:
        """Make the queue that consumers of *pattern* share, if one is to be. Raises BrokerError."""
        if pattern not in self._regions and self._router.claims(pattern):
            self._open_new(context, pattern, may_be_wildcard=True)

    def _open_new(
        self, context: Context, destination: Destination, may_be_wildcard: bool
    ) -> Queue | Topic:
        check_name(destination, may_be_wildcard)
        if len(self._regions) >= self._destinations_max:
            raise ResourceAllocationError(
                f"the broker has {self._destinations_max} destinations already "
                f"(limits.destinations), so there can be no {destination}"
            )
        return self.ensure(context, destination)

    def ensure(self, context: Context, destination: Destination) -> Queue | Topic:
        """Return the queue or topic, made now if need be, for the broker itself: unchecked."""
        if destination.is_queue:
            return self.ensure_queue(context, destination)
        return self.ensure_topic(context, destination)

    def ensure_queue(self, context: Context, destination: Destination) -> Queue:
        """Do what `ensure` does for the destination of a queue."""
        known = self.find_queue(destination)
        if known is not None:
            return known
        queue = Queue(context, destination)
        if not destination.is_temporary:
            context.store.remember_queue(destination)
        self._begin(queue)
        context.advisories.destination_added(destination)
        return queue

    def ensure_topic(self, context: Context, destination: Destination) -> Topic:
        """Do what `ensure` does for the destination of a topic."""
        known = self.find_topic(destination)
        if known is not None:
            return known
        topic = Topic(context, destination)
        self._begin(topic)
        for pattern, follower in self._followers:
            if stands_for(pattern, destination):
                follower.extend((topic,))
        context.advisories.destination_added(destination)
        return topic

    def _begin(self, region: Queue | Topic) -> None:
        """Let rules and the consumers of wildcards know a new destination."""
        self.add(region)
        self._router.opened(region)
        for consumer in self._patterns.listeners(region.destination):
            if not consumer.browser:
                region.attach(consumer)

    def add(self, region: Queue | Topic) -> None:
        """Add a destination; one of a special kind before anybody asks for it."""
        self._regions[region.destination] = region
        self._tree.add(region)

    def forget(self, destination: Destination) -> None:
        """Remove a destination that nobody uses any more."""
        region = self._regions.pop(destination, None)
        if region is not None:
            self._tree.remove(destination)
            self._router.closed(region)

    def matching(self, pattern: Destination) -> list[Queue | Topic]:
        """Return the destinations that a wildcard stands for now."""
        found = self._tree.matching(pattern)
        if pattern.is_pattern and pattern in self._regions:
            found.append(self._regions[pattern])
        return found

    def matching_topics(self, pattern: Destination) -> list[Topic]:
        """Return the topics that a wildcard stands for now."""
        return [region for region in self.matching(pattern) if isinstance(region, Topic)]

    def watch(self, pattern: Destination, consumer: "Consumer") -> None:
        """Attach *consumer* to every destination that will match *pattern*."""
        self._wildcards.setdefault(consumer, []).append(pattern)
        self._patterns.add(pattern, consumer)

    def is_watched(self, destination: Destination) -> bool:
        """Tell whether the wildcard of some consumer stands for *destination*."""
        return self._patterns.any_fits(destination)

    def unwatch(self, consumer: "Consumer") -> None:
        """Stop attaching *consumer* to new destinations."""
        for pattern in self._wildcards.pop(consumer, ()):
            self._patterns.remove(pattern, consumer)

    def follow(self, pattern: Destination, follower: Follower) -> None:
        """Tell *follower* of every topic to come that matches *pattern*."""
        self._followers.append((pattern, follower))

    def unfollow(self, follower: Follower) -> None:
        """Tell somebody of new topics no more."""
        self._followers = [entry for entry in self._followers if entry[1] is not follower]
