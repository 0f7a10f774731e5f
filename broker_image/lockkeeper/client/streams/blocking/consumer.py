"""Members of consumer groups in the blocking face."""

from contextlib import suppress

from lockkeeper.client.aio.within import is_within
from lockkeeper.client.blocking.closing import Closing
from lockkeeper.client.blocking.loop import LoopThread
from lockkeeper.client.errors import IllegalStateError
from lockkeeper.client.streams import aio
from lockkeeper.client.streams.aio.consumer import CLOSE_SECONDS, OnError
from lockkeeper.client.streams.core.routes import Partition
from lockkeeper.client.streams.core.window import Holdings


class GroupConsumer(Closing):
    """A member of a consumer group; made by `Connection.consumer`."""

    def __init__(self, thread: LoopThread, consumer: aio.GroupConsumer) -> None:
        self._thread = thread
        self._aio = consumer

    @property
    def group(self) -> str:
        """The name of the group."""
        return self._aio.group

    @property
    def partitions(self) -> list[Partition]:
        """The partitions that this member consumes now, without those of retries."""
        return self._thread.call(self._partitions())

    async def _partitions(self) -> list[Partition]:
        return self._aio.partitions

    @property
    def in_hand(self) -> Holdings:
        """Messages that are read and not consumed, and their bytes."""
        return self._aio.in_hand

    @property
    def on_error(self) -> OnError:
        """A function that is called, in the event loop, with what brokers refuse."""
        return self._aio.on_error

    @on_error.setter
    def on_error(self, function: OnError) -> None:
        self._aio.on_error = function

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Leave the group, once the listeners at work are done and offsets are kept.

        After *timeout* seconds those at work are cancelled, where they are coroutines: their
        messages come again, to others. A listener that closes its own group does not wait for that.
        """
        if self._thread.is_own or is_within(self._aio):
            self._aio.end_listener()
            self._thread.begin(self._aio.close(timeout))
            return
        with suppress(IllegalStateError):
            # With its connection it is closed already.
            self._thread.call(self._aio.close(timeout))
