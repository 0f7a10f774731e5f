"""A validated Broker resource as the settings of the core and its listeners."""

import hashlib
import json
import re
import socket
from collections.abc import Iterable

from lockkeeper.broker.core import Broker as Core
from lockkeeper.broker.policies.policy import DestinationPolicy, PolicyEntry, PolicyMap
from lockkeeper.broker.streams.settings import StreamSettings
from lockkeeper.message.destination import Destination, Kind
from lockkeeper.protocols.cluster import Cluster, ClusterSettings
from lockkeeper.protocols.handover import Acceptor
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.server.conversion import converted, milliseconds
from lockkeeper_api import Broker
from lockkeeper_api import Destination as DestinationResource
from lockkeeper_api.broker import Listener
from lockkeeper_api.cluster_clients import patterns_of
from lockkeeper_api.policy import DestinationPolicyEntry
from lockkeeper_api.streams import Stream

LOOPBACK = "127.0.0.1"
EVERYWHERE = ("0.0.0.0", "::")
"""Hosts of listeners at all addresses of a machine."""
HASH_DIGITS = 16


def listener_settings(
    listener: Listener, acceptor: Acceptor | None = None, port: int = 0
) -> ListenerSettings:
    """Return what a listener at *port* offers its clients, and other brokers by the *acceptor*."""
    address, bound_to = addresses_of(listener, port)
    return ListenerSettings(
        frame_bytes_max=listener.frame_bytes_max,
        inactivity_duration=milliseconds(listener.max_inactivity_duration),
        allow_link_stealing=listener.allow_link_stealing,
        cluster=Cluster(tuple(listener.advertised_urls), _cluster_settings(listener)),
        acceptor=acceptor,
        address=address,
        bound_to=bound_to,
    )


def addresses_of(listener: Listener, port: int) -> tuple[str, str]:
    """Return where clients find a listener at *port*, and the same with an IP address.

    Clients are told the first of its advertised addresses, or where it listens. A protocol that
    tells its clients nothing of that asks for nothing.
    """
    if listener.protocol == "openwire":
        return "", ""
    host = listener.host or LOOPBACK
    host = socket.gethostname() if host in EVERYWHERE else host
    advertised = (url.partition("://")[2] for url in listener.advertised_urls)
    address = next(advertised, f"{host}:{port}")
    name, _, told = address.rpartition(":")
    try:
        return address, f"{socket.gethostbyname(name.strip('[]'))}:{told}"
    except OSError:
        return address, f"{LOOPBACK}:{told}"


def _cluster_settings(listener: Listener) -> ClusterSettings:
    return ClusterSettings(
        listener.update_cluster_clients,
        listener.update_cluster_clients_on_remove,
        listener.rebalance_cluster_clients,
        tuple(map(re.compile, patterns_of(listener.update_cluster_filter))),
    )


def destination_of(resource: DestinationResource) -> Destination:
    """Return the destination that a resource asks for."""
    kind = Kind.QUEUE if resource.spec.kind == "Queue" else Kind.TOPIC
    return Destination(kind, resource.name)


def declare_resource(broker: Core, resource: DestinationResource) -> None:
    """Have what a resource asks for exist. Raises BrokerError."""
    if resource.spec.kind == "Stream":
        settings = resource.spec.stream or Stream()
        broker.streams.declare(resource.name, converted(settings, StreamSettings))
    else:
        broker.declare(destination_of(resource))


def configuration_hash(broker: Broker, destinations: Iterable[DestinationResource]) -> str:
    """Return 16 hexadecimal digits that change with anything the resources ask for.

    They are of the SHA-256 of the specs as JSON with sorted keys, destinations by name.
    """
    asked = {
        "broker": broker.spec.model_dump(mode="json"),
        "destinations": sorted(
            [[each.name, each.spec.model_dump(mode="json")] for each in destinations],
            key=lambda pair: str(pair[0]),
        ),
    }
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def policy_map(broker: Broker, destinations: Iterable[DestinationResource]) -> PolicyMap:
    """Return the policies: those of single destinations win over the broker's wildcards."""
    entries = [_entry(entry) for entry in broker.spec.destination_policies]
    for resource in destinations:
        if resource.spec.policy is not None:
            is_queue = resource.spec.kind == "Queue"
            entries.append(
                PolicyEntry(
                    resource.name, is_queue, converted(resource.spec.policy, DestinationPolicy)
                )
            )
    return PolicyMap(entries)


def _entry(entry: DestinationPolicyEntry) -> PolicyEntry:
    is_queue = None if entry.kind is None else entry.kind == "Queue"
    return PolicyEntry(entry.match, is_queue, converted(entry, DestinationPolicy))
