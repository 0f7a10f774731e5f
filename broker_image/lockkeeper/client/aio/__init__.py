"""The client for asyncio: the same names as in `lockkeeper.client`, to be awaited.

Comes in: coroutines of an application. Never here: threads, and what messaging means.
"""

from lockkeeper.client.aio.connection import Connection, connect
from lockkeeper.client.aio.consumer import Consumer
from lockkeeper.client.aio.destinations import DestinationSource
from lockkeeper.client.aio.pool import ProducerPool
from lockkeeper.client.aio.producer import Producer
from lockkeeper.client.aio.requesting import Requestor
from lockkeeper.client.aio.session import Session

__all__ = [
    "connect",
    "Connection",
    "Session",
    "Producer",
    "ProducerPool",
    "Consumer",
    "DestinationSource",
    "Requestor",
]
