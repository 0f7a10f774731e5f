"""Messages that a group could not consume: given back to come again, or given up."""

import time
from typing import Final

from lockkeeper.client.streams.core import commands
from lockkeeper.client.streams.core.groups import GroupSettings
from lockkeeper.client.streams.core.messages import ReceivedMessage
from lockkeeper.client.streams.core.names import (
    ORIGINAL_ID,
    ORIGINAL_STREAM,
    RECONSUMED,
    RECONSUMES_MAX,
    RETRY_PREFIX,
)
from lockkeeper.client.streams.links.network import Network
from lockkeeper.protocols.rocketmq.codec import Command

GIVE_BACK_SECONDS: Final = 10.0


class Returns:
    """Returns messages of a group to brokers."""

    def __init__(self, network: Network, group: str, settings: GroupSettings) -> None:
        self._network = network
        self._group = group
        self._settings = settings

    async def give_back(self, message: ReceivedMessage, level: int) -> None:
        """Have a message come again, after a delay level or when the broker thinks fit.

        Raises MessagingError.
        """

        def asked() -> Command:
            return commands.send_back(self._group, message, level, self._settings.retries_max)

        await self._network.ask_about(message.partition, asked, GIVE_BACK_SECONDS)

    async def give_up(self, message: ReceivedMessage, _: int) -> None:
        """Have a message among the dead letters of the group. Raises MessagingError.

        It is sent to the group's retries, as Java's clients do, with more tries than it may have.
        """
        retries = RETRY_PREFIX + self._group
        most = self._settings.retries_max or 0
        headers = {
            **message.headers,
            ORIGINAL_STREAM: message.stream,
            ORIGINAL_ID: message.headers.get(ORIGINAL_ID, message.message_id),
            RECONSUMED: str(message.reconsumed),
            RECONSUMES_MAX: str(most),
        }
        route = await self._network.route(retries)
        request = commands.send(
            self._group,
            route.writable[0],
            message.body,
            headers,
            int(time.time() * 1000),
            flag=message.flag,
            reconsumed=message.reconsumed,
            reconsumes_max=most,
        )
        await self._network.ask(route, route.writable[0].broker, request)
