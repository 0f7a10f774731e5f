"""Branches of XA transactions, which several connections may work on (openwire.md 7.6)."""

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.errors import TransactionError
from lockkeeper.broker.transactions import Transaction
from lockkeeper.message.ids import TransactionId, XATransactionId


class Branches:
    """The open XA branches of a broker, each with the connections that have begun or joined it.

    A branch belongs to the connection that began it, and is rolled back when that one ends, as in
    ActiveMQ. What the others did stays in it when they end: as a rule their part was done.
    """

    def __init__(self) -> None:
        self._members: dict[TransactionId, list[Connection]] = {}

    def begin(self, connection: Connection, identifier: XATransactionId) -> Transaction:
        """Have a connection begin a branch, or join it.

        A client that was cut off may tell again what it did in the branch before.
        """
        members = self._members.setdefault(identifier, [])
        if not members:
            branch = Transaction(identifier)
        else:
            branch = members[0].transactions[identifier]
            if connection.reconnected:
                branch.note_told()
        members.append(connection)
        connection.transactions[identifier] = branch
        return branch

    def leave(self, connection: Connection, branch: Transaction) -> bool:
        """Have a connection that ends work on a branch no more.

        Returns False when it began the branch, which is to be rolled back: then the others have a
        failed one. So nobody commits a part of it, not even the first one when it comes back.
        """
        identifier = branch.identifier
        members = self._members[identifier]
        is_first = members[0] is connection
        members.remove(connection)
        connection.end_transaction(identifier)
        if not is_first:
            return True
        if not members:
            del self._members[identifier]
            return False
        failed = Transaction(identifier)
        failed.fail(TransactionError("the connection that began it has ended"))
        for member in members:
            member.end_transaction(identifier)
            member.transactions[identifier] = failed
        return False

    def end(self, identifier: XATransactionId) -> Transaction | None:
        """Have all connections forget a branch, and return it, if it is open."""
        branch = None
        for member in self._members.pop(identifier, ()):
            branch = member.transactions[identifier]
            member.end_transaction(identifier)
        return branch
