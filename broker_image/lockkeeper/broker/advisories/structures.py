"""Contents of advisory messages: the commands that they are about, as OpenWire structures."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import (
    BrokerId,
    BrokerInfo,
    ConnectionId,
    ConnectionInfo,
    ConsumerId,
    ConsumerInfo,
    DestinationInfo,
    DestinationOperation,
    ProducerInfo,
    RemoveInfo,
)
from lockkeeper.message.openwire import Message as MessageFields
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded

if TYPE_CHECKING:
    from lockkeeper.broker.connections import Connection, NetworkPeer
    from lockkeeper.broker.subscriptions.consumer import Consumer


def connection_info(connection: "Connection") -> ConnectionInfo:
    """Return who a connection is; never its password."""
    return ConnectionInfo(
        connection_id=ConnectionId(connection.identifier),
        client_id=connection.client_id,
        user_name=connection.user_name or None,
        password="",
        manageable=True,
        client_master=True,
        fault_tolerant=connection.fault_tolerant,
        failover_reconnect=connection.reconnected,
        client_ip=connection.address,
    )


def connection_removal(connection: "Connection") -> RemoveInfo:
    """Return that a connection has ended."""
    return RemoveInfo(object_id=ConnectionId(connection.identifier))


def bridge_info(peer: "NetworkPeer") -> BrokerInfo:
    """Return the broker at a bridge's other end, without the settings that it may have told."""
    return BrokerInfo(
        broker_id=BrokerId(peer.broker_id),
        broker_url=peer.broker_url,
        broker_name=peer.broker_name,
        network_connection=peer.has_dialled,
        duplex_connection=peer.has_dialled,
    )


def bridge_properties(connection: "Connection", peer: "NetworkPeer") -> Mapping[str, Value]:
    """Return what is told of a bridge that has started."""
    return {
        "started": True,
        "createdByDuplex": peer.has_dialled,
        "remoteIp": connection.address,
    }


def consumer_info(consumer: "Consumer") -> ConsumerInfo:
    """Return what a consumer has asked for."""
    request, network = consumer.request, consumer.request.network
    return ConsumerInfo(
        consumer_id=consumer_id_of(consumer),
        destination=consumer.destination,
        prefetch_size=consumer.prefetch,
        maximum_pending_message_limit=request.pending_limit,
        browser=consumer.browser,
        selector=request.selector,
        client_id=consumer.connection.client_id,
        subscription_name=consumer.subscription_name,
        no_local=consumer.no_local,
        exclusive=request.exclusive,
        retroactive=request.retroactive,
        priority=request.priority,
        optimized_acknowledge=request.optimized,
        broker_path=None if network is None else path_structures(network.path),
        network_subscription=network is not None,
        network_consumer_path=None if network is None else network.consumers,
    )


def path_structures(path: tuple[str, ...]) -> tuple[BrokerId, ...]:
    """Return the ids of brokers as OpenWire has them."""
    return tuple(BrokerId(each) for each in path)


def consumer_id_of(consumer: "Consumer") -> ConsumerId:
    """Return a consumer's id; one of another protocol gets the id of its connection."""
    if isinstance(consumer.identifier, ConsumerId):
        return consumer.identifier
    return ConsumerId(consumer.connection.identifier, 0, 0)


def consumer_removal(consumer: "Consumer") -> RemoveInfo:
    """Return that a consumer has ended."""
    return RemoveInfo(object_id=consumer_id_of(consumer))


def producer_info(producer: object, destination: Destination) -> ProducerInfo:
    """Return a producer and what it sends to."""
    return ProducerInfo(producer_id=_producer_id_of(producer), destination=destination)


def _producer_id_of(producer: object) -> ProducerId | None:
    return producer if isinstance(producer, ProducerId) else None


def producer_removal(producer: object) -> RemoveInfo:
    """Return that a producer has ended."""
    return RemoveInfo(object_id=_producer_id_of(producer))


def destination_info(
    destination: Destination, owner: "Connection | None", removed: bool
) -> DestinationInfo:
    """Return that a destination came, or went; *owner* is the connection of a temporary one."""
    network = None if owner is None else owner.network
    path = None if network is None else network.paths.get(destination)
    return DestinationInfo(
        connection_id=None if owner is None else ConnectionId(owner.identifier),
        destination=destination,
        operation_type=DestinationOperation.REMOVE if removed else DestinationOperation.ADD,
        broker_path=None if not path else path_structures(path),
    )


def message_fields(message: Message, with_body: bool) -> MessageFields:
    """Return a message, without its body unless that is wanted."""
    fields = decoded(message)
    if not with_body:
        fields.content = None
    return fields


def producer_of(connection: "Connection", message: Message) -> ProducerId | None:
    """Return which producer of *connection* has sent *message*, if that is known."""
    producer = decoded(message).producer_id
    return producer if producer in connection.producers else None
