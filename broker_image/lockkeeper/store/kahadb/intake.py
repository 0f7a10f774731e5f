"""Operations into what waits to be written: records, receipts, and the ledger's bookkeeping.

What an operation ends is subtracted from the ledger at once; files are deleted only when
everything handed over before is durable (see `caretaker`).
"""

from collections.abc import Sequence

from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.protobuf import bytes_field
from lockkeeper.journal.records import Commit, Prepare, RemoveDestination, Rollback
from lockkeeper.journal.records import Subscription as SubscriptionRecord
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
from lockkeeper.store.kahadb.unit import Unit
from lockkeeper.store.kahadb.waiting import LATE_REMOVE, NOTE, RECEIPT, RECORD, UNIT, LateRemove

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

    def add_together(self, adds: Sequence[Add]) -> None:
        """Record messages that must share a batch. Raises StoreError when they are too much."""
        unit = Unit(None)
        for destination, reference in adds:
            unit.add(self._ledger.destination(destination), reference)
        self._put_unit(unit, "the copies of a message")
        self._apply(adds)

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
        """Let the records of a transaction wait, as one that shares a batch."""
        unit = Unit(transaction)
        is_xa = isinstance(transaction, XATransactionId)
        for operation in operations:
            reference = operation.reference
            entry = self._ledger.destination(operation.destination)
            if isinstance(operation, Add):
                unit.add(entry, reference)
            elif reference.state in (WAITING, WRITTEN):
                key, rest = self._removal(operation, transaction if is_xa else None)
                unit.remove(entry, key, rest)
                self._refer_to_add(reference, unit.late)
        unit.end(outcome)
        self._put_unit(unit, str(transaction))

    def _put_unit(self, unit: Unit, name: str) -> None:
        """Let a unit wait. Raises StoreError, with its *name*, when it fits into no batch."""
        if unit.size > UNIT_BYTES_MAX:
            raise StoreError(f"{name}: {unit.size} bytes do not fit into a data file")
        unit.wait()
        self.put(unit, UNIT)

    def _put_remove(self, operation: Remove) -> None:
        """Let the removal of a message wait."""
        key, rest = self._removal(operation, None)
        entry = self._ledger.destination(operation.destination)
        record = entry.remove_lead(len(key), len(rest)) + key + rest
        late: list[Reference] = []
        self._refer_to_add(operation.reference, late)
        if late:
            self.put(LateRemove(record, operation.reference), LATE_REMOVE)
        else:
            self.put(record)

    def _removal(self, operation: Remove, transaction: TransactionId | None) -> tuple[bytes, bytes]:
        """Return the key of a removed message and the fields behind it in the record."""
        destination, reference, subscription = operation
        message = reference.message
        key = self._bodies.key(reference) if message is None else journal_key(message.key)
        rest = b""
        if transaction is not None:
            identity = key if message is None else message.key
            rest = bytes_field(_ACK_FIELD, ack_frame(destination, identity, transaction))
        if subscription is not None:
            rest += bytes_field(_SUBSCRIPTION_FIELD, subscription.key.encode())
        return key, rest

    def _refer_to_add(self, reference: Reference, late: list[Reference]) -> None:
        """Note the file of the add that a removal undoes, or that it has none yet."""
        if reference.state == WAITING:
            late.append(reference)
            return
        self._commit.refers.add(reference.location >> OFFSET_BITS)
        if self._ledger.shadows:
            self._commit.refers |= self._ledger.shadows.get(reference.location, set())

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
