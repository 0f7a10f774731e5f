"""The Python client: connections, sessions, producers, consumers, failover.

Calls wait in their thread; `lockkeeper.client.aio` has the same names for asyncio.

Comes in: what an application wants to send and receive. Never here: anything of the broker core.
"""

from lockkeeper.client.blobs import Blob
from lockkeeper.client.blocking.connection import Connection, connect
from lockkeeper.client.blocking.consumer import Consumer
from lockkeeper.client.blocking.destinations import DestinationSource
from lockkeeper.client.blocking.pool import ProducerPool
from lockkeeper.client.blocking.producer import Producer
from lockkeeper.client.blocking.requesting import Requestor
from lockkeeper.client.blocking.session import Session
from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.core.events import ConnectionState
from lockkeeper.client.core.options import PrefetchPolicy
from lockkeeper.client.core.redelivery import RedeliveryPolicy, RedeliveryPolicyMap
from lockkeeper.client.errors import (
    BlobError,
    BrokerUrlError,
    ConnectionFailedError,
    IllegalStateError,
    InvalidClientIdError,
    InvalidDestinationError,
    InvalidSelectorError,
    MessagingError,
    RefusedError,
    RequestTimedOutError,
    ResourceAllocationError,
    SecurityError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from lockkeeper.client.messages import DestinationName, ReceivedMessage
from lockkeeper.client.opening import DEFAULT_URL
from lockkeeper.client.tls import TlsOptions
from lockkeeper.message.bodies import JavaObject
from lockkeeper.message.ids import XATransactionId as Xid

__all__ = [
    "connect",
    "Connection",
    "Session",
    "Producer",
    "ProducerPool",
    "Consumer",
    "DestinationSource",
    "Requestor",
    "ReceivedMessage",
    "Blob",
    "JavaObject",
    "Acknowledge",
    "ConnectionState",
    "PrefetchPolicy",
    "RedeliveryPolicy",
    "RedeliveryPolicyMap",
    "TlsOptions",
    "Xid",
    "DestinationName",
    "DEFAULT_URL",
    "MessagingError",
    "BlobError",
    "BrokerUrlError",
    "ConnectionFailedError",
    "IllegalStateError",
    "InvalidClientIdError",
    "InvalidDestinationError",
    "InvalidSelectorError",
    "RefusedError",
    "RequestTimedOutError",
    "ResourceAllocationError",
    "SecurityError",
    "TransactionInDoubtError",
    "TransactionRolledBackError",
]
