"""Parts of a network: what it asks of each of its Brokers."""

from collections.abc import Mapping, Sequence

from lockkeeper_api.policies.network_bridge_filter import NetworkBridgeFilter
from lockkeeper_operator.brokers.desired.network_part import NetworkPart
from lockkeeper_operator.networks.desired.connectors import connector_name, connector_of
from lockkeeper_operator.networks.desired.network import BrokerKey, Link, Network


def part_of(
    network: Network,
    links: Sequence[Link],
    broker: BrokerKey,
    password: str,
    authorities: Mapping[BrokerKey, str],
    domain: str,
) -> NetworkPart:
    """Return the part of one Broker of the network.

    *authorities* tell, for Brokers that it dials, who vouches for their listeners, as PEM; the
    system's own authorities do for those that are not there.
    """
    dialled = [link for link in links if link.dialler.key == broker]
    return NetworkPart(
        user=network.user,
        secret=network.secret,
        password=password,
        connectors=tuple(
            connector_of(network, link, domain, link.dialled.key in authorities) for link in dialled
        ),
        authorities={
            connector_name(network, link): authorities[link.dialled.key]
            for link in dialled
            if link.dialled.key in authorities
        },
        dialled_by=tuple(link.dialler.key for link in links if link.dialled.key == broker),
        is_duplex=network.spec.connector.duplex,
        bridge_filter=bridge_filter_in(network),
    )


def bridge_filter_in(network: Network) -> NetworkBridgeFilter | None:
    """Return what is said of queues whose policies say nothing of bridges; None for nothing."""
    chosen = network.spec.network_bridge_filter.policy
    return None if chosen == NetworkBridgeFilter() else chosen
