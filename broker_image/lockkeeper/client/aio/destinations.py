"""Destinations of a broker, as its advisories tell of them: ActiveMQ's DestinationSource."""

from collections.abc import Callable

from lockkeeper.client.aio.closing import Closing
from lockkeeper.client.aio.session import Session
from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.message.destination import Destination, Kind, topic
from lockkeeper.message.openwire import DestinationInfo, DestinationOperation

ADVISORIES = topic(
    ",".join(f"ActiveMQ.Advisory.{kind}" for kind in ("Queue", "Topic", "TempQueue", "TempTopic"))
)
"""The topics that tell of destinations; who begins to consume them is told of all there are."""


class DestinationSource(Closing):
    """The destinations of the broker in use; made by `Connection.destination_source`.

    It begins empty, and learns of those there are as the broker tells of them. `on_change` is
    called after each one that has come or gone, in the connection's own thread or event loop, so
    it must not wait. A broker without `advisorySupport` tells nothing.
    """

    def __init__(self, session: Session) -> None:
        self.on_change: Callable[[], None] | None = None
        self._session = session
        self._known: frozenset[Destination] = frozenset()
        self._generation: int | None = None

    async def start(self, timeout: float | None) -> None:
        """Begin to learn."""
        await self._session.consumer(ADVISORIES, listener=self._learn, timeout=timeout)

    async def _learn(self, message: ReceivedMessage) -> None:
        info = message.fields.data_structure
        if not isinstance(info, DestinationInfo) or info.destination is None:
            return
        # The next broker tells of all that it has; what it lacks, nobody would take away.
        is_same_broker = message.delivery.generation == self._generation
        known = self._known if is_same_broker else frozenset()
        self._generation = message.delivery.generation
        is_there = info.operation_type == DestinationOperation.ADD
        found = known | {info.destination} if is_there else known - {info.destination}
        is_new, self._known = found != self._known, found
        if is_new and self.on_change is not None:
            self.on_change()

    @property
    def queues(self) -> frozenset[Destination]:
        """Queues there are."""
        return self._of_kind(Kind.QUEUE)

    @property
    def topics(self) -> frozenset[Destination]:
        """Topics there are, without those of advisories."""
        return self._of_kind(Kind.TOPIC)

    @property
    def temporary_queues(self) -> frozenset[Destination]:
        """Temporary queues of all connections."""
        return self._of_kind(Kind.TEMP_QUEUE)

    @property
    def temporary_topics(self) -> frozenset[Destination]:
        """Temporary topics of all connections."""
        return self._of_kind(Kind.TEMP_TOPIC)

    def _of_kind(self, kind: Kind) -> frozenset[Destination]:
        return frozenset(each for each in self._known if each.kind is kind)

    async def close(self) -> None:
        """Learn nothing more; what is known stays."""
        await self._session.close()
