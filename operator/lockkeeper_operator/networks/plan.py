"""From a network and the Brokers that there are to who is in it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lockkeeper_api.broker_network import MEMBERS_MAX
from lockkeeper_operator.kubernetes.label_selectors import matches
from lockkeeper_operator.networks.desired.links import links_of
from lockkeeper_operator.networks.desired.network import (
    BrokerKey,
    Link,
    Member,
    Network,
    listener_of,
)
from lockkeeper_operator.networks.observed import Candidate

BROKER_NOT_FOUND = "BrokerNotFound"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A Broker that is not in the network: a word for tools, a sentence for people."""

    broker: BrokerKey
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Membership:
    """The Brokers of a network, those that are kept out, and the bridges."""

    members: tuple[Member, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    links: tuple[Link, ...] = ()


def is_meant(network: Network, broker: BrokerKey, labels: Mapping[str, str]) -> bool:
    """Return whether a Broker is named, or selected by its labels."""
    return broker in network.named or _is_selected(network, broker, labels)


def membership_of(network: Network, candidates: Sequence[Candidate]) -> Membership:
    """Return who is in the network, of the Brokers that are meant.

    A selected Broker of another namespace that does not allow the network is not told of. Of too
    many, those stay that were there first, and the hub.
    """
    there = {candidate.key: candidate for candidate in candidates}
    refusals = [_not_found(key) for key in network.named if key not in there]
    fit: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda each: _seniority(network, each)):
        if not candidate.allowed and candidate.key not in network.named:
            continue
        refusal = _refusal(network, candidate)
        if refusal is not None:
            refusals.append(refusal)
        elif len(fit) < MEMBERS_MAX:
            fit.append(candidate)
        else:
            refusals.append(_one_too_many(candidate.key))
    members = tuple(_members(fit))
    return Membership(members, tuple(refusals), links_of(network, members))


def _is_selected(network: Network, broker: BrokerKey, labels: Mapping[str, str]) -> bool:
    brokers = network.spec.brokers
    is_near = broker[0] == network.namespace or brokers.namespaces == "All"
    return is_near and matches(brokers.selector, labels)


def _seniority(network: Network, candidate: Candidate) -> tuple[bool, str, BrokerKey]:
    return candidate.key != network.hub, candidate.created, candidate.key


def _members(fit: Sequence[Candidate]) -> Iterator[Member]:
    for candidate in fit:
        assert candidate.spec is not None
        yield Member(candidate.namespace, candidate.name, candidate.spec)


def _refusal(network: Network, candidate: Candidate) -> Refusal | None:
    """Return what keeps a Broker out, None for nothing."""
    key, spec = candidate.key, candidate.spec
    if not candidate.allowed:
        message = f"its allowedNetworks allows no networks of namespace {network.namespace}"
        return Refusal(key, "NotAllowed", message)
    if spec is None:
        return Refusal(key, "InvalidBroker", "its spec is invalid: see its own conditions")
    wanted = network.spec.listener
    listener = listener_of(spec, wanted)
    if listener is None:
        return Refusal(key, "NoListener", f"spec.listener: it has no listener {wanted}")
    if listener.tls is not None and listener.tls.client_certificates == "Required":
        message = (
            f"spec.listener: its listener {listener.name} requires certificates of clients, "
            "and bridges have passwords: name one that does not"
        )
        return Refusal(key, "ClientCertificates", message)
    if not (spec.advisory_support or network.spec.connector.static_bridge):
        message = "advisorySupport: bridges hear of its consumers by advisories; switch them on"
        return Refusal(key, "NoAdvisories", message)
    if any(user.name == network.user for user in spec.access.users):
        message = f"access.users: {network.user} is the network's own user; rename that one"
        return Refusal(key, "UserTaken", message)
    return None


def _not_found(key: BrokerKey) -> Refusal:
    return Refusal(key, BROKER_NOT_FOUND, "there is no such Broker")


def _one_too_many(key: BrokerKey) -> Refusal:
    message = f"a network has at most {MEMBERS_MAX} Brokers; older ones are in it"
    return Refusal(key, "TooManyBrokers", message)
