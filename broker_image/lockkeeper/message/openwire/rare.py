"""Structures that a broker only has to let pass: old journals, discovery, UDP, networks."""

from typing import Annotated

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import MessageId, TransactionId
from lockkeeper.message.openwire.connection import BaseCommand
from lockkeeper.message.openwire.consumer import ConsumerInfo, MessageAck
from lockkeeper.message.openwire.identities import BrokerId
from lockkeeper.message.openwire.structure import (
    Array,
    Cached,
    DataStructure,
    Flag,
    Int8,
    Int32,
    Int64,
    Nested,
    Octets,
    Since,
    Text,
    Until,
    structure,
)


@structure(40)
class DiscoveryEvent(DataStructure):
    """A service was found or lost."""

    service_name: Text = None
    broker_name: Text = None


@structure(50)
class JournalTopicAck(DataStructure):
    """An acknowledgement of a durable subscription in an old journal."""

    destination: Nested[Destination] = None
    message_id: Nested[MessageId] = None
    message_sequence: Int64 = 0
    subscription_name: Text = None
    client_id: Text = None
    transaction_id: Nested[TransactionId] = None


@structure(52)
class JournalQueueAck(DataStructure):
    """An acknowledgement of a queue's message in an old journal."""

    destination: Nested[Destination] = None
    message_ack: Nested[MessageAck] = None


@structure(53)
class JournalTrace(DataStructure):
    """A comment in an old journal."""

    message: Text = None


@structure(54)
class JournalTransaction(DataStructure):
    """The end of a transaction in an old journal."""

    transaction_id: Nested[TransactionId] = None
    type: Int8 = 0
    was_prepared: Flag = False


@structure(60)
class PartialCommand(DataStructure):
    """A piece of a command that did not fit a datagram."""

    command_id: Int32 = 0
    data: Octets = None


@structure(61)
class LastPartialCommand(PartialCommand):
    """The last piece."""


@structure(65)
class ReplayCommand(BaseCommand):
    """A request to send datagrams again."""

    first_nak_number: Int32 = 0
    last_nak_number: Int32 = 0


@structure(91)
class NetworkBridgeFilter(DataStructure):
    """The predicate of a network consumer: how many brokers a message may still pass."""

    network_ttl: Annotated[Int32, Until(9)] = 0
    network_broker_id: Cached[BrokerId] = None
    message_ttl: Annotated[Int32, Since(10)] = 0
    consumer_ttl: Annotated[Int32, Since(10)] = 0


@structure(92)
class BrokerSubscriptionInfo(BaseCommand):
    """The durable subscriptions that a broker has for a bridge (version 12)."""

    broker_id: Nested[BrokerId] = None
    broker_name: Text = None
    subscription_infos: Array[ConsumerInfo] = None
