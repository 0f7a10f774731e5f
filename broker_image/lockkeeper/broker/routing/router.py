"""Routing of a message to queues and topics, where that is not just the one it was sent to."""

from typing import Final, NamedTuple

from lockkeeper.broker.errors import CircularForwardingError
from lockkeeper.broker.routing.composites import CompositeRule
from lockkeeper.broker.routing.mirrors import MirrorRule
from lockkeeper.broker.routing.rule import Hop, Label, OpenRoute, QueueFollower, Region, Rule
from lockkeeper.broker.routing.virtual_topics import VirtualTopicRule
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.keeping import Kept
from lockkeeper.message.copying import MessageCopier
from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message

AS_SENT = Label()
COPIERS_MAX: Final = 4_096
COPIERS_CHARACTERS_MAX: Final = 4 << 20
"""So long are the names together by which copiers are kept."""


class Target(NamedTuple):
    """A queue or topic that gets a message; without a *copier* the message as it was sent."""

    region: Region
    copier: MessageCopier | None
    may_be_dropped: bool


class Router:
    """The rules of a broker.

    They are asked for each destination as it is made; those that apply are kept with it in
    `rules`. Mirrors come first, as in ActiveMQ: they show also what a composite only forwards.
    """

    def __init__(self, settings: BrokerSettings, open_route: OpenRoute) -> None:
        self._open_route = open_route
        mirrored = settings.mirrored_queues
        self._mirror = None if mirrored is None else MirrorRule(mirrored, open_route)
        self._virtual_topics = [VirtualTopicRule(each) for each in settings.virtual_topics]
        self._virtual: tuple[VirtualTopicRule | CompositeRule, ...] = (
            *self._virtual_topics,
            *(CompositeRule(each, open_route) for each in settings.composite_destinations),
        )
        self._rules: tuple[Rule, ...] = (
            *([] if self._mirror is None else [self._mirror]),
            *self._virtual,
        )
        self._followers: tuple[QueueFollower, ...] = tuple(self._virtual_topics)
        self._copiers: Kept[tuple[Destination, Label], MessageCopier] = Kept(
            COPIERS_MAX, COPIERS_CHARACTERS_MAX
        )

    def follow(self, follower: QueueFollower) -> None:
        """Tell one more of queues as they come and go."""
        self._followers = (*self._followers, follower)

    def add(self, rule: Rule) -> None:
        """Ask one more rule, unless it is asked already; see `opened` for what is there."""
        if rule not in self._rules:
            self._rules = (*self._rules, rule)

    def opened(self, region: Region) -> None:
        """Settle which rules apply to a new queue or topic."""
        destination = region.destination
        region.rules = tuple(rule for rule in self._rules if rule.applies_to(destination))
        if region.destination.is_queue:
            for follower in self._followers:
                follower.opened(region)

    def closed(self, region: Region) -> None:
        """Forget a queue or topic that is no more."""
        if region.destination.is_queue:
            for follower in self._followers:
                follower.closed(region)

    def claims(self, wildcard: Destination) -> bool:
        """Tell whether consumers of *wildcard* share a queue of that name, which collects."""
        return wildcard.is_queue and any(rule.claims(wildcard) for rule in self._virtual_topics)

    def mirror_of(self, destination: Destination) -> Destination | None:
        """Return the topic that mirrors *destination*, if there is one."""
        if self._mirror is None or not self._mirror.applies_to(destination):
            return None
        return self._mirror.mirror_of(destination)

    def sources(self, destination: Destination) -> list[Destination]:
        """Return the virtual destinations whose messages come to *destination*, each once."""
        parts = destination.parts()
        found = {rule.source_of(part): None for part in parts for rule in self._virtual}
        return [source for source in found if source is not None]

    def forwards(self, destination: Destination) -> bool:
        """Tell whether others than *destination* may get what is sent there."""
        return destination.is_composite or any(rule.applies_to(destination) for rule in self._rules)

    def targets(self, message: Message) -> list[Target]:
        """Return who gets *message*, each once, in order. Raises BrokerError.

        Whatever of its list a client's composite names, and whatever rules make of it.
        """
        destination = message.destination
        found: dict[Destination, Target | None] = {}
        if not destination.is_composite:
            self._follow(Hop(self._open_route(destination), AS_SENT), message, (), found)
        else:
            for part in destination.parts():
                label = Label(part, destination)
                self._follow(Hop(self._open_route(part), label), message, (), found)
        return [target for target in found.values() if target is not None]

    def _follow(
        self,
        hop: Hop,
        message: Message,
        path: tuple[Destination, ...],
        found: dict[Destination, Target | None],
    ) -> None:
        """Add who gets *message* when it takes *hop*, having come by *path*.

        Every stop is in *found* afterwards, with None for one that only forwards.
        """
        region, label, may_be_dropped = hop
        here = region.destination
        if here in path:
            stops = " to ".join(map(str, (*path[path.index(here) :], here)))
            raise CircularForwardingError(f"forwarding goes round in a circle: {stops}")
        if here in found:
            return
        stays = True
        for rule in region.rules:
            forward = rule.forward(region, message, label)
            stays = stays and forward.stays
            for following in forward.hops:
                if may_be_dropped:
                    following = following._replace(may_be_dropped=True)
                self._follow(following, message, (*path, here), found)
        is_first = not path and label is AS_SENT
        copier = None if is_first else self._copier(here, label)
        found[here] = Target(region, copier, may_be_dropped) if stays else None

    def _copier(self, place: Destination, label: Label) -> MessageCopier:
        copier = self._copiers.find((place, label))
        if copier is None:
            names = [each.name for each in (place, *label) if each is not None]
            made, size = MessageCopier(place, *label), sum(map(len, names))
            copier = self._copiers.keep((place, label), made, size)
        return copier
