"""Structures of consumers: subscriptions, dispatch and acknowledgement."""

from enum import IntEnum
from typing import Annotated

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import MessageId, TransactionId
from lockkeeper.message.openwire.connection import BaseCommand
from lockkeeper.message.openwire.identities import BrokerId, ConnectionId, ConsumerId
from lockkeeper.message.openwire.message import Message
from lockkeeper.message.openwire.structure import (
    Array,
    Cached,
    DataStructure,
    Failure,
    Flag,
    Int8,
    Int32,
    Int64,
    Nested,
    Since,
    Structure,
    Text,
    structure,
)


class AckType(IntEnum):
    """MessageAck.ack_type (openwire.md section 7.5)."""

    DELIVERED = 0
    POISON = 1
    STANDARD = 2
    REDELIVERED = 3
    INDIVIDUAL = 4
    UNMATCHED = 5
    EXPIRED = 6


@structure(5)
class ConsumerInfo(BaseCommand):
    """A client opens a consumer; a subscription name makes it a durable subscriber."""

    consumer_id: Cached[ConsumerId] = None
    browser: Flag = False
    destination: Cached[Destination] = None
    prefetch_size: Int32 = 0
    maximum_pending_message_limit: Int32 = 0
    dispatch_async: Flag = False
    selector: Text = None
    client_id: Annotated[Text, Since(10)] = None
    subscription_name: Text = None
    no_local: Flag = False
    exclusive: Flag = False
    retroactive: Flag = False
    priority: Int8 = 0
    broker_path: Array[BrokerId] = None
    additional_predicate: Nested[Structure] = None
    network_subscription: Flag = False
    optimized_acknowledge: Flag = False
    no_range_acks: Flag = False
    network_consumer_path: Annotated[Array[ConsumerId], Since(4)] = None


@structure(9)
class RemoveSubscriptionInfo(BaseCommand):
    """A client deletes a durable subscription."""

    connection_id: Cached[ConnectionId] = None
    subscription_name: Text = None
    client_id: Text = None


@structure(17)
class ConsumerControl(BaseCommand):
    """Changes a running consumer: its window, or closes it."""

    destination: Annotated[Nested[Destination], Since(6)] = None
    close: Flag = False
    consumer_id: Nested[ConsumerId] = None
    prefetch: Int32 = 0
    flush: Annotated[Flag, Since(2)] = False
    start: Annotated[Flag, Since(2)] = False
    stop: Annotated[Flag, Since(2)] = False


@structure(20)
class MessagePull(BaseCommand):
    """A consumer without prefetch asks for one message; timeout in ms, -1: do not wait."""

    consumer_id: Cached[ConsumerId] = None
    destination: Cached[Destination] = None
    timeout: Int64 = 0
    correlation_id: Annotated[Text, Since(3)] = None
    message_id: Annotated[Nested[MessageId], Since(3)] = None


@structure(21)
class MessageDispatch(BaseCommand):
    """The broker sends a message to a consumer; no message: a pull or browse has ended."""

    consumer_id: Cached[ConsumerId] = None
    destination: Cached[Destination] = None
    message: Nested[Message] = None
    redelivery_counter: Int32 = 0


@structure(22)
class MessageAck(BaseCommand):
    """A consumer has delivered, consumed or refused a range of messages."""

    destination: Cached[Destination] = None
    transaction_id: Cached[TransactionId] = None
    consumer_id: Cached[ConsumerId] = None
    ack_type: Int8 = AckType.DELIVERED
    first_message_id: Nested[MessageId] = None
    last_message_id: Nested[MessageId] = None
    message_count: Int32 = 0
    poison_cause: Annotated[Failure, Since(7)] = None


@structure(55)
class SubscriptionInfo(DataStructure):
    """A durable subscription, as KahaDB stores it."""

    client_id: Text = None
    destination: Cached[Destination] = None
    selector: Text = None
    subscription_name: Text = None
    subscribed_destination: Annotated[Nested[Destination], Since(3)] = None
    no_local: Annotated[Flag, Since(11)] = False


@structure(90)
class MessageDispatchNotification(BaseCommand):
    """A master tells what it dispatched (brokers of old only)."""

    consumer_id: Cached[ConsumerId] = None
    destination: Cached[Destination] = None
    delivery_sequence: Int64 = 0
    message_id: Nested[MessageId] = None
