"""Network connectors: a bridge as the configuration of the dialling Broker has it."""

from typing import Any

from lockkeeper_api.network_connectors import NetworkConnector, NetworkTls
from lockkeeper_operator.brokers.desired.network_part import (
    authority_file,
    password_file,
    path_of,
)
from lockkeeper_operator.kubernetes.hashes import hash_of
from lockkeeper_operator.networks.desired.network import (
    HASH_CHARACTERS,
    Link,
    Network,
    listener_of,
)

NAME_CHARACTERS_MAX = 63
HUB_TTL = 2
"""From a spoke by the hub to another spoke."""
ADDRESS_OPTIONS = "connectionTimeout=2000&wireFormat.maxInactivityDuration=10000"
"""In ms: a node that lost its power says nothing, and its master's successor waits."""
BACK_OFF = "initialReconnectDelay=500&maxReconnectDelay=2000&minConnectTime=1000"


def connector_name(network: Network, link: Link) -> str:
    """Return a name that no other bridge of any network has at either end.

    Brokers of two namespaces may be called the same; the other end knows the bridge by its own
    Broker's name and by this one.
    """
    ends = [network.namespace, network.name, link.dialler.key, link.dialled.key]
    distinct = hash_of(ends)[:HASH_CHARACTERS]
    shown = f"{network.name}.{link.dialled.name}"
    return f"{shown[: NAME_CHARACTERS_MAX - HASH_CHARACTERS - 1]}.{distinct}"


def connector_of(
    network: Network, link: Link, domain: str, has_authority: bool
) -> NetworkConnector:
    """Return the connector of a bridge.

    It leads to the Service, which follows the master: neither a fail-over of the other Broker nor
    another number of its replicas changes it.
    """
    dialled = link.dialled
    listener = listener_of(dialled.spec, network.spec.listener)
    assert listener is not None
    scheme = "tcp" if listener.tls is None else "ssl"
    host = f"{dialled.name}-{listener.name}.{dialled.namespace}.svc.{domain}"
    name = connector_name(network, link)
    tls = NetworkTls(ca_file=path_of(authority_file(name))) if has_authority else None
    options: dict[str, Any] = {**dict(network.spec.connector), **_ttl(network)}
    return NetworkConnector(
        **options,
        name=name,
        uri=f"static:({scheme}://{host}:{listener.port}?{ADDRESS_OPTIONS})?{BACK_OFF}",
        user_name=network.user,
        password_file=path_of(password_file(network.user)),
        tls=tls,
    )


def _ttl(network: Network) -> dict[str, int]:
    """Return what lets messages go all the way where the spec says nothing of it."""
    said = network.spec.connector
    says = any(each is not None for each in (said.network_ttl, said.message_ttl, said.consumer_ttl))
    return {} if says or network.hub is None else {"network_ttl": HUB_TTL}
