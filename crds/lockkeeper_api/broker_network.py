"""The BrokerNetwork resource: Brokers of a cluster that forward messages to each other."""

from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from lockkeeper_api.cluster.label_selector import check_selector
from lockkeeper_api.meta import LABEL_PATTERN, ApiModel, ApiVersion, Metadata
from lockkeeper_api.network_connectors import SYNC_NEEDS_TOPICS, ConnectorOptions
from lockkeeper_api.policies.network_bridge_filter import NetworkBridgeFilter
from lockkeeper_api.raw import ObjectName, Raw
from lockkeeper_api.rules import rules
from lockkeeper_api.status import Conditions, Count, Generation

MEMBERS_MAX = 32
"""Each Broker of a mesh dials all others."""
NAME_CHARACTERS_MAX = 40
NAME_RULE = "metadata.name: at most 40 characters: a letter, then letters, digits and hyphens"
_NAME_RULE = (
    f"size(self.metadata.name) <= {NAME_CHARACTERS_MAX} && "
    "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')"
)
NAMES_NONE = "expected selector or references: without them the network has no Broker"
_NAMES_NONE_RULE = "has(self.selector) || size(self.references) > 0"
HUB_OR_MESH = "topology HubAndSpoke needs hub, and Mesh has none"
_HUB_OR_MESH_RULE = "(self.topology == 'HubAndSpoke') == has(self.hub)"
ONE_TTL = "networkTTL stands for messageTTL and consumerTTL: give it or them"
_ONE_TTL_RULE = (
    "!has(self.connector.networkTTL) || "
    "(!has(self.connector.messageTTL) && !has(self.connector.consumerTTL))"
)
_SYNC_RULE = (
    "!self.connector.syncDurableSubs || size(self.connector.dynamicallyIncludedDestinations) > 0"
)


class MemberReference(ApiModel):
    """A Broker in the same namespace, or in another one that allows it."""

    name: ObjectName
    """Name of the Broker."""
    namespace: str | None = Field(default=None, max_length=63, pattern=LABEL_PATTERN)
    """Namespace of the Broker, whose allowedNetworks must allow it; absent: this one."""


class NetworkBrokers(ApiModel):
    """Brokers of the network: those with certain labels, and those that are named."""

    model_config = ConfigDict(json_schema_extra=rules((_NAMES_NONE_RULE, NAMES_NONE)))

    selector: Annotated[Raw, AfterValidator(check_selector)] | None = None
    """Label selector of Brokers; absent: those of `references` alone. `{}` selects all."""
    namespaces: Literal["Same", "All"] = "Same"
    """Namespaces in which `selector` looks: this one, or all whose Brokers allow the network."""
    references: list[MemberReference] = Field(default=[], max_length=MEMBERS_MAX)
    """Brokers by their names."""

    @model_validator(mode="after")
    def _names_some(self) -> "NetworkBrokers":
        if self.selector is None and not self.references:
            raise ValueError(NAMES_NONE)
        return self


class NetworkReplay(NetworkBridgeFilter):
    """The messages that bridges of the network send back, and how many they forward at a time."""

    replay_when_no_consumers: bool = True
    """Send messages back to a broker that they have left, if a consumer waits there and none
    here."""

    @property
    def policy(self) -> NetworkBridgeFilter:
        """The same as it stands in a policy of destinations."""
        return NetworkBridgeFilter(**dict(self))


class BrokerNetworkSpec(ApiModel):
    """Settings of a network: its Brokers, its shape, and its bridges."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (_HUB_OR_MESH_RULE, HUB_OR_MESH),
            (_ONE_TTL_RULE, ONE_TTL),
            (_SYNC_RULE, SYNC_NEEDS_TOPICS),
        )
    )

    brokers: NetworkBrokers
    """Brokers of the network, at most 32; the oldest ones if there are more."""
    topology: Literal["Mesh", "HubAndSpoke"] = "Mesh"
    """Shape of the network. Mesh: every Broker has bridges to all others. HubAndSpoke: every other
    Broker has bridges to `hub`."""
    hub: MemberReference | None = None
    """HubAndSpoke: the Broker in the middle; it need not be among `brokers`."""
    listener: str | None = Field(default=None, max_length=63, pattern=LABEL_PATTERN)
    """Name of the listener that bridges dial; absent: the first one of each Broker."""
    connector: ConnectorOptions = ConnectorOptions()
    """Options of all bridges. With `duplex` one Broker of two dials, a spoke its hub; otherwise
    both do. Without any TTL, `networkTTL` is 1 in a mesh, and 2 with a hub."""
    network_bridge_filter: NetworkReplay = NetworkReplay()
    """Policy for queues of these Brokers whose own policies say nothing of it."""

    @model_validator(mode="after")
    def _has_its_hub(self) -> "BrokerNetworkSpec":
        if (self.topology == "HubAndSpoke") != (self.hub is not None):
            raise ValueError(HUB_OR_MESH)
        return self


class BrokerNetwork(ApiModel):
    """Brokers of a cluster that forward messages to each other's consumers, by bridges that the
    operator makes."""

    model_config = ConfigDict(json_schema_extra=rules((_NAME_RULE, NAME_RULE)))

    api_version: ApiVersion
    """lockkeeper.dev/v1alpha1."""
    kind: Literal["BrokerNetwork"]
    """BrokerNetwork."""
    metadata: Metadata
    """Name, namespace and labels of the network."""
    spec: BrokerNetworkSpec
    """Settings of the network."""


class BridgeCounts(ApiModel):
    """Numbers of bridges, each one way, or both ways if it is duplex."""

    expected: Count
    """Number of bridges that are to be there."""
    connected: Count
    """Number of those that are connected, as the dialling Brokers say."""


class MemberStatus(ApiModel):
    """A Broker of the network."""

    namespace: str = Field(max_length=63)
    """Namespace of the Broker."""
    name: str = Field(max_length=253)
    """Name of the Broker."""
    bridges: BridgeCounts
    """Bridges that this Broker dials."""
    waiting: Count
    """Number of messages in queues that its bridges forward, rounded down to a power of ten."""
    stranded: Count
    """Number of those that neither a consumer nor a bridge takes, rounded down like that."""


class RefusedMember(ApiModel):
    """A Broker that is named or selected, and is not in the network."""

    namespace: str = Field(max_length=63)
    """Namespace of the Broker."""
    name: str = Field(max_length=253)
    """Name of the Broker."""
    reason: str = Field(max_length=64)
    """Reason in one word, for tools."""
    message: str = Field(max_length=1024)
    """Reason in a sentence, with the way out."""


class BrokerNetworkStatus(ApiModel):
    """State of the network, as the operator found it."""

    observed_generation: Generation | None = None
    """Generation of the resource that this status is about."""
    conditions: Conditions = Field(default=[])
    """Ready: all bridges are connected. Reconciling: some are awaited. Stalled: somebody has to
    change something first."""
    brokers: Count | None = None
    """Number of Brokers in the network."""
    bridges: BridgeCounts | None = None
    """Bridges of the whole network."""
    members: list[MemberStatus] = Field(default=[], max_length=MEMBERS_MAX)
    """Brokers in the network."""
    refused: list[RefusedMember] = Field(default=[], max_length=MEMBERS_MAX)
    """Brokers that are named or selected and kept out, the first 32 of them."""
