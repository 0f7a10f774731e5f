"""Locks on partitions: asked of the brokers that have them, many at once."""

import logging
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

_LOG = logging.getLogger(__name__)


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
            route = await self._network.route(mine[0].stream)
            code = Request.LOCK_BATCH_MQ
            request = commands.locking(code, self._group, self._client_id, mine)
            answer = await self._network.ask(route, mine[0].broker, request)
            try:
                held |= read_locked(answer.body) & set(mine)
            except ProtocolError as wrong:
                raise UnreadableAnswerError(f"the locks of {self._group}: {wrong}") from wrong
        return held

    async def release(self, partitions: Iterable[Partition], seconds: float) -> None:
        """Give locks back; those of a broker that is away for so many *seconds* expire."""
        for mine in _by_broker(partitions):

            def asked(mine: list[Partition] = mine) -> Command:
                code = Request.UNLOCK_BATCH_MQ
                return commands.locking(code, self._group, self._client_id, mine)

            try:
                await self._network.ask_about(mine[0], asked, seconds)
            except MessagingError as error:
                _LOG.info("group %s: locks of %s are left: %s", self._group, mine[0].broker, error)


def _by_broker(partitions: Iterable[Partition]) -> Iterable[list[Partition]]:
    found: defaultdict[str, list[Partition]] = defaultdict(list)
    for each in partitions:
        found[each.broker].append(each)
    return found.values()
