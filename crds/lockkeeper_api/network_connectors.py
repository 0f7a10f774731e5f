"""Network connectors: bridges to other brokers, over which messages follow their consumers."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from lockkeeper_api.meta import ApiModel, DestinationKind
from lockkeeper_api.network_uris import read_network_uri
from lockkeeper_api.wildcards import NAME_CHARACTERS_MAX, WILDCARD_PATTERN, check_wildcard

NAMES_TWICE = "two network connectors have the same name"
SYNC_NEEDS_TOPICS = (
    "syncDurableSubs is about topics in dynamicallyIncludedDestinations: list them, > for all"
)
NOT_SUPPORTED = {
    "advisoryForFailedForward": "`lockkeeper status` and the log tell why a bridge has ended",
}
"""Settings of ActiveMQ's networkConnector that have no counterpart, with the way out."""
Ttl = Annotated[int, Field(ge=-1, le=1000)]
FilePath = Annotated[str, Field(min_length=1, max_length=1024)]


def _checked_uri(uri: str) -> str:
    read_network_uri(uri)
    return uri


class NetworkDestination(ApiModel):
    """A destination of a bridge, by its name or a wildcard."""

    name: Annotated[
        str,
        Field(min_length=1, max_length=NAME_CHARACTERS_MAX, pattern=WILDCARD_PATTERN),
        AfterValidator(check_wildcard),
    ]
    """Name or wildcard."""
    kind: DestinationKind
    """Queue or Topic."""
    force_durable: bool = False
    """Topics: collect messages for the other broker's plain consumers, too, while the bridge is
    down."""


class NetworkTls(ApiModel):
    """Certificates towards brokers at `ssl://`; files are PEM."""

    ca_file: FilePath | None = None
    """Authorities to trust; absent: the system's."""
    certificate_file: FilePath | None = None
    """Certificate to show; the file may hold the key, too."""
    key_file: FilePath | None = None
    """Key of the certificate."""


class ConnectorAddress(ApiModel):
    """Brokers that a connector dials, and the user that it is there."""

    name: str = Field(default="NC", min_length=1, max_length=63, pattern=r"^[A-Za-z0-9_.\-]+$")
    """Name of the connector, unique in the broker; durable subscriptions contain it."""
    uri: Annotated[str, Field(min_length=1, max_length=2048), AfterValidator(_checked_uri)]
    """Brokers to dial: `static:(tcp://HOST:PORT,…)` each of them, `masterslave:(…)` or
    `failover:(…)` one of them; `multicast://default` those that tell of themselves there."""
    user_name: str | None = Field(default=None, max_length=255)
    """Name of the user at the other brokers."""
    password_file: FilePath | None = None
    """File with the user's password."""
    tls: NetworkTls | None = None
    """Certificates towards brokers at `ssl://`."""


class ConnectorOptions(ApiModel):
    """Options of bridges, with ActiveMQ's names and defaults."""

    duplex: bool = False
    """Forward messages the other way, too, over the same connection."""
    conduit_subscriptions: bool = True
    """Let one consumer stand for all of the other broker's that it can serve."""
    conduit_network_queue_subscriptions: bool = False
    """Do that for a queue's consumers of third brokers, too."""
    dynamic_only: bool = False
    """Wait for durable subscribers of the other broker before their messages are forwarded
    again."""
    static_bridge: bool = False
    """Forward what `staticallyIncludedDestinations` names, and nothing that consumers ask for."""
    decrease_network_consumer_priority: bool = False
    """Prefer consumers of this broker, and shorter ways to others."""
    consumer_priority_base: int = Field(default=-5, ge=-128, le=127)
    """Priority of the other broker's own consumers, if it is decreased."""
    network_ttl: Annotated[Ttl | None, Field(alias="networkTTL")] = None
    """`messageTTL` and `consumerTTL` together."""
    message_ttl: Annotated[Ttl | None, Field(alias="messageTTL")] = None
    """Number of brokers that messages may leave; -1 for any number, absent: 1."""
    consumer_ttl: Annotated[Ttl | None, Field(alias="consumerTTL")] = None
    """Number of brokers that news of consumers may leave; -1 for any number, absent: 1."""
    prefetch_size: int = Field(default=1000, ge=1, le=32_767)
    """Messages on their way to the other broker at a time, of each destination."""
    advisory_prefetch_size: int = Field(default=0, ge=0, le=32_767)
    """Advisories on their way here at a time; 0: `prefetchSize`."""
    advisory_ack_percentage: int = Field(default=75, ge=1, le=100)
    """Share of those that are acknowledged together."""
    always_sync_send: bool = True
    """Keep non-persistent messages, too, until the other broker has confirmed them."""
    use_compression: bool = False
    """Compress the bodies of messages that are forwarded."""
    sync_durable_subs: bool = False
    """Keep nothing for durable subscriptions that were deleted while the bridge was down, of topics
    in `dynamicallyIncludedDestinations`."""
    use_virtual_dest_subs: bool = False
    """Forward what is sent to virtual topics and composite destinations of the other broker, for
    the consumers behind them; it tells of those with `useVirtualDestSubs` of its own."""
    bridge_temp_destinations: bool = True
    """Make temporary destinations of the other broker known here, for replies to it."""
    suppress_duplicate_queue_subscriptions: bool = False
    """Reach each of a queue's consumers on one way through the network only."""
    suppress_duplicate_topic_subscriptions: bool = True
    """Reach each of a topic's consumers on one way through the network only."""
    destination_filter: str | None = Field(default=None, max_length=2048)
    """Advisory topics of consumers to listen to, such as `Queue.>`; absent: what may be
    forwarded."""
    dynamically_included_destinations: list[NetworkDestination] = Field(default=[], max_length=256)
    """Destinations that may be forwarded; empty: all."""
    excluded_destinations: list[NetworkDestination] = Field(default=[], max_length=256)
    """Destinations that are not forwarded, whatever includes them."""
    statically_included_destinations: list[NetworkDestination] = Field(default=[], max_length=256)
    """Destinations that are forwarded without any consumer."""

    @model_validator(mode="after")
    def _ttls_agree(self) -> "ConnectorOptions":
        if self.network_ttl is not None and (self.message_ttl, self.consumer_ttl) != (None, None):
            raise ValueError("networkTTL stands for messageTTL and consumerTTL: give it or them")
        return self

    @model_validator(mode="after")
    def _sync_has_topics(self) -> "ConnectorOptions":
        if self.sync_durable_subs and not self.dynamically_included_destinations:
            raise ValueError(SYNC_NEEDS_TOPICS)
        return self

    @model_validator(mode="before")
    @classmethod
    def _is_supported(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        for name, way_out in NOT_SUPPORTED.items():
            if given.get(name):
                raise ValueError(f"{name} is not supported: {way_out}")
        return {name: value for name, value in given.items() if name not in NOT_SUPPORTED}


class NetworkConnector(ConnectorOptions, ConnectorAddress):
    """Bridges to the brokers that `uri` names."""


def unique_connectors(connectors: list[NetworkConnector]) -> list[NetworkConnector]:
    """Return *connectors* if no two share a name; ValueError otherwise."""
    names = [connector.name for connector in connectors]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{NAMES_TWICE}, {name!r}")
    return connectors
