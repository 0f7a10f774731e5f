"""Replay for a new listener of advisories: everything that exists already."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Final, NamedTuple, Protocol, TypeAlias

from lockkeeper.broker.advisories.destination_replay import DestinationReplay
from lockkeeper.broker.advisories.names import (
    CONNECTIONS,
    DESTINATIONS,
    NETWORK_BRIDGES,
    PREFIX,
    About,
    advisory_topic,
    is_advisory,
)
from lockkeeper.broker.advisories.structures import (
    bridge_info,
    bridge_properties,
    connection_info,
    consumer_info,
    destination_info,
    producer_info,
)
from lockkeeper.broker.advisories.virtual_demand import VirtualDemand
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import Context
from lockkeeper.broker.regions.registry import Registry
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.message.destination import Destination, Kind, path_matches, paths_overlap, topic
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import Structure
from lockkeeper.message.primitives import Value

LASTING: Final = (Kind.QUEUE, Kind.TOPIC)


class Making(Protocol):
    """Maker of advisory messages; see `Advisories`."""

    def compose(
        self,
        target: Destination,
        content: Structure | None,
        properties: Mapping[str, Value] = ...,
        reader: Consumer | None = None,
    ) -> Message:
        """Return an advisory, for one *reader* alone if there is one."""

    def producer_count(self, destination: Destination) -> Mapping[str, Value]:
        """Return how many producers have this destination, as the property that says."""

    def consumer_count(self, destination: Destination) -> Mapping[str, Value]:
        """Return how many consumers a destination has, as the property that says."""


class News(NamedTuple):
    """Something that exists: where it is told of, and how; `message` if that is known."""

    target: Destination
    content: Structure
    properties: Mapping[str, Value]
    message: Message | None = None


_Listens: TypeAlias = Callable[[Destination], bool]
_Source: TypeAlias = Callable[[_Listens], Iterator[News]]
_Sources: TypeAlias = tuple[tuple[_Source, tuple[Destination, ...]], ...]


class Replay:
    """Looks up what exists; *temporary* are the owners of temporary destinations.

    Each client that is written for ActiveMQ asks for those, as soon as it is connected: what it
    is told is made once for all of them, or many that come back at once would take very long.
    """

    def __init__(
        self,
        context: Context,
        advisories: Making,
        registry: Registry,
        connections: Mapping[str, Connection],
        temporary: Mapping[Destination, Connection],
        virtual: VirtualDemand,
    ) -> None:
        self._context = context
        self._advisories = advisories
        self._registry = registry
        self._connections = connections
        self._temporary = temporary
        self._virtual = virtual
        self._of_temporary: dict[Destination, tuple[Connection, News]] = {}
        self._under_way: dict[DestinationReplay, None] = {}
        self._before: _Sources = (
            (self._connected, (CONNECTIONS,)),
            (self._bridged, (NETWORK_BRIDGES,)),
            (self._lent, (DESTINATIONS[Kind.TEMP_QUEUE], DESTINATIONS[Kind.TEMP_TOPIC])),
        )
        self._after: _Sources = (
            (self._producers, (topic(PREFIX + "Producer.>"),)),
            (self._consumers, (topic(PREFIX + "Consumer.>"),)),
            (self._virtual_consumers, (topic(PREFIX + "VirtualDestination.Consumer.>"),)),
        )

    def tell_consumer(self, consumer: Consumer, source: Destination) -> None:
        """Tell a new *consumer* of *source*, an advisory topic or a wildcard, what exists."""
        self._tell_of(self._before, consumer, source)
        self._tell_of_destinations(consumer, source)
        self._tell_of(self._after, consumer, source)

    def ends(self, destination: Destination) -> None:
        """Have listeners know of a destination whose end they are told of next, and forget it."""
        self._of_temporary.pop(destination, None)
        for replay in self._under_way:
            replay.ends(destination)

    def _tell_of(self, sources: _Sources, consumer: Consumer, source: Destination) -> None:
        told = [
            self._made_of(news, consumer)
            for find, about in sources
            if any(paths_overlap(one.path, source.path) for one in about)
            for news in find(partial(_is_listened_to, source))
        ]
        if told:
            self._hand_over(told, consumer, source)

    def _tell_of_destinations(self, consumer: Consumer, source: Destination) -> None:
        kinds = [each for each in LASTING if _is_listened_to(source, DESTINATIONS[each])]
        if not kinds:
            return
        there = (region.destination for region in self._registry)
        wanted = [each for each in there if each.kind in kinds and not is_advisory(each)]
        tell = partial(self._tell_of_some, consumer, source)
        replay = DestinationReplay(self._context, wanted, tell, self._is_over)
        if replay.is_under_way:
            self._under_way[replay] = None

    def _is_over(self, replay: DestinationReplay) -> None:
        self._under_way.pop(replay, None)

    def _tell_of_some(
        self, consumer: Consumer, source: Destination, destinations: Sequence[Destination]
    ) -> bool:
        """Tell a consumer of some destinations; returns False when it is gone."""
        if consumer.closed:
            return False
        told = []
        for destination in destinations:
            content = destination_info(destination, None, removed=False)
            target = DESTINATIONS[destination.kind]
            told.append(self._advisories.compose(target, content, {}, consumer))
        return self._hand_over(told, consumer, source)

    def _hand_over(self, told: Sequence[Message], consumer: Consumer, source: Destination) -> bool:
        """Offer a consumer what it alone is told; returns False when it is gone."""
        region = self._registry.find_topic(source)
        if region is None:
            return False
        for message in told:
            message.destination = region.destination
        own = [each for each in region.volatiles if each.consumer is consumer]
        for subscription in own:
            region.replay(subscription, told)
        return bool(own)

    def _made_of(self, news: News, consumer: Consumer) -> Message:
        """Return a message of a consumer's own."""
        made = news.message
        if made is None:
            return self._advisories.compose(news.target, news.content, news.properties, consumer)
        return Message(made.body, made.lead, made.sequence, made.flags_at, made.expiration)

    def _connected(self, listens: _Listens) -> Iterator[News]:
        for connection in self._connections.values():
            yield News(CONNECTIONS, connection_info(connection), {})

    def _bridged(self, listens: _Listens) -> Iterator[News]:
        for connection in self._connections.values():
            peer = connection.network
            if peer is not None and peer.is_forwarded_to:
                said = bridge_properties(connection, peer)
                yield News(NETWORK_BRIDGES, bridge_info(peer), said)

    def _lent(self, listens: _Listens) -> Iterator[News]:
        known, self._of_temporary = self._of_temporary, {}
        for destination, owner in self._temporary.items():
            maker, news = known.get(destination, (None, None))
            target = DESTINATIONS[destination.kind]
            is_wanted = listens(target)
            if news is None or maker is not owner:
                if not is_wanted:
                    continue
                content = destination_info(destination, owner, removed=False)
                message = self._advisories.compose(target, content)
                news = News(target, content, {}, message)
            self._of_temporary[destination] = owner, news
            if is_wanted:
                yield news

    def _producers(self, listens: _Listens) -> Iterator[News]:
        for connection in self._connections.values():
            for producer, destination in connection.producers.items():
                if destination is None or is_advisory(destination):
                    continue
                target = advisory_topic(About.PRODUCER, destination)
                if listens(target):
                    count = self._advisories.producer_count(destination)
                    yield News(target, producer_info(producer, destination), count)

    def _consumers(self, listens: _Listens) -> Iterator[News]:
        for connection in self._connections.values():
            for consumer in connection.consumers.values():
                if is_advisory(consumer.destination):
                    continue
                target = advisory_topic(About.CONSUMER, consumer.destination)
                if listens(target):
                    count = self._advisories.consumer_count(consumer.destination)
                    yield News(target, consumer_info(consumer), count)

    def _virtual_consumers(self, listens: _Listens) -> Iterator[News]:
        consumers = (
            self._virtual.of_consumer(consumer)
            for connection in self._connections.values()
            for consumer in connection.consumers.values()
            if not is_advisory(consumer.destination)
        )
        for source, info in chain(*consumers, self._virtual.of_queues()):
            target = advisory_topic(About.VIRTUAL_CONSUMER, source)
            if listens(target):
                yield News(target, info, self._advisories.consumer_count(source))


def _is_listened_to(source: Destination, target: Destination) -> bool:
    """Tell whether who listens to *source*, a wildcard perhaps, listens to *target*."""
    return target == source or path_matches(source.path, target.path)
