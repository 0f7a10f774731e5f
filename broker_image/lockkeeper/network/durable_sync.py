"""Durable subscriptions that both ends of a bridge tell each other of (ActiveMQ's syncDurableSubs).

So one that was deleted while the bridge was down is not kept for by the other end (openwire.md
section 7.11).
"""

from collections.abc import Iterator

from lockkeeper.broker.advisories.structures import consumer_info
from lockkeeper.broker.core import Broker
from lockkeeper.broker.subscriptions.group import DurableGroup
from lockkeeper.message.destination import Destination
from lockkeeper.message.openwire import BrokerId, BrokerSubscriptionInfo, ConsumerId, ConsumerInfo
from lockkeeper.network.inclusion import first_fit, is_forced_durable
from lockkeeper.network.settings import BridgeSettings

VERSION_MIN = 12
"""The first version of OpenWire that has BrokerSubscriptionInfo."""
DURABLE_PREFIX = "NC-DS_"
_OFFLINE = "OFFLINE"


def is_synchronized(settings: BridgeSettings, destination: Destination) -> bool:
    """Tell whether both ends are to agree on the subscribers of *destination*."""
    parts = destination.parts()
    return any(first_fit(settings.dynamically_included, part) is not None for part in parts)


def subscription_info(broker: Broker, settings: BridgeSettings) -> BrokerSubscriptionInfo:
    """Return what the other end is told: which subscriptions it has to keep messages for."""
    return BrokerSubscriptionInfo(
        broker_id=BrokerId(broker.broker_id),
        broker_name=broker.name,
        subscription_infos=tuple(_subscriptions(broker, settings)),
    )


def _subscriptions(broker: Broker, settings: BridgeSettings) -> Iterator[ConsumerInfo]:
    for number, group in enumerate(broker.subscriptions.durables.values(), 1):
        if is_synchronized(settings, group.destination):
            yield _durable_info(group, number)
    for connection in broker.connections.values():
        for consumer in connection.consumers.values():
            is_plain = consumer.subscription_name is None
            if is_plain and is_forced_durable(settings, consumer.destination):
                yield consumer_info(consumer)


def _durable_info(group: DurableGroup, number: int) -> ConsumerInfo:
    """Return a durable subscription as a consumer; one that is offline has an id of that."""
    if group.consumer is not None:
        return consumer_info(group.consumer)
    client_id, name = group.owner
    return ConsumerInfo(
        consumer_id=ConsumerId(_OFFLINE, 0, number),
        destination=group.destination,
        client_id=client_id,
        subscription_name=name,
        selector=group.subscription.selector,
    )


def is_of_this_bridge(settings: BridgeSettings, info: ConsumerInfo) -> bool:
    """Tell whether a subscription is that of the other end of the bridge itself."""
    if not (info.subscription_name or "").startswith(DURABLE_PREFIX):
        return False
    return info.client_id is None or info.client_id.startswith(settings.name)
