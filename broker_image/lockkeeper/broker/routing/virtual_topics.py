"""Virtual topics: queues that each collect what is sent to a topic (ActiveMQ's virtualTopic).

A queue collects from a topic when its name is the topic's between the rule's prefix and postfix:
`Consumer.A.VirtualTopic.NEWS` from `VirtualTopic.NEWS`. A queue that is called like a wildcard,
made by a consumer of that wildcard, collects from all the topics that it stands for.
"""

import re
from dataclasses import dataclass

from lockkeeper.broker.routing.rule import Forward, Hop, Label, Region
from lockkeeper.message.destination import (
    ANY_CHILD,
    ANY_DESCENDANT,
    PATH_SEPARATOR,
    Destination,
    path_matches,
    paths_overlap,
    topic,
)
from lockkeeper.message.message import Message
from lockkeeper.message.rewrite import decoded

ADVISORY_LEVELS = ("ActiveMQ", "Advisory")


@dataclass(frozen=True, slots=True)
class VirtualTopic:
    """ActiveMQ's attributes of a virtualTopic, with its defaults.

    `name` is a wildcard for topics. With `selector_aware` a queue gets only what one of its
    consumers wants, with `local` nothing that came from another broker, with
    `drop_on_resource_limit` nothing while it has no room. Without `set_original_destination`
    copies say that they are of the topic.
    """

    name: str = ANY_DESCENDANT
    prefix: str = "Consumer.*."
    postfix: str = ""
    selector_aware: bool = False
    local: bool = False
    drop_on_resource_limit: bool = False
    set_original_destination: bool = True


class VirtualTopicRule:
    """Copies what is sent to a topic to every queue that collects from it."""

    def __init__(self, settings: VirtualTopic) -> None:
        self._settings = settings
        self._topics = tuple(settings.name.split(PATH_SEPARATOR))
        self._queue_name = _expression(settings.prefix, settings.postfix)
        self._any_queue = tuple(f"{settings.prefix}{ANY_DESCENDANT}".split(PATH_SEPARATOR))
        self._collectors: dict[str, list[Region]] = {}
        self._wildcards: list[Region] = []

    def applies_to(self, destination: Destination) -> bool:
        """See `Rule.applies_to`."""
        path = destination.path
        return (
            destination.is_topic
            and not destination.is_temporary
            and path[:2] != ADVISORY_LEVELS
            and path_matches(self._topics, path)
        )

    def claims(self, wildcard: Destination) -> bool:
        """Tell whether consumers of *wildcard*, of queues, have a queue of that very name."""
        first, ours = wildcard.path[0], self._any_queue[0]
        return (first == ours or (ours == ANY_CHILD and first != ANY_DESCENDANT)) and (
            paths_overlap(self._any_queue, wildcard.path)
        )

    def opened(self, queue: Region) -> None:
        """Note a queue that may collect from topics."""
        destination = queue.destination
        if destination.is_pattern:
            if self.claims(destination):
                self._wildcards.append(queue)
            return
        topic = self._topic_of(destination)
        if topic is not None:
            self._collectors.setdefault(topic, []).append(queue)

    def closed(self, queue: Region) -> None:
        """Forget a queue."""
        if queue in self._wildcards:
            self._wildcards.remove(queue)
        topic = self._topic_of(queue.destination)
        collectors = self._collectors.get(topic or "", [])
        if topic is not None and queue in collectors:
            collectors.remove(queue)
            if not collectors:
                del self._collectors[topic]

    def _topic_of(self, queue: Destination) -> str | None:
        """Return the name of the topic that *queue* collects from."""
        found = self._queue_name.fullmatch(queue.name)
        if found is None or not path_matches(self._topics, tuple(found[1].split(PATH_SEPARATOR))):
            return None
        return found[1]

    def source_of(self, destination: Destination) -> Destination | None:
        """Return the topic, or the wildcard for topics, that a queue collects from, if it does."""
        name = self._topic_of(destination) if destination.is_queue else None
        return None if name is None else topic(name)

    def forward(self, region: Region, message: Message, label: Label) -> Forward:
        """See `Rule.forward`."""
        settings = self._settings
        if settings.local and decoded(message).broker_path:
            return Forward((), stays=True)
        topic = region.destination
        queues = self._collectors.get(topic.name, ())
        if self._wildcards:
            queues = [*queues, *self._wildcards_for(topic)]
        if settings.selector_aware:
            queues = [queue for queue in queues if queue.is_wanted(message)]
        named, may_drop = settings.set_original_destination, settings.drop_on_resource_limit
        hops = [
            Hop(queue, Label(queue.destination, topic) if named else label, may_drop)
            for queue in queues
        ]
        return Forward(hops, stays=True)

    def _wildcards_for(self, topic: Destination) -> list[Region]:
        settings = self._settings
        name = f"{settings.prefix}{topic.name}{settings.postfix}"
        path = tuple(name.split(PATH_SEPARATOR))
        return [queue for queue in self._wildcards if paths_overlap(path, queue.destination.path)]


def _expression(prefix: str, postfix: str) -> re.Pattern[str]:
    """Return what matches the name of a queue that collects; group 1 is the topic's."""
    return re.compile(f"{_levels(prefix)}(.+){_levels(postfix)}", re.DOTALL)


def _levels(part: str) -> str:
    return re.escape(PATH_SEPARATOR).join(
        r"[^.]*" if level == ANY_CHILD else re.escape(level) for level in part.split(PATH_SEPARATOR)
    )
