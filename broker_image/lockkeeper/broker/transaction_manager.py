"""Local and XA transactions: begin, prepare, commit, roll back, recover (openwire.md 7.6)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from lockkeeper.broker.acknowledging import CONSUMING, acknowledge
from lockkeeper.broker.branches import Branches
from lockkeeper.broker.committed import Committed
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import MESSAGE_BYTES, Context
from lockkeeper.broker.errors import (
    AcknowledgeError,
    BrokerError,
    TransactionError,
    TransactionRolledBackError,
)
from lockkeeper.broker.heuristics import NOT_FOUND, Heuristics
from lockkeeper.broker.producer_audit import ProducerAudit
from lockkeeper.broker.regions.backlog import Backlog
from lockkeeper.broker.regions.route import Route
from lockkeeper.broker.settings import LimitSettings
from lockkeeper.broker.subscriptions.consumer import ConsumedRun, Consumer, Pending
from lockkeeper.broker.transactions import PREPARED, SentRun, Transaction
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId, XATransactionId
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import AckType
from lockkeeper.store.base import (
    Add,
    AtomicBatchTooLargeError,
    Operation,
    Receipt,
    Reference,
    Subscription,
    body_bytes,
)

PROTOCOL_ERROR: Final = -6
DUPLICATE_ID: Final = -8


class TransactionManager:
    """The open and prepared transactions of a broker."""

    def __init__(
        self,
        context: Context,
        audit: ProducerAudit,
        find_backlog: Callable[[Destination, Subscription | None], Backlog],
        connections: Mapping[str, Connection],
        limits: LimitSettings,
    ) -> None:
        self._context = context
        self._audit = audit
        self._find_backlog = find_backlog
        self._connections = connections
        self._transactions_max = limits.transactions
        self._branches = Branches()
        self._committing: set[Transaction] = set()
        self.prepared: dict[XATransactionId, Transaction] = {}
        self.heuristics = Heuristics()

    def recover(self, identifier: XATransactionId, operations: list[Operation]) -> None:
        """Take back a prepared transaction of the store."""
        transaction = Transaction(identifier, PREPARED)
        references = [each for operation in operations for each in operation.references]
        context = self._context
        context.store.load(references, context.next_sequence(len(references)))
        for operation in operations:
            for reference in operation.references:
                reference.loaded.destination = operation.destination
            if isinstance(operation, Add):
                route = context.find_route(operation.destination)
                self._enter(transaction, route, operation.references)
            else:
                backlog = self._find_backlog(operation.destination, operation.subscription)
                for reference in operation.references:
                    if not reference.held:
                        backlog.body_cache.charge(reference)
                    # Its body is needed for the outcome.
                    reference.held += 1
                transaction.consume(backlog, [*operation.references], None)
        self.prepared[identifier] = transaction

    def begin(self, connection: Connection, identifier: TransactionId) -> Transaction:
        """Open a transaction; one that is open already goes on.

        An XA branch may be open on another connection: this one joins it (TMJOIN). One that is
        prepared can only be told again, by a client that was cut off (`prepare`).
        """
        transactions = connection.transactions
        if identifier in self.prepared and not connection.reconnected:
            raise TransactionError(f"Transaction {identifier} is prepared already.", DUPLICATE_ID)
        if (found := transactions.get(identifier)) is not None:
            return found
        if len(transactions) >= self._transactions_max:
            raise TransactionError(
                f"the connection has {self._transactions_max} open transactions already "
                "(limits.transactions)"
            )
        if isinstance(identifier, XATransactionId):
            return self._branches.begin(connection, identifier)
        transactions[identifier] = opened = Transaction(identifier)
        return opened

    def find(self, connection: Connection, identifier: TransactionId) -> Transaction:
        """Return a transaction that this connection has begun or joined.

        Raises TransactionError.
        """
        last = connection.last_transaction
        if last is not None and identifier is connection.last_transaction_id:
            return last
        transaction = connection.transactions.get(identifier)
        if transaction is None:
            raise TransactionError(f"Transaction {identifier} has not been started.", NOT_FOUND)
        connection.last_transaction_id, connection.last_transaction = identifier, transaction
        return transaction

    def _end(self, connection: Connection, identifier: TransactionId) -> None:
        """Have everybody who works on a transaction forget it."""
        if isinstance(identifier, XATransactionId):
            self._branches.end(identifier)
        else:
            connection.end_transaction(identifier)

    def send(self, transaction: Transaction, route: Route, message: Message) -> None:
        """Add a message to a transaction; it holds memory until the outcome.

        One that the transaction has already is a client's that was cut off, and tells it again.
        """
        if not transaction.told or message.key not in transaction.told:
            self.send_run(transaction, route, (message,))

    def leave_out(
        self, connection: Connection, identifier: TransactionId | None, receipt: Receipt | None
    ) -> None:
        """Leave a message out that is stored already, or about to be.

        Nobody is answered before that is durable: neither for the message nor for its transaction.
        """
        if identifier is not None and identifier in connection.transactions:
            connection.transactions[identifier].is_repeated = True
        if receipt is not None:
            self._context.settle_behind(receipt)

    def send_run(self, transaction: Transaction, route: Route, messages: Sequence[Message]) -> None:
        """Do what `send` does for several messages, which nobody has told before."""
        references = [Reference(message, len(message.body)) for message in messages]
        self._enter(transaction, route, references)

    def _enter(
        self, transaction: Transaction, route: Route, references: Sequence[Reference]
    ) -> None:
        """Have a transaction send messages, which count in memory from now on."""
        size = MESSAGE_BYTES * len(references) + body_bytes(references)
        self._context.memory.used += size
        transaction.charged += size
        transaction.send(route, references)

    def consume(
        self,
        transaction: Transaction,
        backlog: Pending,
        consumer: Consumer,
        references: list[Reference],
    ) -> None:
        """Add acknowledged messages to a transaction; their consumer gets room for more."""
        consumer.shrink(len(references))
        transaction.consume(backlog, references, consumer)
        backlog.activate()

    def acknowledge(
        self,
        connection: Connection,
        consumer: Consumer,
        transaction_id: TransactionId,
        last: int,
        count: int,
        kind: int,
    ) -> None:
        """Add acknowledged messages of a consumer to a transaction of its connection.

        Expired ones end now, whatever the outcome: nobody could consume them after a rollback.
        """
        transaction = self.find(connection, transaction_id)
        if kind == AckType.DELIVERED:
            consumer.extend(count)
            consumer.reactivate()
        elif kind in CONSUMING:
            references = consumer.take_dispatched(last, 1 if kind == AckType.INDIVIDUAL else count)
            if len(consumer.backlogs) == 1:
                self.consume(transaction, consumer.backlogs[0], consumer, references)
                return
            for backlog, own in consumer.by_backlog(references):
                self.consume(transaction, backlog, consumer, own)
        elif kind == AckType.POISON:
            raise AcknowledgeError("a poison acknowledgement cannot be part of a transaction")
        else:
            acknowledge(consumer, kind, last, count, None)

    def commit(
        self,
        connection: Connection,
        identifier: TransactionId,
        receipt: Receipt | None,
        is_one_phase: bool = True,
    ) -> None:
        """Commit in one phase, or the second one of a prepared transaction."""
        prepared = self._take_prepared(connection, identifier, is_one_phase)
        if prepared is not None and isinstance(identifier, XATransactionId):
            self._commit_prepared(identifier, prepared, receipt)
            self._record(prepared)
            return
        if self._is_told_again(connection, identifier):
            if receipt is not None:
                self._context.settle_behind(receipt)
            return
        transaction = self._take_whole(connection, identifier)
        if identifier in self.prepared:
            raise self._rolled_back(transaction, _another_is_prepared(identifier))
        self._refresh(transaction)
        operations = transaction.operations()
        done = Committed(self._apply, transaction, receipt)
        if operations:
            try:
                self._context.store.commit(identifier, operations, done)
            except AtomicBatchTooLargeError as error:
                for route, references in transaction.sent:
                    route.stores_never(references)
                raise self._rolled_back(transaction, error) from error
            self._committing.add(transaction)
        transaction.commit(self._context.now)
        if transaction.is_repeated and not operations:
            self._committing.add(transaction)
            self._context.settle_behind(done)
        elif not operations:
            done.settle()
        # Others may have joined a branch who tell it again when they were cut off.
        if connection.fault_tolerant or isinstance(identifier, XATransactionId):
            self._record(transaction)

    def _is_told_again(self, connection: Connection, identifier: TransactionId) -> bool:
        """Tell whether a client that was cut off asks for a commit that is being written."""
        if not connection.reconnected or identifier in connection.transactions:
            return False
        return any(each.identifier == identifier for each in self._committing)

    def _commit_prepared(
        self, identifier: XATransactionId, prepared: Transaction, receipt: Receipt | None
    ) -> None:
        done = Committed(self._apply, prepared, receipt)
        self._refresh(prepared)
        prepared.commit(self._context.now)
        self._committing.add(prepared)
        prepared.count_takers()
        self._context.store.commit_prepared(identifier, prepared.promised(), done)

    def _roll_back_prepared(
        self, identifier: XATransactionId, prepared: Transaction, receipt: Receipt | None
    ) -> None:
        self._context.store.rollback_prepared(identifier, prepared.promised(), receipt)
        self._undo(prepared)

    def force(self, identifier: XATransactionId, commit: bool, receipt: Receipt) -> None:
        """Decide a prepared transaction by hand. Raises TransactionError if it is none.

        Its manager will be told of the heuristic outcome when it asks for another or the same.
        """
        prepared = self._pop_prepared(identifier)
        if prepared is None:
            raise TransactionError(f"Transaction {identifier} is not prepared.", NOT_FOUND)
        end = self._commit_prepared if commit else self._roll_back_prepared
        end(identifier, prepared, receipt)
        self.heuristics.note_outcome(identifier, commit)

    def fail(self, connection: Connection, identifier: TransactionId, error: BrokerError) -> None:
        """Note that a part of an open transaction was refused: it can only be rolled back."""
        transaction = connection.transactions.get(identifier)
        if transaction is not None:
            transaction.fail(error)

    def _take_whole(self, connection: Connection, identifier: TransactionId) -> Transaction:
        """Return an open transaction for its outcome; one with a part refused is undone."""
        transaction = self.find(connection, identifier)
        self._end(connection, identifier)
        if transaction.failure is not None:
            raise self._rolled_back(transaction, transaction.failure)
        return transaction

    def _rolled_back(self, transaction: Transaction, why: Exception) -> TransactionRolledBackError:
        """Undo a transaction that cannot be carried out; returns what its client is told."""
        self._undo(transaction)
        name = transaction.identifier
        return TransactionRolledBackError(f"Transaction {name} has been rolled back: {why}")

    def _record(self, transaction: Transaction) -> None:
        for _, references in transaction.sent:
            for reference in references:
                self._audit.record(reference.loaded)

    def prepare(self, connection: Connection, identifier: TransactionId, receipt: Receipt) -> bool:
        """Prepare an XA transaction; returns False when it was read-only and is forgotten.

        The receipt is given back only when there was something to prepare. A client that was cut
        off tells all of a transaction again that it has no outcome of: it is prepared once.
        """
        transaction = self.find(connection, identifier)
        if not isinstance(identifier, XATransactionId):
            raise TransactionError("only XA transactions can be prepared", PROTOCOL_ERROR)
        self._take_whole(connection, identifier)
        if identifier in self.prepared:
            if not connection.reconnected:
                raise self._rolled_back(transaction, _another_is_prepared(identifier))
            self._undo(transaction)
            self._context.settle_behind(receipt)
            return True
        if transaction.is_empty():
            transaction.become("prepare what is empty")
            return False
        self._refresh(transaction)
        try:
            self._context.store.prepare(identifier, transaction.promises(), receipt)
        except AtomicBatchTooLargeError as error:
            raise self._rolled_back(transaction, error) from error
        transaction.become("prepare")
        self.prepared[identifier] = transaction
        return True

    def rollback(
        self, connection: Connection, identifier: TransactionId, receipt: Receipt | None
    ) -> None:
        """Roll an open or prepared transaction back."""
        prepared = self._take_prepared(connection, identifier, is_one_phase=False)
        if prepared is not None and isinstance(identifier, XATransactionId):
            self._roll_back_prepared(identifier, prepared, receipt)
            return
        transaction = self.find(connection, identifier)
        self._end(connection, identifier)
        self._undo(transaction)
        if receipt is not None:
            receipt.settle()

    def abandon(self, connection: Connection) -> None:
        """Roll back everything a connection had begun and left open when it ended."""
        for identifier, transaction in [*connection.transactions.items()]:
            if not isinstance(identifier, XATransactionId):
                connection.end_transaction(identifier)
            elif self._branches.leave(connection, transaction):
                continue
            self._undo(transaction)

    def in_doubt(self) -> tuple[XATransactionId, ...]:
        """Return the transactions that `recover` tells: prepared, or decided by hand."""
        return (*self.prepared, *self.heuristics.committed)

    def _take_prepared(
        self, connection: Connection, identifier: TransactionId, is_one_phase: bool
    ) -> Transaction | None:
        """Return a prepared transaction for its outcome, None for one that is open.

        What a client has begun to tell again of a prepared one is not to be ended in one phase.
        """
        if not isinstance(identifier, XATransactionId):
            return None
        is_open = identifier in connection.transactions
        if is_open and (is_one_phase or identifier not in self.prepared):
            return None
        self.heuristics.check_undecided(identifier)
        return self._pop_prepared(identifier)

    def _pop_prepared(self, identifier: XATransactionId) -> Transaction | None:
        """Return a prepared transaction for its outcome: what was told again of it is over, too."""
        prepared = self.prepared.pop(identifier, None)
        if prepared is not None:
            told_again = self._branches.end(identifier)
            if told_again is not None:
                self._undo(told_again)
        return prepared

    def backlog_ended(self, backlog: Pending) -> None:
        """Have transactions forget what they consumed of something that was removed.

        It is gone, whatever becomes of them.
        """
        for transaction in self.undecided():
            ended = [run for run in transaction.consumed if run.backlog is backlog]
            if ended:
                kept = [run for run in transaction.consumed if run.backlog is not backlog]
                transaction.consumed = kept
            for run in ended:
                backlog.abandon(run.references)

    def route_ended(self, route: Route) -> None:
        """Have transactions know that something was removed that messages were sent to.

        What a commit has stored by now went with it; what is committed later makes it anew.
        """
        for transaction in self.undecided():
            transaction.is_stale = True
        for transaction in self._committing:
            ended = [run.references for run in transaction.sent if run.route is route]
            transaction.replace_sent([run for run in transaction.sent if run.route is not route])
            for references in ended:
                self._refund(transaction, references)
                for reference in references:
                    if reference.state and reference.holders > 0:
                        reference.holders = 1
                        self._context.store.release(reference)

    def _refund(self, transaction: Transaction, references: Sequence[Reference]) -> None:
        """Give the memory back of messages that will not be sent."""
        size = MESSAGE_BYTES * len(references) + body_bytes(references)
        self._context.memory.used -= size
        transaction.charged -= size

    def unfinished(self) -> list[Transaction]:
        """Return all that are not done with, also those whose commit is being written."""
        return self.undecided() + self.committing()

    def committing(self) -> list[Transaction]:
        """Return those whose commit is being written."""
        return [*self._committing]

    def undecided(self) -> list[Transaction]:
        """Return all that are open or prepared, each once."""
        several = (one.transactions.values() for one in self._connections.values())
        return [*self.prepared.values(), *dict.fromkeys(chain.from_iterable(several))]

    def _refresh(self, transaction: Transaction) -> None:
        """Have a transaction send to what bears the names now; temporary ones are gone for good."""
        if not transaction.is_stale:
            return
        transaction.is_stale = False
        sent: list[SentRun] = []
        for route, references in transaction.sent:
            if not route.is_gone:
                sent.append(SentRun(route, references))
            elif route.destination.is_temporary:
                self._refund(transaction, references)
            else:
                sent.append(SentRun(self._context.find_route(route.destination), references))
        transaction.replace_sent(sent)

    def _apply(self, transaction: Transaction) -> None:
        self._committing.discard(transaction)
        contained = self._context.containment
        for route, references in transaction.sent:
            route.admit_run(references)
        # Only now: bodies that come in while memory is tight are noted, to leave it.
        self._context.memory.used -= transaction.charged
        for backlog, references in _by_backlog(transaction.consumed):
            try:
                backlog.forget_applied(references, transaction.committed_at)
            except Exception as error:
                contained.note_error("receipt", backlog.destination, error)
        transaction.become("take effect")

    def _undo(self, transaction: Transaction) -> None:
        self._context.memory.used -= transaction.charged
        consumers = {run.consumer for run in transaction.consumed}
        for consumer in consumers:
            if consumer is not None and not consumer.closed:
                # The client redelivers from its own buffer: the consumer still owns its messages.
                own = (run.references for run in transaction.consumed if run.consumer is consumer)
                consumer.take_back([*chain.from_iterable(own)])
        ownerless = [
            run for run in transaction.consumed if run.consumer is None or run.consumer.closed
        ]
        for backlog, references in _by_backlog(ownerless):
            backlog.count_failures(references)
            backlog.give_back(references)
        transaction.become("roll back")


def _by_backlog(consumed: Iterable[ConsumedRun]) -> Iterable[tuple[Pending, list[Reference]]]:
    """Return what was consumed by backlog, each in order."""
    found: dict[int, tuple[Pending, list[Reference]]] = {}
    for backlog, references, _ in consumed:
        found.setdefault(id(backlog), (backlog, []))[1].extend(references)
    return found.values()


def _another_is_prepared(identifier: TransactionId) -> TransactionError:
    return TransactionError(f"another one, {identifier}, is prepared already", DUPLICATE_ID)
