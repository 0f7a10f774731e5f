"""Messages: one base with every field, and the types that differ in what the content is."""

from typing import Annotated

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import MessageId, ProducerId, TransactionId
from lockkeeper.message.openwire.connection import BaseCommand
from lockkeeper.message.openwire.identities import BrokerId, ConsumerId
from lockkeeper.message.openwire.structure import (
    Array,
    Cached,
    Flag,
    Int8,
    Int32,
    Int64,
    Nested,
    Octets,
    Since,
    Structure,
    Text,
    base,
    structure,
)


@base
class Message(BaseCommand):
    """The fields that all messages have; times are in ms since 1970, 0 for none."""

    producer_id: Cached[ProducerId] = None
    destination: Cached[Destination] = None
    transaction_id: Cached[TransactionId] = None
    original_destination: Cached[Destination] = None
    message_id: Nested[MessageId] = None
    original_transaction_id: Cached[TransactionId] = None
    group_id: Text = None
    group_sequence: Int32 = 0
    correlation_id: Text = None
    persistent: Flag = False
    expiration: Int64 = 0
    priority: Int8 = 4
    reply_to: Nested[Destination] = None
    timestamp: Int64 = 0
    type: Text = None
    content: Octets = None
    marshalled_properties: Octets = None
    data_structure: Nested[Structure] = None
    target_consumer_id: Cached[ConsumerId] = None
    compressed: Flag = False
    redelivery_counter: Int32 = 0
    broker_path: Array[BrokerId] = None
    arrival: Int64 = 0
    user_id: Text = None
    received_by_df_bridge: Flag = False
    droppable: Annotated[Flag, Since(2)] = False
    cluster: Annotated[Array[BrokerId], Since(3)] = None
    broker_in_time: Annotated[Int64, Since(3)] = 0
    broker_out_time: Annotated[Int64, Since(3)] = 0
    group_first_for_consumer: Annotated[Flag, Since(10)] = False


@structure(23)
class ActiveMQMessage(Message):
    """A message without a body: properties only, or an advisory with its data structure."""


@structure(24)
class ActiveMQBytesMessage(Message):
    """The content is what the application wrote."""


@structure(25)
class ActiveMQMapMessage(Message):
    """The content is a primitive map."""


@structure(26)
class ActiveMQObjectMessage(Message):
    """The content is a Java serialization stream."""


@structure(27)
class ActiveMQStreamMessage(Message):
    """The content is a row of tagged values."""


@structure(28)
class ActiveMQTextMessage(Message):
    """The content is a text with a 32-bit length."""


@structure(29)
class ActiveMQBlobMessage(Message):
    """The content lies elsewhere, at a URL."""

    remote_blob_url: Annotated[Text, Since(3)] = None
    mime_type: Annotated[Text, Since(3)] = None
    deleted_by_broker: Annotated[Flag, Since(3)] = False
