"""Observes networks: their Brokers, the password of their user, who vouches for listeners."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from lockkeeper_api.broker import BrokerSpec
from lockkeeper_api.broker_network import BrokerNetworkSpec
from lockkeeper_api.cluster.operation import AllowedNetworks
from lockkeeper_api.policies.network_bridge_filter import NetworkBridgeFilter
from lockkeeper_operator.brokers.allowing import is_allowed
from lockkeeper_operator.brokers.credentials import PASSWORD_BYTES, CredentialStore, Who
from lockkeeper_operator.brokers.desired.network_part import NetworkPart, Parts
from lockkeeper_operator.brokers.desired.subject import issued_secret_of
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import AUTHORITY_FILE, MASTER
from lockkeeper_operator.networks.desired.network import (
    BrokerKey,
    Member,
    Network,
    listener_of,
)
from lockkeeper_operator.networks.desired.parts import bridge_filter_in, part_of
from lockkeeper_operator.networks.observed import Candidate
from lockkeeper_operator.networks.plan import Membership, is_meant, membership_of
from lockkeeper_operator.polling.report import BridgeReport
from lockkeeper_operator.tools import Tools


@dataclass(frozen=True, slots=True)
class _Known:
    """A membership of a network, and of which version of all Brokers it is."""

    version: int
    network: Network
    membership: Membership


class NetworkObserver:
    """Reads what there is of networks: in caches, and Secrets that nobody watches.

    Who is in a network is found out once for each version of the Brokers: each of them asks.
    *domain* is what names in the cluster's DNS end with.
    """

    def __init__(self, tools: Tools, domain: str) -> None:
        self._tools, self._domain = tools, domain
        self._credentials = CredentialStore(tools.api, tools.caches)
        self._known: dict[BrokerKey, _Known] = {}

    def close(self) -> None:
        """Let go of what is held."""
        self._credentials.close()

    def forget(self, namespace: str, name: str) -> None:
        """Forget a network that is gone."""
        self._known.pop((namespace, name), None)

    async def parts_of(self, namespace: str, name: str) -> Parts:
        """Return what all networks ask of a Broker. Raises ApiError."""
        key, found = (namespace, name), []
        for network in self._networks():
            membership = await self.membership(network)
            if any(member.key == key for member in membership.members):
                found.append(await self.part(network, membership, key))
        return tuple(found)

    async def bridge_filter_of(self, namespace: str, name: str) -> NetworkBridgeFilter | None:
        """Return what a Broker's networks say of queues whose policies do not. Raises ApiError."""
        for network in self._networks():
            membership = await self.membership(network)
            if any(member.key == (namespace, name) for member in membership.members):
                chosen = bridge_filter_in(network)
                if chosen is not None:
                    return chosen
        return None

    async def part(self, network: Network, membership: Membership, key: BrokerKey) -> NetworkPart:
        """Return what a network asks of one of its Brokers. Raises ApiError."""
        authorities = {}
        for link in membership.links:
            if link.dialler.key == key:
                found = await self._authority(network, link.dialled)
                if found is not None:
                    authorities[link.dialled.key] = found
        password = await self.password(network)
        return part_of(network, membership.links, key, password, authorities, self._domain)

    async def password(self, network: Network) -> str:
        """Return the password of a network's user, made up where there is none. Raises ApiError."""
        who = Who(network.namespace, network.instance, network.uid)
        return await self._credentials.made_up(who, network.secret, "password", PASSWORD_BYTES)

    async def membership(self, network: Network) -> Membership:
        """Return who is in a network. Raises ApiError."""
        version = self._tools.brokers_version()
        known = self._known.get((network.namespace, network.name))
        if known is not None and (known.version, known.network) == (version, network):
            return known.membership
        candidates = [
            await self._candidate(network, broker)
            for broker in self._tools.caches.brokers.all()
            if _is_there(broker) and is_meant(network, _key_of(broker), _labels(broker))
        ]
        membership = membership_of(network, candidates)
        # Labels of namespaces are kept up to date for who asks for them again and again.
        if not any(_goes_by_labels(each, network) for each in candidates):
            self._known[network.namespace, network.name] = _Known(version, network, membership)
        return membership

    def is_heard_of(self, membership: Membership) -> bool:
        """Return whether all Brokers were asked since this process began."""
        states = [self._tools.poll_states.get(member.key) for member in membership.members]
        return all(state is not None and state.heard for state in states)

    def said(self, membership: Membership) -> Mapping[BrokerKey, tuple[BridgeReport, ...]]:
        """Return what the masters say of their bridges."""
        found = {}
        for member in membership.members:
            state = self._tools.poll_states.get(member.key)
            reports = () if state is None else state.reports.values()
            master = next((each for each in reports if each.role == MASTER), None)
            if master is not None:
                found[member.key] = master.bridges
        return found

    def _networks(self) -> Iterator[Network]:
        """Yield all networks, always in the same order."""
        store = self._tools.caches.networks
        for resource in (store.get(*key) for key in sorted(store.names())):
            if resource is not None and _is_there(resource):
                try:
                    yield network_of(resource)
                except ValidationError:
                    # Its own reconciler tells.
                    continue

    async def _candidate(self, network: Network, broker: Manifest) -> Candidate:
        namespace, name = _key_of(broker)
        try:
            spec = BrokerSpec.model_validate(broker.get("spec", {}))
        except ValidationError:
            spec = None
        allowed = AllowedNetworks() if spec is None else spec.allowed_networks
        return Candidate(
            namespace=namespace,
            name=name,
            created=broker["metadata"].get("creationTimestamp", ""),
            spec=spec,
            allowed=await self._is_allowed(allowed, namespace, network.namespace),
        )

    async def _is_allowed(self, allowed: AllowedNetworks, broker: str, network: str) -> bool:
        """Return whether a Broker lets networks of another namespace in."""
        labels: Mapping[str, str] = {}
        if allowed.namespaces == "Selected" and broker != network:
            labels = await self._tools.namespaces.readable_labels(network)
        return is_allowed(allowed, broker, network, labels)

    async def _authority(self, network: Network, dialled: Member) -> str | None:
        """Return who vouches for a listener, as PEM; None for the system's, or no encryption."""
        listener = listener_of(dialled.spec, network.spec.listener)
        if listener is None or listener.tls is None:
            return None
        secret = listener.tls.secret_name or issued_secret_of(dialled.name, listener.name)
        return await self._credentials.of_others(dialled.namespace, secret, AUTHORITY_FILE)


def network_of(resource: Manifest) -> Network:
    """Return the network of a resource. Raises pydantic.ValidationError."""
    metadata = resource["metadata"]
    spec = BrokerNetworkSpec.model_validate(resource.get("spec", {}))
    return Network(metadata["namespace"], metadata["name"], metadata["uid"], spec)


def _goes_by_labels(candidate: Candidate, network: Network) -> bool:
    """Return whether a Broker lets the network in, or not, by its namespace's labels."""
    spec = candidate.spec
    is_near = candidate.namespace == network.namespace
    return spec is not None and not is_near and spec.allowed_networks.namespaces == "Selected"


def _is_there(resource: Manifest) -> bool:
    return "deletionTimestamp" not in resource["metadata"]


def _key_of(broker: Manifest) -> BrokerKey:
    return broker["metadata"]["namespace"], broker["metadata"]["name"]


def _labels(broker: Manifest) -> Mapping[str, str]:
    labels: Mapping[str, str] = broker["metadata"].get("labels", {})
    return labels
