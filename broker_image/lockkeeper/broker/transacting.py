"""Local and XA transactions: begin, prepare, commit, roll back, recover (openwire.md 7.6)."""

from collections.abc import Callable

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import BrokerError, TransactionError, TransactionRolledBackError
from lockkeeper.broker.heuristics import NOT_FOUND, Heuristics
from lockkeeper.broker.producer_audit import ProducerAudit
from lockkeeper.broker.regions.backlog import Backlog
from lockkeeper.broker.regions.route import Route
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.transactions import Transaction
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId, XATransactionId
from lockkeeper.message.message import Message
from lockkeeper.store.base import Add, Operation, Receipt, Reference, Subscription

PROTOCOL_ERROR = -6


class Committed:
    """What is left to do when a commit is durable."""

    __slots__ = ("_apply", "_receipt", "_transaction")

    def __init__(
        self,
        apply: Callable[[Transaction], None],
        transaction: Transaction,
        receipt: Receipt | None,
    ) -> None:
        self._apply = apply
        self._transaction = transaction
        self._receipt = receipt

    def settle(self) -> None:
        """Make the transaction visible, then answer."""
        self._apply(self._transaction)
        if self._receipt is not None:
            self._receipt.settle()


class Transacting:
    """The open and prepared transactions of a broker."""

    def __init__(
        self,
        context: Context,
        audit: ProducerAudit,
        find_backlog: Callable[[Destination, Subscription | None], Backlog],
        transactions_max: int,
    ) -> None:
        self._context = context
        self._audit = audit
        self._find_backlog = find_backlog
        self._transactions_max = transactions_max
        self.prepared: dict[XATransactionId, Transaction] = {}
        self.heuristics = Heuristics()

    def recover(self, identifier: XATransactionId, operations: list[Operation]) -> None:
        """Take back a prepared transaction of the store."""
        transaction = Transaction(identifier)
        transaction.prepared = True
        references = [operation.reference for operation in operations]
        context = self._context
        context.store.load(references, context.next_sequence(len(references)))
        for operation in operations:
            operation.reference.loaded.destination = operation.destination
            if isinstance(operation, Add):
                route = context.find_route(operation.destination)
                context.memory.used += len(operation.reference.loaded.body)
                transaction.sent.append((route, operation.reference))
            else:
                backlog = self._find_backlog(operation.destination, operation.subscription)
                if not operation.reference.held:
                    backlog.residency.charge(operation.reference)
                # Its body is needed for the outcome.
                operation.reference.held += 1
                transaction.consumed.append((backlog, operation.reference, None))
        self.prepared[identifier] = transaction

    def begin(self, connection: Connection, identifier: TransactionId) -> Transaction:
        """Open a transaction; one that is open already goes on (an XA join)."""
        transactions = connection.transactions
        if identifier not in transactions and len(transactions) >= self._transactions_max:
            raise TransactionError(
                f"the connection has {self._transactions_max} open transactions already "
                "(limits.transactions)"
            )
        return transactions.setdefault(identifier, Transaction(identifier))

    def find(self, connection: Connection, identifier: TransactionId) -> Transaction:
        """Return an open transaction of this connection. Raises TransactionError."""
        last = connection.last_transaction
        if last is not None and identifier is connection.last_transaction_id:
            return last
        transaction = connection.transactions.get(identifier)
        if transaction is None:
            raise TransactionError(f"Transaction {identifier} has not been started.", NOT_FOUND)
        connection.last_transaction_id, connection.last_transaction = identifier, transaction
        return transaction

    def send(self, transaction: Transaction, route: Route, message: Message) -> None:
        """Add a message to a transaction; it holds memory until the outcome."""
        self._context.memory.used += len(message.body)
        transaction.sent.append((route, Reference(message, len(message.body))))

    def consume(
        self,
        transaction: Transaction,
        backlog: Backlog,
        consumer: Consumer,
        references: list[Reference],
    ) -> None:
        """Add acknowledged messages to a transaction; their consumer gets room for more."""
        consumer.shrink(len(references))
        transaction.consumed += [(backlog, reference, consumer) for reference in references]
        backlog.activate()

    def commit(
        self, connection: Connection, identifier: TransactionId, receipt: Receipt | None
    ) -> None:
        """Commit in one phase, or the second one of a prepared transaction."""
        prepared = self._take_prepared(connection, identifier)
        if prepared is not None and isinstance(identifier, XATransactionId):
            self._commit_prepared(identifier, prepared, receipt)
            return
        transaction = self._take_whole(connection, identifier)
        operations = transaction.operations()
        if connection.fault_tolerant:
            self._record(transaction)
        done = Committed(self._apply, transaction, receipt)
        if operations:
            self._context.store.commit(identifier, operations, done)
        else:
            done.settle()

    def _commit_prepared(
        self, identifier: XATransactionId, prepared: Transaction, receipt: Receipt | None
    ) -> None:
        done = Committed(self._apply, prepared, receipt)
        self._context.store.commit_prepared(identifier, prepared.operations(), done)

    def _roll_back_prepared(
        self, identifier: XATransactionId, prepared: Transaction, receipt: Receipt | None
    ) -> None:
        self._context.store.rollback_prepared(identifier, prepared.operations(), receipt)
        self._undo(prepared)

    def force(self, identifier: XATransactionId, commit: bool, receipt: Receipt) -> None:
        """Decide a prepared transaction by hand. Raises TransactionError if it is none.

        Its manager will be told of the heuristic outcome when it asks for another or the same.
        """
        prepared = self.prepared.pop(identifier, None)
        if prepared is None:
            raise TransactionError(f"Transaction {identifier} is not prepared.", NOT_FOUND)
        end = self._commit_prepared if commit else self._roll_back_prepared
        end(identifier, prepared, receipt)
        self.heuristics.note(identifier, commit)

    def fail(self, connection: Connection, identifier: TransactionId, error: BrokerError) -> None:
        """Note that a part of an open transaction was refused: it can only be rolled back."""
        transaction = connection.transactions.get(identifier)
        if transaction is not None and transaction.failure is None:
            transaction.failure = error

    def _take_whole(self, connection: Connection, identifier: TransactionId) -> Transaction:
        """Return an open transaction for its outcome; one with a part refused is undone."""
        transaction = self.find(connection, identifier)
        connection.end_transaction(identifier)
        if transaction.failure is not None:
            self._undo(transaction)
            raise TransactionRolledBackError(
                f"Transaction {identifier} has been rolled back: {transaction.failure}"
            )
        return transaction

    def _record(self, transaction: Transaction) -> None:
        for _, reference in transaction.sent:
            self._audit.record(reference.loaded)

    def prepare(self, connection: Connection, identifier: TransactionId, receipt: Receipt) -> bool:
        """Prepare an XA transaction; returns False when it was read-only and is forgotten.

        The receipt is given back only when there was something to prepare.
        """
        transaction = self.find(connection, identifier)
        if not isinstance(identifier, XATransactionId):
            raise TransactionError("only XA transactions can be prepared", PROTOCOL_ERROR)
        self._take_whole(connection, identifier)
        if transaction.is_empty():
            return False
        transaction.prepared = True
        self.prepared[identifier] = transaction
        self._context.store.prepare(identifier, transaction.operations(), receipt)
        return True

    def rollback(
        self, connection: Connection, identifier: TransactionId, receipt: Receipt | None
    ) -> None:
        """Roll an open or prepared transaction back."""
        prepared = self._take_prepared(connection, identifier)
        if prepared is not None and isinstance(identifier, XATransactionId):
            self._roll_back_prepared(identifier, prepared, receipt)
            return
        transaction = self.find(connection, identifier)
        connection.end_transaction(identifier)
        self._undo(transaction)
        if receipt is not None:
            receipt.settle()

    def abandon(self, connection: Connection) -> None:
        """Roll back everything a connection left open when it ended."""
        for transaction in connection.transactions.values():
            self._undo(transaction)
        connection.transactions.clear()
        connection.last_transaction_id = connection.last_transaction = None

    def in_doubt(self) -> tuple[XATransactionId, ...]:
        """Return the transactions that `recover` tells: prepared, or decided by hand."""
        return (*self.prepared, *self.heuristics.committed)

    def _take_prepared(
        self, connection: Connection, identifier: TransactionId
    ) -> Transaction | None:
        if identifier in connection.transactions or not isinstance(identifier, XATransactionId):
            return None
        self.heuristics.check(identifier)
        return self.prepared.pop(identifier, None)

    def _apply(self, transaction: Transaction) -> None:
        memory = self._context.memory
        for route, reference in transaction.sent:
            memory.used -= len(reference.loaded.body)
            route.admit(reference)
        for backlog, references in transaction.consumed_from():
            backlog.forget_applied(references)

    def _undo(self, transaction: Transaction) -> None:
        memory = self._context.memory
        for _, reference in transaction.sent:
            memory.used -= len(reference.loaded.body)
        for consumer in {c for _, _, c in transaction.consumed if c is not None and not c.closed}:
            # The client redelivers from its own buffer: the consumer still owns its messages.
            consumer.take_back(
                [reference for _, reference, owner in transaction.consumed if owner is consumer]
            )
        returned: dict[int, tuple[Backlog, list[Reference]]] = {}
        for backlog, reference, owner in transaction.consumed:
            if owner is None or owner.closed:
                reference.redeliveries += 1
                returned.setdefault(id(backlog), (backlog, []))[1].append(reference)
        for backlog, references in returned.values():
            backlog.give_back(references)
