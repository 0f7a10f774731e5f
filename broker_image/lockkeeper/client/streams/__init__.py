"""Streams and consumer groups, by RocketMQ's remoting protocol: of Lockkeeper and of RocketMQ.

Calls wait in their thread; `lockkeeper.client.streams.aio` has the same names for asyncio.

Comes in: what an application sends, reads and consumes. Never here: OpenWire, queues and topics.
"""

from lockkeeper.client.streams.aio.transaction import Outcome
from lockkeeper.client.streams.blocking.connection import Connection, connect
from lockkeeper.client.streams.blocking.consumer import GroupConsumer
from lockkeeper.client.streams.blocking.producer import Producer, Transaction
from lockkeeper.client.streams.blocking.reader import Reader
from lockkeeper.client.streams.core.groups import ConsumeLater, GroupSettings
from lockkeeper.client.streams.core.messages import Message, ReceivedMessage, SendStatus, Sent
from lockkeeper.client.streams.core.positions import FIRST, LAST, Position
from lockkeeper.client.streams.core.routes import Partition
from lockkeeper.client.streams.core.subscriptions import Sql
from lockkeeper.client.streams.core.window import Bounds
from lockkeeper.client.streams.errors import (
    AddressError,
    BrokerBusyError,
    InvalidFilterError,
    NoSuchStreamError,
    NotAllowedError,
    StreamError,
    StreamRefusedError,
    UnreadableAnswerError,
    UnreadableBodyError,
)
from lockkeeper.client.streams.links.addresses import Credentials, Means

__all__ = [
    "connect",
    "Connection",
    "Producer",
    "Transaction",
    "Reader",
    "GroupConsumer",
    "Message",
    "ReceivedMessage",
    "Sent",
    "SendStatus",
    "Partition",
    "Position",
    "FIRST",
    "LAST",
    "Sql",
    "Outcome",
    "GroupSettings",
    "Bounds",
    "ConsumeLater",
    "Credentials",
    "Means",
    "StreamError",
    "AddressError",
    "BrokerBusyError",
    "InvalidFilterError",
    "NoSuchStreamError",
    "NotAllowedError",
    "StreamRefusedError",
    "UnreadableAnswerError",
    "UnreadableBodyError",
]
