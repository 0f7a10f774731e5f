"""Destinations that somebody declares while the broker runs, the operator as a rule.

What is declared is kept in memory only: after a restart or a fail-over it is declared again. The
queue itself, with its messages, is the journal's business.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from lockkeeper.broker.adopting import adopt_own_policy
from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.regions.backlog import Backlog
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.message.destination import Destination, Kind
from lockkeeper.message.stamps import arrival
from lockkeeper.server.conversion import converted
from lockkeeper.server.views import destination_view
from lockkeeper.store.base import Receipt, Reference, StoreError
from lockkeeper_api.complaints import complaint
from lockkeeper_api.meta import ApiModel
from lockkeeper_api.policy import DestinationPolicy as PolicyModel
from lockkeeper_api.wildcards import DestinationName

KINDS = {"queues": Kind.QUEUE, "topics": Kind.TOPIC}
OWNER_CHARACTERS_MAX = 512


class InvalidDeclarationError(ValueError):
    """A declaration makes no sense; the text names the field."""


class OwnedForm(ApiModel):
    """Part that all declarations have."""

    owner: str = Field(default="", max_length=OWNER_CHARACTERS_MAX)
    """Who declares it, such as NAMESPACE/NAME of a Destination."""


class _Form(OwnedForm):
    """What a declaration has to look like."""

    name: DestinationName
    """Name of the destination."""
    policy: PolicyModel | None = None
    """How it behaves; absent: as the Broker's entries say."""


_AnyForm = TypeVar("_AnyForm", bound=OwnedForm)


@dataclass(frozen=True, slots=True)
class Declaration:
    """One destination as it was declared; *policy* is its JSON, *settings* what that means."""

    destination: Destination
    owner: str
    policy: dict[str, Any] | None
    settings: DestinationPolicy | None


def read_form(form: type[_AnyForm], value: Any, **beside: Any) -> _AnyForm:
    """Return *value*, a request's JSON, as a form. Raises InvalidDeclarationError."""
    if not isinstance(value, dict):
        raise InvalidDeclarationError('{"policy": …, "owner": "NAMESPACE/NAME"} is needed')
    try:
        return form.model_validate({**value, **beside})
    except ValidationError as error:
        found = (complaint(form, each) for each in error.errors(include_url=False))
        text = "; ".join(f"{path}: {reason}" for path, reason in found)
        raise InvalidDeclarationError(text) from error


def read_declaration(kind: Kind, name: str, value: Any) -> Declaration:
    """Return what *value*, a request's JSON, declares. Raises InvalidDeclarationError."""
    form = read_form(_Form, value, name=name)
    settings = None if form.policy is None else converted(form.policy, DestinationPolicy)
    return Declaration(Destination(kind, name), form.owner, value.get("policy"), settings)


class Declarations:
    """Declared destinations of one master."""

    def __init__(self) -> None:
        self._declared: dict[Destination, Declaration] = {}

    def declare(self, broker: Broker, declaration: Declaration) -> None:
        """Make the destination, or change its policy. Raises BrokerError, with nothing changed."""
        destination = declaration.destination
        known = self._declared.get(destination)
        # First, so that a new destination begins with it.
        adopt_own_policy(broker, destination, declaration.settings)
        try:
            broker.declare(destination)
        except BrokerError:
            adopt_own_policy(broker, destination, known.settings if known else None)
            raise
        self._declared[destination] = declaration

    def remove(self, broker: Broker, destination: Destination, receipt: Receipt) -> None:
        """Remove a destination, whoever uses it."""
        broker.destinations.remove_with_users(destination, receipt)
        broker.inactive_destinations.kept.discard(destination)
        if self._declared.pop(destination, None) is not None:
            adopt_own_policy(broker, destination, None)

    def view(self, broker: Broker, destination: Destination) -> dict[str, Any] | None:
        """Return what there is to tell of a destination, None where there is none."""
        region = broker.registry.find(destination)
        return None if region is None else self._view(broker, region, _producers(broker))

    def owned(self, broker: Broker) -> list[dict[str, Any]]:
        """Return the same of all destinations with an owner, by kind and name."""
        producers = _producers(broker)
        found = (broker.registry.find(each) for each in self._declared)
        views = [self._view(broker, each, producers) for each in found if each is not None]
        views = [view for view in views if view["owner"]]
        return sorted(views, key=lambda view: (view["kind"], view["name"]))

    def _view(
        self, broker: Broker, region: Queue | Topic, producers: "Counter[Destination]"
    ) -> dict[str, Any]:
        declared = self._declared.get(region.destination)
        return {
            **destination_view(region),
            "producers": producers[region.destination],
            "oldestMessageAge": _oldest_age(broker, region),
            "policy": None if declared is None else declared.policy,
            "owner": None if declared is None else declared.owner or None,
        }


def is_in_use(broker: Broker, destination: Destination) -> bool:
    """Tell whether a destination has messages or consumers, or awaits messages."""
    region = broker.registry.find(destination)
    if region is not None and (region.is_subscribed() or region.depth()):
        return True
    return destination in broker.destinations.awaiting()


def _producers(broker: Broker) -> "Counter[Destination]":
    """Return how many producers each destination has, of those that name one."""
    return Counter(
        part
        for connection in broker.connections.values()
        for destination in connection.producers.values()
        if destination is not None
        for part in destination.parts()
    )


def _oldest_age(broker: Broker, region: Queue | Topic) -> int | None:
    """Return for how many ms the message in front has been there; None without one."""
    arrivals = [_arrival(backlog) for backlog in region.backlogs()]
    known = [arrival for arrival in arrivals if arrival is not None]
    return max(0, broker.now - min(known)) if known else None


def _arrival(backlog: Backlog) -> int | None:
    """Return when the first message that waits, or is with a consumer, came to the broker."""
    held = (next(iter(consumer.held_of(backlog)), None) for consumer in backlog.takers())
    first = (*held, backlog.first())
    found = [arrival for each in first if each is not None for arrival in _came(backlog, each)]
    return min(found, default=None)


def _came(backlog: Backlog, reference: Reference) -> list[int]:
    """Return when a message came, or nothing if it cannot be read."""
    try:
        message = backlog.peek(reference)
    except StoreError:
        return []
    return [] if message is None else [arrival(message.body)]
