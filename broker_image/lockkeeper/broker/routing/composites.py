"""Queues and topics that forward, declared on the broker (ActiveMQ's composite destinations)."""

from dataclasses import dataclass

from lockkeeper.broker.message_properties import property_lookup
from lockkeeper.broker.routing.rule import Forward, Hop, Label, OpenRoute, Region
from lockkeeper.broker.selectors import Selector, compile_selector
from lockkeeper.message.destination import (
    PATH_SEPARATOR,
    Destination,
    Kind,
    path_matches,
    queue,
    topic,
)
from lockkeeper.message.message import Message


@dataclass(frozen=True, slots=True)
class ForwardTo:
    """A queue or a topic that gets copies: all, or those that the *selector* chooses."""

    queue: str | None = None
    topic: str | None = None
    selector: str | None = None

    @property
    def destination(self) -> Destination:
        """The queue or topic."""
        return queue(self.queue) if self.queue is not None else topic(self.topic or "")


@dataclass(frozen=True, slots=True)
class CompositeDestination:
    """ActiveMQ's compositeQueue or compositeTopic, with its defaults.

    `name` may be a wildcard. With `forward_only` the destination itself gets nothing; with
    `send_when_not_matched` it gets exactly what is not forwarded.
    """

    name: str
    kind: str = "Queue"
    forward_to: tuple[ForwardTo, ...] = ()
    forward_only: bool = True
    send_when_not_matched: bool = False


class CompositeRule:
    """Forwards what is sent to one destination, or to all that a wildcard stands for."""

    def __init__(self, settings: CompositeDestination, open_route: OpenRoute) -> None:
        self._settings = settings
        self._open_route = open_route
        self._kind = Kind.QUEUE if settings.kind == "Queue" else Kind.TOPIC
        self._path = tuple(settings.name.split(PATH_SEPARATOR))
        self._targets: list[tuple[Destination, Selector | None]] = [
            (target.destination, compile_selector(target.selector) if target.selector else None)
            for target in settings.forward_to
        ]

    def applies_to(self, destination: Destination) -> bool:
        """See `Rule.applies_to`; what a wildcard forwards to, it does not forward again."""
        return (
            destination.kind is self._kind
            and path_matches(self._path, destination.path)
            and all(target != destination for target, _ in self._targets)
        )

    def source_of(self, destination: Destination) -> Destination | None:
        """Return what is sent to, if messages for it come to *destination*, a wildcard perhaps."""
        is_target = any(
            destination.kind is target.kind and path_matches(destination.path, target.path)
            for target, _ in self._targets
        )
        return Destination(self._kind, self._settings.name) if is_target else None

    def forward(self, region: Region, message: Message, label: Label) -> Forward:
        """See `Rule.forward`."""
        lookup = property_lookup(message)
        source = region.destination
        hops = [
            Hop(self._open_route(target), Label(target, source))
            for target, selector in self._targets
            if selector is None or selector.matches(lookup)
        ]
        settings = self._settings
        if settings.send_when_not_matched:
            return Forward(hops, stays=not hops)
        return Forward(hops, stays=not settings.forward_only)
