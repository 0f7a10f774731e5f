"""All destinations of a broker, and the consumers whose wildcard may match new ones."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import InvalidDestinationError, ResourceAllocationError
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.message.destination import Destination, path_matches

if TYPE_CHECKING:
    from lockkeeper.broker.subscriptions.consumer import Consumer

DESTINATIONS_MAX = 100_000
NAME_CHARACTERS_MAX = 4096


class Registry:
    """Queues and topics by destination, made when they are first used."""

    def __init__(self) -> None:
        self._regions: dict[Destination, Queue | Topic] = {}
        self._wildcards: list[tuple[Destination, Consumer]] = []

    def __iter__(self) -> Iterator[Queue | Topic]:
        """Iterate over all queues and topics."""
        return iter(list(self._regions.values()))

    def find(self, destination: Destination) -> Queue | Topic | None:
        """Return the queue or topic, if it exists."""
        return self._regions.get(destination)

    def open(self, context: Context, destination: Destination) -> Queue | Topic:
        """Return the queue or topic, made now if need be. Raises BrokerError."""
        region = self._regions.get(destination)
        if region is not None:
            return region
        _check_name(destination)
        if len(self._regions) >= DESTINATIONS_MAX:
            raise ResourceAllocationError(f"the broker has {DESTINATIONS_MAX} destinations already")
        make = Queue if destination.is_queue else Topic
        region = self._regions[destination] = make(context, destination)
        for pattern, consumer in self._wildcards:
            if _stands_for(pattern, destination) and not consumer.browser:
                region.attach(consumer)
        return region

    def add(self, region: Queue | Topic) -> None:
        """Add a destination of a special kind, before anybody asks for it."""
        self._regions[region.destination] = region

    def forget(self, destination: Destination) -> None:
        """Remove a destination that nobody uses any more."""
        self._regions.pop(destination, None)

    def matching(self, pattern: Destination) -> list[Queue | Topic]:
        """Return the destinations that a wildcard stands for now."""
        return [region for region in self if _stands_for(pattern, region.destination)]

    def watch(self, pattern: Destination, consumer: "Consumer") -> None:
        """Attach *consumer* to every destination that will match *pattern*."""
        self._wildcards.append((pattern, consumer))

    def unwatch(self, consumer: "Consumer") -> None:
        """Stop attaching *consumer* to new destinations."""
        self._wildcards = [entry for entry in self._wildcards if entry[1] is not consumer]


def _stands_for(pattern: Destination, destination: Destination) -> bool:
    return pattern.kind is destination.kind and path_matches(pattern.path, destination.path)


def _check_name(destination: Destination) -> None:
    name = destination.name
    if not name or len(name) > NAME_CHARACTERS_MAX:
        raise InvalidDestinationError(
            f"a destination's name has 1 to {NAME_CHARACTERS_MAX} characters, not {len(name)}"
        )
    if destination.is_pattern:
        raise InvalidDestinationError(f"a wildcard names no single destination: {destination}")
