"""Declaration of a destination to its broker: an owner and a policy."""

from dataclasses import dataclass
from typing import Any

from lockkeeper_api import DestinationSpec
from lockkeeper_api.policies.network_bridge_filter import NetworkBridgeFilter
from lockkeeper_api.streams import Stream
from lockkeeper_operator.brokers.desired.network_part import filtered
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.polling.views import policy_said


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the broker is told; no *policy* leaves the destination to the Broker's own policies."""

    owner: str
    policy: dict[str, Any] | None


def declaration(
    resource: Manifest, spec: DestinationSpec, bridge_filter: NetworkBridgeFilter | None = None
) -> Declaration:
    """Return the declaration of a Destination.

    A stream's settings are its policy. A queue's policy that says nothing of bridges has the
    *bridge_filter* of its Broker's networks.
    """
    if spec.kind == "Stream":
        return Declaration(owner_of(resource), policy_said(spec.stream or Stream()))
    policy = spec.policy
    if policy is not None and bridge_filter is not None and spec.kind == "Queue":
        policy = filtered(policy, bridge_filter)
    return Declaration(owner_of(resource), None if policy is None else policy_said(policy))


def owner_of(resource: Manifest) -> str:
    """Return the name by which a broker knows the resource that owns a destination."""
    metadata = resource["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"
