"""Branches of XA transactions, which several connections may work on (openwire.md 7.6)."""

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.transactions import Transaction
from lockkeeper.message.ids import TransactionId, XATransactionId


class Branches:
    """The open XA branches of a broker, each with the connections that have begun or joined it.

    A branch belongs to the connection that began it, and is rolled back when that one ends; what
    the others did stays in it when they end, as in ActiveMQ.
    """

    def __init__(self) -> None:
        self._members: dict[TransactionId, list[Connection]] = {}

    def find(self, identifier: TransactionId) -> Transaction | None:
        """Return an open branch, whoever began it."""
        members = self._members.get(identifier)
        return members[0].transactions[identifier] if members else None

    def join(self, connection: Connection, transaction: Transaction) -> None:
        """Have a connection work on a branch; the first one begins it."""
        identifier = transaction.identifier
        connection.transactions[identifier] = transaction
        self._members.setdefault(identifier, []).append(connection)

    def leave(self, connection: Connection, identifier: TransactionId) -> bool:
        """Have a connection work on a branch no more; returns False if it began the branch."""
        members = self._members[identifier]
        if members[0] is connection:
            return False
        members.remove(connection)
        connection.end_transaction(identifier)
        return True

    def end(self, identifier: XATransactionId) -> None:
        """Have all connections forget a branch that has its outcome, or is prepared."""
        for member in self._members.pop(identifier):
            member.end_transaction(identifier)
