"""The BrokerNetwork that bridges are made for, and the Brokers in it."""

from dataclasses import dataclass
from typing import TypeAlias

from lockkeeper_api.broker import BrokerSpec, Listener
from lockkeeper_api.broker_network import BrokerNetworkSpec, MemberReference
from lockkeeper_operator.kubernetes.children.ownership import Owner
from lockkeeper_operator.kubernetes.hashes import hash_of
from lockkeeper_operator.names import NETWORK_INSTANCE

USER_CHARACTERS_MAX = 63
HASH_CHARACTERS = 8
BrokerKey: TypeAlias = tuple[str, str]
"""Namespace and name of a Broker."""


@dataclass(frozen=True, slots=True)
class Network:
    """A BrokerNetwork: who it is, what it is to be."""

    namespace: str
    name: str
    uid: str
    spec: BrokerNetworkSpec

    @property
    def instance(self) -> str:
        """What children are labelled with; no Broker can have such a name."""
        return f"{NETWORK_INSTANCE}{self.name}"

    @property
    def owner(self) -> Owner:
        """The owner of all children."""
        return Owner(self.instance, self.uid)

    @property
    def secret(self) -> str:
        """Name of the Secret with the password of the network's user."""
        return f"{self.name}-network"

    @property
    def user(self) -> str:
        """Name by which bridges log in, at every Broker; no other network has it."""
        return shortened(f"network.{self.namespace}.{self.name}", USER_CHARACTERS_MAX)

    def key_of(self, reference: MemberReference) -> BrokerKey:
        """Return which Broker a reference means."""
        return reference.namespace or self.namespace, reference.name

    @property
    def hub(self) -> BrokerKey | None:
        """The Broker in the middle, None in a mesh."""
        return None if self.spec.hub is None else self.key_of(self.spec.hub)

    @property
    def named(self) -> tuple[BrokerKey, ...]:
        """The Brokers that are meant by their names, the hub first."""
        hub = () if self.hub is None else (self.hub,)
        return tuple(dict.fromkeys((*hub, *map(self.key_of, self.spec.brokers.references))))


@dataclass(frozen=True, slots=True)
class Member:
    """A Broker in a network."""

    namespace: str
    name: str
    spec: BrokerSpec

    @property
    def key(self) -> BrokerKey:
        """Its namespace and name."""
        return self.namespace, self.name


@dataclass(frozen=True, slots=True)
class Link:
    """A bridge: who dials whom."""

    dialler: Member
    dialled: Member


def listener_of(spec: BrokerSpec, wanted: str | None) -> Listener | None:
    """Return the listener that bridges dial, None where there is none of that name."""
    named = (each for each in spec.listeners if wanted in (None, each.name))
    return next(named, None)


def shortened(text: str, most: int) -> str:
    """Return *text*, or as much as fits of it, and a hash that tells it from others."""
    if len(text) <= most:
        return text
    kept = text[: most - HASH_CHARACTERS - 1].rstrip(".-")
    return f"{kept}.{hash_of(text)[:HASH_CHARACTERS]}"
