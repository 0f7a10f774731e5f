"""Destinations of a broker, for threads."""

from collections.abc import Callable

from lockkeeper.client import aio
from lockkeeper.client.blocking.closing import Closing
from lockkeeper.client.blocking.loop import Caller
from lockkeeper.message.destination import Destination


class DestinationSource(Closing):
    """The destinations of the broker in use; see `aio.DestinationSource`."""

    def __init__(self, thread: Caller, source: aio.DestinationSource) -> None:
        self._thread = thread
        self._aio = source

    @property
    def on_change(self) -> Callable[[], None] | None:
        """Function that is called, by the connection's thread, after each change."""
        return self._aio.on_change

    @on_change.setter
    def on_change(self, call: Callable[[], None] | None) -> None:
        self._aio.on_change = call

    @property
    def queues(self) -> frozenset[Destination]:
        """Queues there are."""
        return self._aio.queues

    @property
    def topics(self) -> frozenset[Destination]:
        """Topics there are, without those of advisories."""
        return self._aio.topics

    @property
    def temporary_queues(self) -> frozenset[Destination]:
        """Temporary queues of all connections."""
        return self._aio.temporary_queues

    @property
    def temporary_topics(self) -> frozenset[Destination]:
        """Temporary topics of all connections."""
        return self._aio.temporary_topics

    def close(self) -> None:
        """Learn nothing more; what is known stays."""
        self._thread.call(self._aio.close())
