"""The interface of rules: each forwards what is sent to certain destinations to others."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.regions.route import Route
from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message


class Region(Route, Protocol):
    """A queue or a topic, as known by who brings messages there; see `Queue` and `Topic`."""

    policy: DestinationPolicy
    rules: tuple["Rule", ...]

    def is_wanted(self, message: Message) -> bool:
        """Tell whether a consumer that is there would take *message*."""

    def keeps_messages(self) -> bool:
        """Tell whether a message stays: that of a topic that nobody listens to does not."""

    def keeps_on_disk(self) -> bool:
        """Tell whether persistent messages go to the store."""

    def is_read(self) -> bool:
        """Tell whether consumers are there that take messages as they come."""

    def memory_used(self) -> int:
        """Return how many bytes of messages are in memory."""


OpenRoute: TypeAlias = Callable[[Destination], Region]
"""Returns the queue or topic, made now if need be. Raises BrokerError."""


class Label(NamedTuple):
    """The JMSDestination and originalDestination of a message on its way; None: as it was sent."""

    destination: Destination | None = None
    original: Destination | None = None


class Hop(NamedTuple):
    """One step of a message: to where, and what it says of itself there.

    A copy that `may_be_dropped` is left out when its place has no room for it; any other makes
    the producer wait.
    """

    region: Region
    label: Label
    may_be_dropped: bool = False


class Forward(NamedTuple):
    """Result of a rule for a message: its next hops, and whether it also stays."""

    hops: Sequence[Hop]
    stays: bool


class Rule(Protocol):
    """Forwards messages. A rule is asked once for each destination whether it applies there."""

    def applies_to(self, destination: Destination) -> bool:
        """Tell whether messages for *destination* are to be forwarded."""

    def forward(self, region: Region, message: Message, label: Label) -> Forward:
        """Return what to do with *message*, which is at *region* and labelled so."""


class QueueFollower(Protocol):
    """Somebody who hears of queues as they come and go."""

    def opened(self, queue: Region) -> None:
        """Hear that there is a queue."""

    def closed(self, queue: Region) -> None:
        """Hear that a queue is no more."""
