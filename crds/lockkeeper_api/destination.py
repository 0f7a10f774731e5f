"""The Destination resource: a queue or topic that exists from the start, with its own policy."""

from typing import Literal

from lockkeeper_api.meta import ApiModel, ApiVersion, DestinationKind, Metadata, ResourceName
from lockkeeper_api.policy import DestinationPolicy
from lockkeeper_api.wildcards import DestinationName


class BrokerReference(ApiModel):
    """A Broker in the same namespace."""

    name: ResourceName
    """Name of the Broker."""


class DestinationSpec(ApiModel):
    """What a destination is to be."""

    broker_ref: BrokerReference
    """The Broker that the destination lives on."""
    kind: DestinationKind = "Queue"
    """Queue or Topic."""
    name: DestinationName | None = None
    """Name that clients use; absent: the name of the resource."""
    policy: DestinationPolicy | None = None
    """How it behaves, before any entry of the Broker; absent: as the Broker's entries say."""


class Destination(ApiModel):
    """A queue or topic that exists from the start."""

    api_version: ApiVersion
    """lockkeeper.dev/v1alpha1."""
    kind: Literal["Destination"]
    """Destination."""
    metadata: Metadata
    """Who the destination is."""
    spec: DestinationSpec
    """What the destination is to be."""

    @property
    def name(self) -> str:
        """The name that clients use."""
        return self.spec.name or self.metadata.name
