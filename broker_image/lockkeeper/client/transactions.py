"""A session's local transaction: begun by its first part, ended by commit or rollback."""

from collections.abc import Callable

from lockkeeper.client.errors import RefusedError, TransactionRolledBackError
from lockkeeper.client.transport import Transport
from lockkeeper.message.ids import LocalTransactionId
from lockkeeper.message.openwire import (
    ConnectionId,
    Message,
    MessageAck,
    TransactionInfo,
    TransactionOperation,
)


class TransactionContext:
    """Commands of a transacted session since its last commit or rollback.

    A transaction lives on one link. When that is lost, the broker rolls it back; further parts
    are dropped and the commit fails.
    """

    def __init__(
        self, transport: Transport, connection_id: ConnectionId, number: Callable[[], int]
    ) -> None:
        """*number* gives a number that no other transaction of the connection has."""
        self._transport = transport
        self._number = number
        self._connection_id = connection_id
        self._identifier: LocalTransactionId | None = None
        self._generation = 0

    @property
    def is_open(self) -> bool:
        """Tell whether the broker knows of a transaction."""
        return self._identifier is not None

    def send(self, message: Message) -> None:
        """Make a message part of the transaction; begin one if none is open."""
        message.transaction_id = self._begin()
        self._transport.oneway(message, self._generation, buffered=True)

    def commit(self, acks: list[MessageAck]) -> None:
        """Make everything happen. Raises TransactionRolledBackError when it has not."""
        if not acks and self._identifier is None:
            return
        identifier = self._begin()
        for ack in acks:
            ack.transaction_id = identifier
            self._transport.oneway(ack, self._generation, buffered=True)
        try:
            self._end(TransactionOperation.COMMIT_ONE_PHASE)
        except RefusedError as error:
            raise TransactionRolledBackError(f"the broker did not commit: {error}") from error

    def rollback(self) -> None:
        """Undo everything; nothing to do when the link is lost: then it is undone already."""
        if self._identifier is None:
            return
        try:
            self._end(TransactionOperation.ROLLBACK)
        except TransactionRolledBackError:
            return

    def _begin(self) -> LocalTransactionId:
        if self._identifier is None:
            self._identifier = LocalTransactionId(self._connection_id.value, self._number())
            self._generation = self._transport.generation
            info = self._info(self._identifier, TransactionOperation.BEGIN)
            self._transport.oneway(info, self._generation, buffered=True)
        return self._identifier

    def _end(self, operation: TransactionOperation) -> None:
        assert self._identifier is not None
        info = self._info(self._identifier, operation)
        self._identifier = None
        self._transport.request(info, self._generation, repeatable=False).result()

    def _info(
        self, identifier: LocalTransactionId, operation: TransactionOperation
    ) -> TransactionInfo:
        return TransactionInfo(
            connection_id=self._connection_id, transaction_id=identifier, type=operation
        )
