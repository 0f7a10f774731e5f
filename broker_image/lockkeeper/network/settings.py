"""Settings of a bridge, with ActiveMQ's defaults; both its ends go by them if it is duplex."""

from dataclasses import dataclass, field

from lockkeeper.message.destination import Destination

UNLIMITED = -1
NETWORK_CONSUMER_PRIORITY = -5
PREFETCH_SIZE = 1000
ADVISORY_ACK_PERCENTAGE = 75


@dataclass(frozen=True, slots=True)
class Included:
    """A destination, by a wildcard perhaps, whose messages a bridge may forward.

    With `force_durable` a topic's plain consumers are served by a durable subscription.
    """

    destination: Destination
    force_durable: bool = False


@dataclass(frozen=True, slots=True)
class BridgeSettings:
    """Settings of one end of a bridge; see the reference of `networkConnectors`.

    `message_ttl` and `consumer_ttl` are numbers of brokers, UNLIMITED for any.
    """

    name: str = "NC"
    duplex: bool = False
    conduit_subscriptions: bool = True
    conduit_network_queue_subscriptions: bool = False
    dynamic_only: bool = False
    static_bridge: bool = False
    decrease_network_consumer_priority: bool = False
    consumer_priority_base: int = NETWORK_CONSUMER_PRIORITY
    bridge_temp_destinations: bool = True
    prefetch_size: int = PREFETCH_SIZE
    advisory_prefetch_size: int = 0
    advisory_ack_percentage: int = ADVISORY_ACK_PERCENTAGE
    message_ttl: int = 1
    consumer_ttl: int = 1
    suppress_duplicate_queue_subscriptions: bool = False
    suppress_duplicate_topic_subscriptions: bool = True
    always_sync_send: bool = True
    use_compression: bool = False
    sync_durable_subs: bool = False
    use_virtual_dest_subs: bool = False
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    destination_filter: str | None = None
    client_id_token: str = "_"
    excluded: tuple[Included, ...] = ()
    dynamically_included: tuple[Included, ...] = ()
    statically_included: tuple[Included, ...] = ()
