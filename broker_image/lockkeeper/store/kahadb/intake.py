"""Operations into what waits to be written: records, receipts, and the ledger's bookkeeping.

What an operation ends is subtracted from the ledger at once; files are deleted only when
everything handed over before is durable (see `caretaker`).
"""

from collections.abc import Sequence

from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.protobuf import bytes_field
from lockkeeper.journal.records import Commit, Prepare, RemoveDestination, Rollback
from lockkeeper.journal.records import Subscription as SubscriptionRecord
from lockkeeper.journal.splice import ADD_TAIL_SIZE, add_head, remove_record, transaction_field
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId, XATransactionId
from lockkeeper.store.base import (
    REMOVED,
    WAITING,
    WRITTEN,
    Add,
    Operation,
    Receipt,
    Reference,
    Remove,
    StoreError,
    Subscription,
)
from lockkeeper.store.kahadb.commit import UNIT_BYTES_MAX, GroupCommit
from lockkeeper.store.kahadb.frames import ack_frame, journal_key, subscription_frame
from lockkeeper.store.kahadb.ledger import (
    OFFSET_BITS,
    Ledger,
    SubscriptionLedger,
)
from lockkeeper.store.kahadb.paging import BodyReader
from lockkeeper.store.kahadb.waiting import (
    FENCE,
    LATE_REMOVE,
    NOTE,
    RECEIPT,
    RECORD,
    SPLICED_ADD,
    LateRemove,
    SplicedAdd,
)

_ACK_FIELD = 4
_SUBSCRIPTION_FIELD = 5


class Intake:
    """Takes operations for one directory; nothing here touches the disk but `key`."""

    def __init__(self, ledger: Ledger, commit: GroupCommit, bodies: BodyReader) -> None:
        self._ledger = ledger
        self._commit = commit
        self._bodies = bodies

    def put(self, item: object, kind: object = RECORD) -> None:
        """Let *item* wait for its turn."""
        self._commit.items.append(item)
        self._commit.kinds.append(kind)

    def answer(self, receipt: Receipt | None) -> None:
        """Give *receipt* back when everything handed over so far is durable."""
        if receipt is not None:
            self.put(receipt, RECEIPT)
            self._commit.is_urgent = True
        else:
            self._commit.is_lazy = True

    def remove(
        self, destination: Destination, reference: Reference, subscription: Subscription | None
    ) -> None:
        """Record the end of a message, or of one subscription's part in it."""
        self._put_remove(Remove(destination, reference, subscription))
        self._consumed(reference, subscription)

    def release(self, reference: Reference) -> None:
        """Count one holder less; without holders the message is live no more."""
        reference.holders -= 1
        if reference.holders <= 0 and reference.state == WRITTEN:
            reference.state = REMOVED
            self._ledger.files[reference.location >> OFFSET_BITS].live -= 1

    def commit(self, transaction: TransactionId, operations: Sequence[Operation]) -> None:
        """Record a whole transaction with its outcome, and apply it."""
        record = encode_record(Commit(transaction))
        self._put_transaction(transaction, operations, record)
        self._apply(operations)

    def prepare(self, transaction: XATransactionId, operations: Sequence[Operation]) -> None:
        """Record a transaction whose outcome will come later."""
        files = self._ledger.prepared.setdefault(transaction, set())
        self._put_transaction(transaction, operations, encode_record(Prepare(transaction)))
        self.put(files.add, NOTE)

    def commit_prepared(
        self, transaction: XATransactionId, operations: Sequence[Operation]
    ) -> None:
        """Record the good outcome of a prepared transaction, and apply it."""
        self._refer_to([self._ledger.prepared.pop(transaction, set())])
        self.put(encode_record(Commit(transaction)))
        self._apply(operations)

    def rollback_prepared(
        self, transaction: XATransactionId, operations: Sequence[Operation]
    ) -> None:
        """Record the bad outcome of a prepared transaction: what it added is gone."""
        self._refer_to([self._ledger.prepared.pop(transaction, set())])
        self.put(encode_record(Rollback(transaction)))
        for operation in operations:
            if isinstance(operation, Add):
                operation.reference.holders = 1
                self.release(operation.reference)

    def roll_back(self, record: bytes, files: set[int]) -> None:
        """Record the end of a transaction that an earlier master left open in *files*."""
        self._refer_to([files])
        self.put(record)

    def subscribe(self, subscription: Subscription) -> None:
        """Record a new durable subscription."""
        frame = subscription_frame(subscription)
        record = SubscriptionRecord(subscription.destination, subscription.key, False, frame)
        entry = SubscriptionLedger(subscription, encode_record(record))
        self._ledger.subscribe(entry)
        self.repeat(entry)

    def repeat(self, entry: SubscriptionLedger) -> None:
        """Record the creation of a subscription, which is now what keeps it alive."""
        self.put(entry.record)
        self.put(entry.created_in, NOTE)

    def unsubscribe(self, subscription: Subscription) -> None:
        """Record the end of a durable subscription."""
        self._refer_to([self._ledger.unsubscribe(subscription.key)])
        self.put(encode_record(SubscriptionRecord(subscription.destination, subscription.key)))

    def remove_destination(self, destination: Destination) -> None:
        """Record the end of a destination."""
        self._refer_to(self._ledger.remove_destination(destination))
        self.put(encode_record(RemoveDestination(destination)))

    def _refer_to(self, several: list[set[int]]) -> None:
        """Note that the next record undoes records in these files.

        The sets are read when the record is written: what waits before it has a file then.
        """
        files = self._ledger.files

        def note(file_id: int) -> None:
            files[file_id].refers.update(*several)

        self.put(note, NOTE)

    def _put_transaction(
        self, transaction: TransactionId, operations: Sequence[Operation], outcome: bytes
    ) -> None:
        """Let the records of a transaction wait, fenced so that they share one batch."""
        commit = self._commit
        fence = len(commit.items)
        self.put(0, FENCE)
        try:
            size = self._put_operations(transaction, operations) + len(outcome)
            if size > UNIT_BYTES_MAX:
                raise StoreError(f"{transaction}: {size} bytes do not fit into a data file")
        except StoreError:
            # A part of a transaction must never be written.
            del commit.items[fence:], commit.kinds[fence:]
            raise
        self.put(outcome)
        commit.items[fence] = size

    def _put_operations(self, transaction: TransactionId, operations: Sequence[Operation]) -> int:
        """Let records within *transaction* wait; returns their size."""
        field = transaction_field(transaction)
        size = 0
        for operation in operations:
            if isinstance(operation, Add):
                size += self._put_add(operation, field)
            elif operation.reference.state in (WAITING, WRITTEN):
                size += self._put_remove(operation, transaction, field)
        return size

    def _put_add(self, operation: Add, transaction: bytes) -> int:
        """Let the add of a transaction wait; returns the size of its record."""
        reference = operation.reference
        message = reference.loaded
        entry = self._ledger.destination(operation.destination)
        key = journal_key(message.key)
        head = add_head(entry.field, key, len(message.body), transaction)
        reference.state = WAITING
        size = len(head) + len(message.body) + ADD_TAIL_SIZE
        self.put(SplicedAdd(head, message.body, reference, entry, size), SPLICED_ADD)
        return size

    def _put_remove(
        self, operation: Remove, transaction: TransactionId | None = None, field: bytes = b""
    ) -> int:
        """Let the removal of a message wait; returns the size of its record."""
        destination, reference, subscription = operation
        entry = self._ledger.destination(destination)
        message = reference.message
        key = self._bodies.key(reference) if message is None else journal_key(message.key)
        ack = b""
        if isinstance(transaction, XATransactionId):
            identity = key if message is None else message.key
            ack = bytes_field(_ACK_FIELD, ack_frame(destination, identity, transaction))
        subscriber = b""
        if subscription is not None:
            subscriber = bytes_field(_SUBSCRIPTION_FIELD, subscription.key.encode())
        record = remove_record(entry.field, key, ack, subscriber, field)
        if reference.state == WAITING:
            self.put(LateRemove(record, reference), LATE_REMOVE)
            return len(record)
        self.put(record)
        self._commit.refers.add(reference.location >> OFFSET_BITS)
        if self._ledger.shadows:
            self._commit.refers |= self._ledger.shadows.get(reference.location, set())
        return len(record)

    def _apply(self, operations: Sequence[Operation]) -> None:
        """Count what a committed transaction did."""
        for operation in operations:
            if isinstance(operation, Remove):
                self._consumed(operation.reference, operation.subscription)
                continue
            for entry in self._ledger.destination(operation.destination).subscriptions:
                entry.pending += 1
            if operation.reference.holders <= 0:
                # Between prepare and commit, the last subscription that wanted it went.
                operation.reference.holders = 1
                self.release(operation.reference)

    def _consumed(self, reference: Reference, subscription: Subscription | None) -> None:
        """Count that a message, or one subscription's part in it, is done with."""
        if subscription is None:
            reference.holders = 1
        else:
            entry = self._ledger.subscriptions.get(subscription.key)
            if entry is not None:
                entry.pending -= 1
        self.release(reference)
