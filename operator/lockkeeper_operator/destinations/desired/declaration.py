"""Declaration of a destination to its broker: an owner and a policy."""

from dataclasses import dataclass
from typing import Any

from lockkeeper_api import DestinationSpec
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.polling.views import policy_said


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the broker is told; no *policy* leaves the destination to the Broker's own policies."""

    owner: str
    policy: dict[str, Any] | None


def declaration(resource: Manifest, spec: DestinationSpec) -> Declaration:
    """Return the declaration of a Destination."""
    policy = None if spec.policy is None else policy_said(spec.policy)
    return Declaration(owner_of(resource), policy)


def owner_of(resource: Manifest) -> str:
    """Return the name by which a broker knows the resource that owns a destination."""
    metadata = resource["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"
