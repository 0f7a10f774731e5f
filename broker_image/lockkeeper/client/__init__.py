"""The Python client: connections, sessions, producers, consumers, failover.

Comes in: what an application wants to send and receive. Never here: anything of the broker core.
"""

from lockkeeper.client.acknowledge import Acknowledge
from lockkeeper.client.connection import DEFAULT_URL, Connection, connect
from lockkeeper.client.consumer import Consumer
from lockkeeper.client.errors import (
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
from lockkeeper.client.producer import Producer
from lockkeeper.client.redelivery import RedeliveryPolicy
from lockkeeper.client.session import Session
from lockkeeper.client.tls import TlsOptions

__all__ = [
    "connect",
    "Connection",
    "Session",
    "Producer",
    "Consumer",
    "ReceivedMessage",
    "Acknowledge",
    "RedeliveryPolicy",
    "TlsOptions",
    "DestinationName",
    "DEFAULT_URL",
    "MessagingError",
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
