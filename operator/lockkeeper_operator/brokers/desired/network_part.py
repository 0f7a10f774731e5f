"""Part of a Broker in a network: its bridges, the user of the network, what lets bridges in."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from lockkeeper_api.broker import BrokerSpec
from lockkeeper_api.cluster.access import Access, Permission, User
from lockkeeper_api.network_connectors import NetworkConnector
from lockkeeper_api.policies.network_bridge_filter import NetworkBridgeFilter
from lockkeeper_api.policy import DestinationPolicy, DestinationPolicyEntry
from lockkeeper_operator.names import NETWORKS_PATH

ADVISORIES = "ActiveMQ.Advisory.>"
EVERYTHING = ">"
PolicyType = TypeVar("PolicyType", bound=DestinationPolicy)


@dataclass(frozen=True, slots=True)
class NetworkPart:
    """What a network asks of one Broker.

    *user* is that of the network's bridges at every Broker, *secret* where its *password* is. The
    *connectors* are those that this Broker dials by; *authorities* who vouches for the other ends,
    as PEM, by the connectors' names. *dialled_by* are the Brokers that dial this one, namespace and
    name each; over duplex bridges these consume here, too (*is_duplex*).
    """

    user: str
    secret: str
    password: str = field(repr=False)
    connectors: tuple[NetworkConnector, ...] = ()
    authorities: Mapping[str, str] = field(default_factory=dict)
    dialled_by: tuple[tuple[str, str], ...] = ()
    is_duplex: bool = False
    bridge_filter: NetworkBridgeFilter | None = None
    """For queues whose policies say nothing of it; None: as they are."""

    @property
    def is_dialled(self) -> bool:
        """Whether bridges log in at this Broker; of one that nobody dials the user has no rights.

        All Brokers of the network know his password.
        """
        return bool(self.dialled_by)

    @property
    def dials_encrypted(self) -> bool:
        """Whether some of the other ends show certificates."""
        return any("(ssl://" in connector.uri for connector in self.connectors)


Parts: TypeAlias = tuple[NetworkPart, ...]
FilterOf: TypeAlias = Callable[[str, str], Coroutine[Any, Any, NetworkBridgeFilter | None]]
"""Returns what a Broker's networks say of queues whose policies do not. Raises ApiError."""
PartsOf: TypeAlias = Callable[[str, str], Coroutine[Any, Any, Parts]]
"""Returns the parts of a Broker, by its namespace and name. Raises ApiError."""


def password_file(user: str) -> str:
    """Return the name of the file with the password of a network's user."""
    return f"{user}.password"


def authority_file(connector: str) -> str:
    """Return the name of the file with who vouches for a connector's other end."""
    return f"{connector}.ca.crt"


def path_of(file: str) -> str:
    """Return where a broker in a pod has such a file."""
    return f"{NETWORKS_PATH}/{file}"


def network_users(parts: Iterable[NetworkPart]) -> tuple[User, ...]:
    """Return the users by which other Brokers of the networks log in."""
    return tuple(User(name=part.user, secret_name=part.secret) for part in parts if part.is_dialled)


def networked(spec: BrokerSpec, parts: Parts) -> BrokerSpec:
    """Return what a Broker in these networks goes by, users apart."""
    if not parts:
        return spec
    connectors = [connector for part in parts for connector in part.connectors]
    update: dict[str, Any] = {
        "network_connectors": [*spec.network_connectors, *connectors],
        "access": _with_permissions(spec.access, parts),
    }
    filters = (part.bridge_filter for part in parts)
    chosen = next((each for each in filters if each is not None), None)
    if chosen is not None:
        update["destination_policies"] = _with_filter(spec.destination_policies, chosen)
    return spec.model_copy(update=update)


def _with_permissions(access: Access, parts: Parts) -> Access:
    """Return *access* with what bridges need. Without permissions everybody may do everything."""
    if not access.permissions:
        return access
    more = [each for part in parts if part.is_dialled for each in _permissions(part)]
    return access.model_copy(update={"permissions": [*access.permissions, *more]})


def _permissions(part: NetworkPart) -> Iterable[Permission]:
    """Yield what a bridge does: it sends what is forwarded, and hears of consumers."""
    group = [part.user]
    reads = group if part.is_duplex else []
    yield Permission(match=EVERYTHING, read=reads, write=group, admin=group)
    yield Permission(match=ADVISORIES, kind="Topic", read=group)


def _with_filter(
    entries: list[DestinationPolicyEntry], chosen: NetworkBridgeFilter
) -> list[DestinationPolicyEntry]:
    """Return the entries of queues with a filter, where they have none, and one for all others.

    That one comes first: of equally specific entries the last decides.
    """
    rest = DestinationPolicyEntry(match=EVERYTHING, kind="Queue", network_bridge_filter=chosen)
    if any(each.match == EVERYTHING and each.kind != "Topic" for each in entries):
        return [_filtered(each, chosen) for each in entries]
    return [rest, *(_filtered(each, chosen) for each in entries)]


def _filtered(entry: DestinationPolicyEntry, chosen: NetworkBridgeFilter) -> DestinationPolicyEntry:
    return entry if entry.kind == "Topic" else filtered(entry, chosen)


def filtered(policy: PolicyType, chosen: NetworkBridgeFilter) -> PolicyType:
    """Return a policy of queues with a filter, if it says nothing of that."""
    if policy.network_bridge_filter != NetworkBridgeFilter():
        return policy
    return policy.model_copy(update={"network_bridge_filter": chosen})
