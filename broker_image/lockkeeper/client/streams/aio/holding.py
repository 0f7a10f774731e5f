"""Partitions that a member of a group holds: what is in hand of each, and until when it may."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from lockkeeper.client.streams.aio.pulling import Pulling
from lockkeeper.client.streams.core.messages import ReceivedMessage
from lockkeeper.client.streams.core.routes import Partition
from lockkeeper.client.streams.core.window import Window


@dataclass(slots=True, eq=False)
class Held:
    """A partition that is held; `committed` is the offset that is kept for it.

    One that `is_dropped` is somebody else's: nothing of it is begun any more. `locked_until` is a
    time of the event loop; `waiting` and `worker` are of groups in order.
    """

    partition: Partition
    window: Window
    committed: int
    locked_until: float
    is_dropped: bool = False
    has_lock: bool = False
    pulling: Pulling | None = None
    waiting: deque[ReceivedMessage] = field(default_factory=deque)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    worker: asyncio.Task[None] | None = None

    @property
    def is_locked(self) -> bool:
        """Tell whether the next message may be begun."""
        return asyncio.get_running_loop().time() < self.locked_until

    def drop(self) -> None:
        """Begin nothing of it any more."""
        self.is_dropped = True
        self.news.set()

    async def stop_reading(self) -> None:
        """Read no more of it."""
        if self.pulling is not None:
            await self.pulling.stop()
