"""Listener container: functions that are called with messages, by as many consumers as it takes.

Spring's DefaultMessageListenerContainer in Python, over the face for asyncio.

Comes in: functions, and settings of how they are called. Never here: sockets and frames.
"""

from lockkeeper.client.listener.back_off import BackOff
from lockkeeper.client.listener.container import ContainerState, Health, ListenerContainer
from lockkeeper.client.listener.converting import InvalidBodyError
from lockkeeper.client.listener.decorator import container_of, listener, run
from lockkeeper.client.listener.outcomes import Outcome, dead_letter, reject, retry
from lockkeeper.client.listener.settings import CacheLevel, Concurrency, ListenerSettings

__all__ = [
    "listener",
    "run",
    "container_of",
    "ListenerContainer",
    "ListenerSettings",
    "BackOff",
    "CacheLevel",
    "Concurrency",
    "ContainerState",
    "Health",
    "InvalidBodyError",
    "Outcome",
    "reject",
    "retry",
    "dead_letter",
]
