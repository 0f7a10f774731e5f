"""Bridges between streams and JMS: topics that go into streams, streams that feed queues."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from lockkeeper.broker.context import Context
from lockkeeper.broker.routing.rule import QueueFollower, Rule
from lockkeeper.broker.streams.drafts import UNIQUE_KEY
from lockkeeper.broker.streams.feeding import Feeds, check_queues
from lockkeeper.broker.streams.groups import Groups
from lockkeeper.broker.streams.inlets import InletRule, check_topics
from lockkeeper.broker.streams.partition import LOADED_BYTES_MAX
from lockkeeper.broker.streams.settings import StreamSettings
from lockkeeper.broker.streams.stream import Stream
from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.rewrite import producer_of
from lockkeeper.message.text import encode_text

SENT_MESSAGES = 1_000
"""So many of a partition's last messages tell at a start what their producers have sent.

Large ones are fewer: those that fit into what is read at once, LOADED_BYTES_MAX.
"""


class Routing(Protocol):
    """The part of the broker's destinations that bridges are attached to."""

    def route_anew(self, rule: Rule, destinations: Sequence[Destination]) -> None:
        """Ask a rule that came, or that applies to others now, where messages go from here on."""

    def follow_queues(self, follower: QueueFollower) -> None:
        """Tell somebody of the queues that there are, and of those that come and go."""


class Bridges:
    """All bridges of a broker, as the settings of streams name them."""

    def __init__(
        self,
        context: Context,
        groups: Groups,
        count: Callable[[int], None],
        routing: Routing,
    ) -> None:
        self._inlets = InletRule(context, count, routing.route_anew)
        self._feeds = Feeds(context, groups, routing.follow_queues)

    def check(self, settings: StreamSettings) -> None:
        """Raise BrokerError for topics and queues that there can be no bridge to."""
        check_topics(settings.from_topics)
        check_queues(settings.to_queues)

    def adopt(self, stream: Stream) -> None:
        """Have the bridges that a stream's settings ask for, and no others."""
        self._inlets.adopt(stream)
        self._feeds.adopt(stream)

    def forget(self, name: str) -> None:
        """End the bridges of a stream that is deleted."""
        self._inlets.forget(name)
        self._feeds.forget(name)

    def published(self, stream: str) -> None:
        """Hear that there is more of a stream."""
        self._feeds.published(stream)


def tell_sent(streams: Iterable[Stream], note: Callable[[bytes, int], None]) -> None:
    """Tell which numbers of JMS's producers are in streams already; blocks while that is read.

    A client whose broker ended before it was answered sends again what it sent last.
    """
    for stream in streams:
        for partition in stream.partitions if stream.settings.from_topics else ():
            for record in partition.newest(SENT_MESSAGES, LOADED_BYTES_MAX):
                try:
                    name = record.draft.properties.get(UNIQUE_KEY, "")
                except MalformedMessageError:
                    continue
                sent = producer_of(encode_text(name))
                if sent is not None:
                    note(*sent)
