"""Streams for asyncio: the same names as in `lockkeeper.client.streams`, to be awaited.

Comes in: coroutines of an application. Never here: threads, but those that call listeners.
"""

from lockkeeper.client.streams.aio.connection import Connection, connect
from lockkeeper.client.streams.aio.consumer import GroupConsumer
from lockkeeper.client.streams.aio.producer import Producer
from lockkeeper.client.streams.aio.reader import Reader

__all__ = ["connect", "Connection", "Producer", "Reader", "GroupConsumer"]
