"""Transactions of one message: nobody sees it before its producer says that it is to be seen."""

from enum import Enum
from typing import Final

from lockkeeper.client.errors import IllegalStateError
from lockkeeper.client.streams.core import commands
from lockkeeper.client.streams.core.messages import Sent
from lockkeeper.client.streams.links.network import Network
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Request
from lockkeeper.protocols.rocketmq.messages import COMMITTED, ROLLED_BACK, place_of

SEND_SECONDS: Final = 30.0


class Outcome(Enum):
    """Outcomes of a transaction."""

    COMMIT = COMMITTED
    ROLLBACK = ROLLED_BACK
    UNKNOWN = 0


class Transaction:
    """A message that nobody sees yet; `sent` tells where it is kept."""

    def __init__(self, network: Network, group: str, sent: Sent) -> None:
        self.sent = sent
        self._network = network
        self._group = group
        self._is_over = False

    async def __aenter__(self) -> "Transaction":
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        if not self._is_over:
            await (self.commit() if kind is None else self.roll_back())

    async def commit(self, timeout: float = SEND_SECONDS) -> None:
        """Let everybody see the message.

        Raises ConnectionFailedError or RequestTimedOutError after *timeout* seconds: then the
        broker will ask the check callback.
        """
        await self._end(Outcome.COMMIT, timeout)

    async def roll_back(self, timeout: float = SEND_SECONDS) -> None:
        """Let the message be as if it had never been; see `commit`."""
        await self._end(Outcome.ROLLBACK, timeout)

    async def _end(self, outcome: Outcome, timeout: float) -> None:
        if self._is_over:
            raise IllegalStateError("the transaction has ended")
        self._is_over = True

        def asked() -> Command:
            return commands.request(
                Request.END_TRANSACTION,
                producerGroup=self._group,
                tranStateTableOffset=self.sent.offset,
                commitLogOffset=place_of(self.sent.message_id),
                commitOrRollback=outcome.value,
                fromTransactionCheck=False,
                msgId=self.sent.unique_id,
                transactionId=self.sent.unique_id,
                topic=self.sent.partition.stream,
            )

        await self._network.ask_about(self.sent.partition, asked, timeout)
