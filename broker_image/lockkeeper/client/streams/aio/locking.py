"""Locks on partitions: asked of the brokers that have them, many at once."""

from collections import defaultdict
from collections.abc import Iterable

from lockkeeper.client.errors import MessagingError
from lockkeeper.client.streams.core import commands
from lockkeeper.client.streams.core.groups import read_locked
from lockkeeper.client.streams.core.routes import Partition
from lockkeeper.client.streams.errors import UnreadableAnswerError
from lockkeeper.client.streams.links.network import Network
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Request
from lockkeeper.protocols.rocketmq.errors import ProtocolError


class Locks:
    """Locks of one member of a group."""

    def __init__(self, network: Network, group: str, client_id: str) -> None:
        self._network = network
        self._group = group
        self._client_id = client_id

    async def acquire(self, partitions: Iterable[Partition]) -> set[Partition]:
        """Return which of some partitions the member holds now. Raises MessagingError."""
        held: set[Partition] = set()
        for mine in _by_broker(partitions):
            answer = await self._ask(Request.LOCK_BATCH_MQ, mine)
            try:
                held |= read_locked(answer.body) & set(mine)
            except ProtocolError as wrong:
                raise UnreadableAnswerError(f"the locks of {self._group}: {wrong}") from wrong
        return held

    async def release(self, partitions: Iterable[Partition]) -> None:
        """Give locks back; those of a broker that is away expire."""
        for mine in _by_broker(partitions):
            try:
                await self._ask(Request.UNLOCK_BATCH_MQ, mine)
            except MessagingError:
                continue

    async def _ask(self, code: Request, partitions: list[Partition]) -> Command:
        route = await self._network.route(partitions[0].stream)
        request = commands.locking(code, self._group, self._client_id, partitions)
        return await self._network.ask(route, partitions[0].broker, request)


def _by_broker(partitions: Iterable[Partition]) -> Iterable[list[Partition]]:
    found: defaultdict[str, list[Partition]] = defaultdict(list)
    for each in partitions:
        found[each.broker].append(each)
    return found.values()
