"""The Broker resource: one broker, its listeners, its store, its policies."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from lockkeeper_api.changes import LIVE, OPERATOR, POD
from lockkeeper_api.cluster.access import Access
from lockkeeper_api.cluster.bootstrap import Bootstrap
from lockkeeper_api.cluster.exposure import ListenerService, Route, Tls
from lockkeeper_api.cluster.lease import Lease
from lockkeeper_api.cluster.operation import (
    AllowedDestinations,
    AllowedNetworks,
    Analytics,
    DisruptionBudget,
    Monitoring,
    Update,
)
from lockkeeper_api.cluster.pods import Image, Pods
from lockkeeper_api.cluster.security import Security
from lockkeeper_api.cluster.storage import Storage
from lockkeeper_api.cluster_clients import NEEDS_URLS, check_filter
from lockkeeper_api.composites import CompositeDestination
from lockkeeper_api.limits import Limits
from lockkeeper_api.meta import API_VERSION, LABEL_PATTERN, ApiModel, ApiVersion, Metadata
from lockkeeper_api.mirrors import MirroredQueues
from lockkeeper_api.multicast_uris import checked_discovery_uri
from lockkeeper_api.network_connectors import NetworkConnector, unique_connectors
from lockkeeper_api.policy import DestinationPolicyEntry
from lockkeeper_api.quantities import Duration, Size, durations, sizes
from lockkeeper_api.raw import Raw
from lockkeeper_api.rules import rules
from lockkeeper_api.streams import Streams
from lockkeeper_api.system_usage import SystemUsage
from lockkeeper_api.units import MEBIBYTE
from lockkeeper_api.virtual_topics import VirtualTopic
from lockkeeper_api.zones import TimeZone

AdvertisedUrl = Annotated[
    str, Field(max_length=300, pattern=r"^[a-z]+://[A-Za-z0-9.\-\[\]:]+:[0-9]{1,5}$")
]
Port = Annotated[int, Field(ge=0, le=65535)]
DEFAULT_NAME = "lockkeeper"
REPLICAS_MAX = 9
SECOND = timedelta(seconds=1)


ROUTE_NEEDS_TLS = "route needs tls: connections are told apart by TLS' server name"
_ROUTE_NEEDS_TLS_RULE = "!has(self.route) || has(self.tls)"
_NEEDS_URLS_RULE = (
    "!(self.updateClusterClients || self.rebalanceClusterClients)"
    " || (has(self.advertisedUrls) && self.advertisedUrls.size() > 0)"
)


class Listener(ApiModel):
    """An address that clients connect to."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (_ROUTE_NEEDS_TLS_RULE, ROUTE_NEEDS_TLS), (_NEEDS_URLS_RULE, NEEDS_URLS)
        )
    )

    name: str = Field(min_length=1, max_length=63, pattern=LABEL_PATTERN)
    """Name of the listener, unique in the broker."""
    protocol: Literal["openwire", "rocketmq"] = "openwire"
    """Protocol spoken there: that of ActiveMQ's clients, or that of RocketMQ's, for which the
    listener is name server and broker at once."""
    host: str | None = Field(default=None, min_length=1, max_length=253)
    """Address to listen on; absent: 127.0.0.1 for local processes, all addresses of a pod."""
    port: Port = 61616
    """Port to listen on; 0 takes any free one."""
    frame_bytes_max: Annotated[Size, sizes("1Ki", "1Gi")] = 100 * MEBIBYTE
    """Longest frame a client may send (ActiveMQ's wireFormat.maxFrameSize)."""
    connections_max: int = Field(default=1000, ge=1, le=1_000_000)
    """Connections open at a time (ActiveMQ's maximumConnections)."""
    login_timeout: Annotated[Duration, durations("100ms", "1h")] = 10 * SECOND
    """Time that a client may take for TLS, handshake and login together."""
    connections_before_login_max: int = Field(default=1000, ge=1, le=1_000_000)
    """Connections at a time that have not logged in; one more closes the oldest of them."""
    max_inactivity_duration: Annotated[Duration, durations("0s", "24h")] = 30 * SECOND
    """Silence after which a connection counts as dead; 0s: never."""
    allow_link_stealing: bool = False
    """Give a client id in use to the connection that claims it last (ActiveMQ's
    allowLinkStealing)."""
    advertised_urls: list[AdvertisedUrl] = Field(default=[], max_length=9)
    """Addresses of the replicas that clients are told for their failover (as with ActiveMQ's
    updateClusterClients); empty: none are told."""
    update_cluster_clients: bool = False
    """Tell clients of the brokers that bridges lead to, too, and when there are more of them."""
    update_cluster_clients_on_remove: bool = False
    """Tell clients when a bridge has ended."""
    rebalance_cluster_clients: bool = False
    """Have each client move to the first broker that it is told of, another one each time."""
    update_cluster_filter: Annotated[
        str | None, Field(max_length=1024), AfterValidator(check_filter)
    ] = None
    """Names of brokers that clients are told of: regular expressions, separated by commas; absent:
    all."""
    discovery_uri: Annotated[
        str | None, Field(max_length=1024), AfterValidator(checked_discovery_uri)
    ] = None
    """Multicast group that is told of the listener, for brokers and clients that look there:
    `multicast://default`; absent: none (ActiveMQ's discoveryUri)."""
    tls: Tls | None = None
    """Cluster: encryption; absent: none."""
    service: Annotated[ListenerService, OPERATOR] = ListenerService()
    """Cluster: the Service BROKER-LISTENER, which leads to the master."""
    route: Annotated[Route | None, OPERATOR] = None
    """Cluster: a way in by host name, past a Gateway or an Ingress; with `service.perPod` one for
    each pod, too, by the hosts of `advertisedUrls`."""

    @model_validator(mode="after")
    def _is_advertised(self) -> "Listener":
        tells = self.update_cluster_clients or self.rebalance_cluster_clients
        if tells and not self.advertised_urls:
            raise ValueError(NEEDS_URLS)
        return self

    @model_validator(mode="after")
    def _can_be_told_apart(self) -> "Listener":
        if self.route is not None and self.tls is None:
            raise ValueError(ROUTE_NEEDS_TLS)
        return self


class Admin(ApiModel):
    """The HTTP endpoint for health, status and metrics."""

    host: str | None = Field(default=None, min_length=1, max_length=253)
    """Address to listen on; absent: 127.0.0.1 for local processes, all addresses of a pod."""
    port: Port = 8161
    """Port of the first replica; every further local replica takes the next one. 0: any free."""
    tls_port: int = Field(default=8171, ge=1, le=65535)
    """Cluster: port of the endpoint with TLS, which the operator uses. Then `port` answers /api/
    only to requests from within the pod."""


class Recorder(ApiModel):
    """The flight recorder: trace records with the times of events, for analytics."""

    enabled: bool = True
    """Write clock, statistics and event records."""
    clock_interval: Annotated[Duration, durations("1ms", "1m")] = SECOND / 20
    """Resolution of acknowledgement times; written only with other records."""
    statistics_interval: Annotated[Duration, durations("100ms", "1h")] = 10 * SECOND
    """Interval at which figures of changed destinations are written."""


class Journal(ApiModel):
    """The KahaDB journal."""

    file_bytes: Annotated[Size, sizes("64Ki", "1Gi")] = 32 * MEBIBYTE
    """Length of a journal file (ActiveMQ's journalMaxFileLength)."""
    cleanup_interval: Annotated[Duration, durations("100ms", "24h")] = 30 * SECOND
    """Interval at which files that nothing refers to are deleted."""
    archive: bool = False
    """Move those files to data-archive instead, for analytics (ActiveMQ's archiveDataLogs)."""
    enable_ack_compaction: bool = True
    """Replace a journal file with few needed records by a copy of these records alone."""
    compact_acks_after_no_gc: Annotated[
        int, Field(alias="compactAcksAfterNoGC", ge=1, le=1_000_000)
    ] = 10
    """Number of clean-ups that delete nothing before one compacts. It is 1 while the journal
    exceeds 4 files and 3 times its live messages."""
    compact_acks_ignores_store_growth: bool = False
    """Compact also while new files are begun and the journal is within those bounds."""
    recorder: Recorder = Recorder()
    """The flight recorder."""


class Locker(ApiModel):
    """The lock that makes one of the processes sharing a directory the master."""

    acquire_interval: Annotated[Duration, durations("10ms", "1h")] = SECOND / 4
    """Interval at which a standby tries to take the lock (ActiveMQ's lockAcquireSleepInterval)."""
    keep_alive_period: Annotated[Duration, durations("0s", "1h")] = SECOND
    """Interval at which the master checks that it still holds the lock; 0s: never."""
    lease: Lease = Lease()
    """Cluster: a second lock, for file systems that can lose the first."""


class Timestamps(ApiModel):
    """The broker's clock instead of the producers' (ActiveMQ's timeStampingBrokerPlugin)."""

    zero_expiration_override: Annotated[Duration, durations("0s", "87600h")] = timedelta(0)
    """Time to live of messages that have none; 0s leaves them without."""
    ttl_ceiling: Annotated[Duration, durations("0s", "87600h")] = timedelta(0)
    """Longest time to live that a message may have; 0s for no limit."""
    future_only: bool = False
    """Never move an expiry to an earlier time."""


SCHEDULED_MAX = 100_000_000


class Scheduler(ApiModel):
    """Delayed and repeated delivery, as a message's AMQ_SCHEDULED_… properties ask."""

    enabled: bool = False
    """Heed AMQ_SCHEDULED_DELAY, _PERIOD, _REPEAT and _CRON (ActiveMQ's schedulerSupport)."""
    time_zone: TimeZone = "UTC"
    """Time zone of AMQ_SCHEDULED_CRON, such as Europe/Berlin."""
    max_scheduled_messages: int = Field(default=1_000_000, ge=1, le=SCHEDULED_MAX)
    """Number of scheduled messages that may wait; each takes about 1.3 KB of memory beyond
    systemUsage.memoryUsage, a further one is refused."""


NAME_PATTERN = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
NAME_RULE = "metadata.name: expected a letter, then letters, digits and hyphens"
NAME_CHARACTERS_MAX = 45
"""Length of a Broker's name in a cluster, where others begin with it."""
RESERVED_LISTENERS = ["replicas", "admin", "admin-tls"]
SERVICE_NAMES = (
    "metadata.name: at most 45 characters, 62 with any listener's, and no listener `replicas`, "
    "`admin` or `admin-tls`"
)
SERVICE_NAMES_RULE = (
    f"size(self.metadata.name) <= {NAME_CHARACTERS_MAX} && self.spec.listeners.all(l, "
    f"!(l.name in {RESERVED_LISTENERS}) && size(l.name) + size(self.metadata.name) <= 62)"
)
POD_SERVICE_NAMES = (
    "metadata.name: at most 60 characters with that of a listener with service.perPod"
)
POD_SERVICE_NAMES_RULE = (
    "self.spec.listeners.all(l, !has(l.service) || !l.service.perPod || "
    "size(l.name) + size(self.metadata.name) <= 60)"
)
FIXED_PORTS = "a cluster needs to know ports beforehand: a port for each, 0 is for local processes"
ADMIN_PORTS = "spec.admin.tlsPort is a port of its own: neither spec.admin.port nor a listener's"
ADMIN_PORTS_RULE = (
    "self.spec.admin.tlsPort != self.spec.admin.port && "
    "self.spec.listeners.all(l, l.port != self.spec.admin.tlsPort)"
)
FIXED_PORTS_RULE = "self.all(a, a.port > 0 && self.exists_one(b, a.port == b.port))"


def _unique(listeners: list[Listener]) -> list[Listener]:
    """Return *listeners* if no two share a name or an address; ValueError otherwise."""
    _refuse_twice("name", (listener.name for listener in listeners))
    ports = [(listener.host, listener.port) for listener in listeners if listener.port]
    _refuse_twice("Service", _service_names(listeners))
    _refuse_twice("address", (f"{host or ''}:{port}" for host, port in ports))
    return listeners


def _service_names(listeners: list[Listener]) -> Iterable[str]:
    """Yield the ends of the names of all Services."""
    for listener in listeners:
        yield listener.name
        if listener.service.per_pod:
            yield from (f"{listener.name}-{number}" for number in range(REPLICAS_MAX))


def _refuse_twice(what: str, values: Iterable[str]) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"two listeners have the same {what}, {value!r}")
        seen.add(value)


class BrokerSpec(ApiModel):
    """Settings of a broker.

    `lockkeeper up` passes over what is described as "Cluster:"; the operator carries it out.
    """

    replicas: Annotated[int, OPERATOR] = Field(default=1, ge=1, le=REPLICAS_MAX)
    """Processes that share the store: one is the master, the others stand by."""
    listeners: Annotated[list[Listener], AfterValidator(_unique)] = Field(
        default=[Listener(name="openwire")],
        min_length=1,
        max_length=16,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            **rules((FIXED_PORTS_RULE, FIXED_PORTS)),
        },
    )
    """Addresses that clients connect to."""
    admin: Admin = Admin()
    """The HTTP endpoint for health, status and metrics."""
    journal: Journal = Journal()
    """The KahaDB journal."""
    locker: Locker = Locker()
    """The lock that makes one replica the master."""
    system_usage: SystemUsage = SystemUsage()
    """Limits of memory, journal and temporary files together."""
    timestamps: Timestamps | None = None
    """Set the timestamps of messages by the broker's clock; absent: producers set them."""
    populate_jmsx_user_id: bool = False
    """Write the user's name into every message as JMSXUserID (populateJMSXUserID)."""
    scheduler: Scheduler = Scheduler()
    """Delayed and repeated delivery."""
    limits: Limits = Limits()
    """Largest numbers of destinations, consumers and the like."""
    streams: Streams = Streams()
    """Streams and consumer groups."""
    virtual_topics: list[VirtualTopic] = Field(
        default=[VirtualTopic(name="VirtualTopic.>")], max_length=64
    )
    """Topics whose messages queues collect; a list of your own replaces ActiveMQ's default."""
    composite_destinations: list[CompositeDestination] = Field(default=[], max_length=128)
    """Queues and topics whose messages go to others."""
    mirrored_queues: MirroredQueues | None = None
    """A mirror topic for every queue (ActiveMQ's useMirroredQueues); absent: no mirrors."""
    network_connectors: Annotated[
        list[NetworkConnector], AfterValidator(unique_connectors), LIVE
    ] = Field(default=[], max_length=256)
    """Bridges to other brokers."""
    schedule_period_for_destination_purge: Annotated[Duration, durations("0s", "24h")] = timedelta(
        0
    )
    """Interval of the search for inactive destinations, to remove them; 0s: never."""
    max_purged_destinations_per_sweep: int = Field(default=0, ge=0, le=1_000_000)
    """Number of inactive destinations that one search removes; 0 for all."""
    advisory_support: bool = True
    """Publish advisories of connections, destinations and the like on topics
    ActiveMQ.Advisory.*."""
    use_virtual_dest_subs: bool = False
    """Tell other brokers of consumers behind virtual topics and composite destinations."""
    use_virtual_dest_subs_on_creation: bool = False
    """Tell of the queues behind them, too, that have no consumers yet."""
    statistics_queries: bool = False
    """Answer messages to ActiveMQ.Statistics.Broker and the like (statisticsBrokerPlugin)."""
    keep_durable_subs_active: bool = True
    """Collect non-persistent messages, too, for durable subscriptions without a consumer."""
    offline_durable_subscriber_timeout: Annotated[Duration, durations("0s", "87600h")] | None = None
    """Time without a consumer after which a durable subscription is deleted; absent: never."""
    offline_durable_subscriber_task_schedule: Annotated[Duration, durations("10ms", "24h")] = (
        timedelta(minutes=5)
    )
    """Interval of the search for such subscriptions."""
    destination_policies: Annotated[list[DestinationPolicyEntry], LIVE] = Field(
        default=[], max_length=512
    )
    """Policies of destinations; a destination that no entry matches gets the defaults of an
    entry."""
    storage: Annotated[Storage, POD] = Storage()
    """Cluster: volume of the journal; local processes use the directory of --data."""
    bootstrap: Annotated[Bootstrap | None, OPERATOR] = None
    """Cluster: source of the journal before the first start; absent: an empty journal."""
    access: Annotated[Access, LIVE] = Access()
    """Cluster: users and their permissions."""
    image: Annotated[Image, POD] = Image()
    """Cluster: the container image."""
    resources: Annotated[Raw | None, POD] = None
    """Cluster: requests and limits of the broker's container."""
    pods: Annotated[Pods, POD] = Pods()
    """Cluster: placement of pods, their labels, and more containers in them."""
    security: Annotated[Security, POD] = Security()
    """Cluster: rights of pods, and the peers that may connect to them."""
    disruption_budget: Annotated[DisruptionBudget, OPERATOR] = DisruptionBudget()
    """Cluster: number of pods that may be away while nodes are drained."""
    monitoring: Annotated[Monitoring, OPERATOR] = Monitoring()
    """Cluster: resources for the Prometheus operator."""
    update: Annotated[Update, OPERATOR] = Update()
    """Cluster: order and approval of restarts that changes need."""
    paused: Annotated[bool, OPERATOR] = False
    """Cluster: stop the operator's work on this Broker; its pods run on."""
    hibernated: Annotated[bool, OPERATOR] = False
    """Cluster: stop all pods and keep the journal."""
    allowed_destinations: Annotated[AllowedDestinations, OPERATOR] = AllowedDestinations()
    """Cluster: namespaces that Destinations of this Broker may come from."""
    allowed_networks: Annotated[AllowedNetworks, OPERATOR] = AllowedNetworks()
    """Cluster: namespaces whose BrokerNetworks may include this Broker."""
    analytics: Annotated[Analytics, OPERATOR] = Analytics()
    """Cluster: regular analyses of the journal."""

    @model_validator(mode="after")
    def _tells_of_consumers(self) -> "BrokerSpec":
        if self.use_virtual_dest_subs_on_creation and not self.use_virtual_dest_subs:
            raise ValueError("useVirtualDestSubsOnCreation needs useVirtualDestSubs")
        return self


class Broker(ApiModel):
    """An ActiveMQ-compatible message broker."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (f"self.metadata.name.matches('{NAME_PATTERN}')", NAME_RULE),
            (SERVICE_NAMES_RULE, SERVICE_NAMES),
            (POD_SERVICE_NAMES_RULE, POD_SERVICE_NAMES),
            ("self.spec.admin.port > 0", FIXED_PORTS),
            (ADMIN_PORTS_RULE, ADMIN_PORTS),
        )
    )

    api_version: ApiVersion
    """lockkeeper.dev/v1alpha1."""
    kind: Literal["Broker"]
    """Broker."""
    metadata: Metadata
    """Name, namespace and labels of the Broker."""
    spec: BrokerSpec = BrokerSpec()
    """Settings of the broker."""


def default_broker(name: str = DEFAULT_NAME) -> Broker:
    """Return a Broker with every default: one replica, OpenWire on 127.0.0.1:61616."""
    return Broker(api_version=API_VERSION, kind="Broker", metadata=Metadata(name=name))
