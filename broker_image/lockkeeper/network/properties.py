"""Settings of a bridge in its BrokerInfo's networkProperties, by ActiveMQ's names."""

from collections.abc import Callable, Sequence
from typing import Any

from lockkeeper.message.destination import Destination, parse_destination
from lockkeeper.network.java_properties import read, written
from lockkeeper.network.settings import BridgeSettings, Included

_FORCE_DURABLE = "forceDurable"


def _flag(text: str) -> bool:
    return text.strip().lower() == "true"


_FIELDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "name": ("name", str),
    "duplex": ("duplex", _flag),
    "conduitSubscriptions": ("conduit_subscriptions", _flag),
    "conduitNetworkQueueSubscriptions": ("conduit_network_queue_subscriptions", _flag),
    "dynamicOnly": ("dynamic_only", _flag),
    "staticBridge": ("static_bridge", _flag),
    "decreaseNetworkConsumerPriority": ("decrease_network_consumer_priority", _flag),
    "consumerPriorityBase": ("consumer_priority_base", int),
    "bridgeTempDestinations": ("bridge_temp_destinations", _flag),
    "prefetchSize": ("prefetch_size", int),
    "advisoryPrefetchSize": ("advisory_prefetch_size", int),
    "advisoryAckPercentage": ("advisory_ack_percentage", int),
    "messageTTL": ("message_ttl", int),
    "consumerTTL": ("consumer_ttl", int),
    "suppressDuplicateQueueSubscriptions": ("suppress_duplicate_queue_subscriptions", _flag),
    "suppressDuplicateTopicSubscriptions": ("suppress_duplicate_topic_subscriptions", _flag),
    "alwaysSyncSend": ("always_sync_send", _flag),
    "useCompression": ("use_compression", _flag),
    "syncDurableSubs": ("sync_durable_subs", _flag),
    "useVirtualDestSubs": ("use_virtual_dest_subs", _flag),
    "userName": ("user_name", str),
    "password": ("password", str),
    "destinationFilter": ("destination_filter", str),
    "clientIdToken": ("client_id_token", str),
}
_LISTS = {
    "excludedDestinations": "excluded",
    "dynamicallyIncludedDestinations": "dynamically_included",
    "staticallyIncludedDestinations": "statically_included",
}


def properties_of(settings: BridgeSettings, broker_name: str) -> str:
    """Return what the other end of a bridge is told of its *settings*.

    Only that of a duplex bridge has a use for a password: it makes a connection of its own.
    """
    told = {"brokerName": broker_name}
    for name, (field, _) in _FIELDS.items():
        value = getattr(settings, field)
        if value is None or (field in ("user_name", "password") and not settings.duplex):
            continue
        told[name] = str(value).lower() if isinstance(value, bool) else str(value)
    for name, field in _LISTS.items():
        if included := getattr(settings, field):
            told[name] = f"[{', '.join(map(_shown, included))}]"
    return written(told)


def settings_of(properties: str | None) -> BridgeSettings:
    """Return the settings that the other end of a bridge has told of.

    Raises ValueError for one that is not what it must be.
    """
    found: dict[str, Any] = {}
    for name, text in read(properties or "").items():
        if name in _FIELDS:
            field, parse = _FIELDS[name]
            try:
                found[field] = parse(text)
            except ValueError as error:
                raise ValueError(f"networkProperties: {name}={text}: {error}") from error
        elif name in _LISTS:
            found[_LISTS[name]] = tuple(_included(text))
    return BridgeSettings(**found)


def _shown(included: Included) -> str:
    return f"{included.destination}{f'?{_FORCE_DURABLE}=true' if included.force_durable else ''}"


def _included(text: str) -> Sequence[Included]:
    parts = (part.strip() for part in text.strip().removeprefix("[").removesuffix("]").split(","))
    return [read_included(part) for part in parts if part]


def read_included(text: str) -> Included:
    """Return what a text such as `topic://PRICES.>?forceDurable=true` stands for.

    Raises ValueError.
    """
    name, _, options = text.partition("?")
    destination: Destination = parse_destination(name)
    return Included(destination, f"{_FORCE_DURABLE}=true" in options.split("&"))
