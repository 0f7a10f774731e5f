"""The names of the advisory topics, ActiveMQ's own."""

from enum import Enum

from lockkeeper.message.destination import COMPOSITE_SEPARATOR, Destination, Kind, topic

PREFIX = "ActiveMQ.Advisory."
CONNECTIONS = topic(PREFIX + "Connection")
NETWORK_BRIDGES = topic(PREFIX + "NetworkBridge")
DESTINATIONS = {
    Kind.QUEUE: topic(PREFIX + "Queue"),
    Kind.TOPIC: topic(PREFIX + "Topic"),
    Kind.TEMP_QUEUE: topic(PREFIX + "TempQueue"),
    Kind.TEMP_TOPIC: topic(PREFIX + "TempTopic"),
}
"""Where destinations that come and go are told of."""
_TYPES = {
    Kind.QUEUE: "Queue",
    Kind.TOPIC: "Topic",
    Kind.TEMP_QUEUE: "TempQueue",
    Kind.TEMP_TOPIC: "TempTopic",
}


class About(Enum):
    """Events of single destinations; each has an advisory topic of its own."""

    CONSUMER = "Consumer"
    VIRTUAL_CONSUMER = "VirtualDestination.Consumer"
    PRODUCER = "Producer"
    NO_CONSUMER = "NoConsumer"
    EXPIRED = "Expired"
    SLOW_CONSUMER = "SlowConsumer"
    FAST_PRODUCER = "FastProducer"
    DISCARDED = "MessageDiscarded"
    DELIVERED = "MessageDelivered"
    CONSUMED = "MessageConsumed"
    DEAD_LETTERED = "MessageDLQd"
    FULL = "FULL"


# These call a temporary queue a Queue, the others a TempQueue.
_PLAIN = frozenset(
    (
        About.CONSUMER,
        About.VIRTUAL_CONSUMER,
        About.PRODUCER,
        About.NO_CONSUMER,
        About.EXPIRED,
    )
)


def advisory_topic(about: About, destination: Destination) -> Destination:
    """Return the topic that tells of one destination, which may be a wildcard or a composite."""
    if about in _PLAIN:
        kind = "Queue" if destination.is_queue else "Topic"
    else:
        kind = _TYPES[destination.kind]
    # A comma would make it a composite.
    name = destination.name.replace(COMPOSITE_SEPARATOR, "&sbquo;")
    return topic(f"{PREFIX}{about.value}.{kind}.{name}")


def advisory_topics(destination: Destination) -> list[Destination]:
    """Return all topics that tell of one destination."""
    return [advisory_topic(about, destination) for about in About]


def is_advisory(destination: Destination) -> bool:
    """Tell whether a destination, or a part of a composite, is one of the advisory topics."""
    if not destination.is_composite:
        return destination.is_topic and destination.name.startswith(PREFIX)
    return any(is_advisory(part) for part in destination.parts())
