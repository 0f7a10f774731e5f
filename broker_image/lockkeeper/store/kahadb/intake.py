"""Operations into what waits to be written: records, receipts, and the ledger's bookkeeping.

What an operation ends is subtracted from the ledger at once; files are deleted only when
everything handed over before is durable (see `caretaker`). What keeps a file is booked when the
record is written, for the file that it is in then.
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
    Run,
    Subscription,
    UnitTooLargeError,
)
from lockkeeper.store.kahadb.commit import UNIT_BYTES_MAX, GroupCommit
from lockkeeper.store.kahadb.frames import ack_frame, journal_key, subscription_frame
from lockkeeper.store.kahadb.ledger import (
    OFFSET_BITS,
    DestinationLedger,
    Ledger,
    PreparedLedger,
    SubscriptionLedger,
)
from lockkeeper.store.kahadb.paging import BodyReader
from lockkeeper.store.kahadb.unit import Unit
from lockkeeper.store.kahadb.waiting import (
    BOOKED,
    LATE_REMOVE,
    RECEIPT,
    RECORD,
    UNIT,
    Book,
    Booked,
    LateRemove,
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

    def add_together(self, adds: Sequence[Add]) -> None:
        """Record messages that must share a batch. Raises UnitTooLargeError."""
        unit = Unit(None)
        for destination, reference in adds:
            unit.add(self._ledger.destination(destination), reference)
        self._put_unit(unit, "the copies of a message")
        self._apply(adds)

    def remove(
        self, destination: Destination, reference: Reference, subscription: Subscription | None
    ) -> None:
        """Record the end of a message, or of one subscription's part in it."""
        key, rest = self._removal(reference, subscription)
        entry = self._ledger.destination(destination)
        record = entry.remove_lead(len(key), len(rest)) + key + rest
        ledger, commit = self._ledger, self._commit
        if reference.state == WAITING:
            self.put(LateRemove(record, reference), LATE_REMOVE)
        elif ledger.shadows:
            self._put_ending(record, [ledger.adds_of(reference.location)])
        else:
            commit.items.append(record)
            commit.kinds.append(reference.location >> OFFSET_BITS)
        self._consumed(entry, reference, subscription)

    def release(self, reference: Reference) -> None:
        """Count one holder less; without holders the message is live no more."""
        reference.holders -= 1
        if reference.holders <= 0 and reference.state == WRITTEN:
            reference.state = REMOVED
            self._ledger.files[reference.location >> OFFSET_BITS].live -= reference.size

    def release_run(self, run: Run) -> None:
        """Count that messages of a queue to which nobody has references are live no more."""
        for file_id, size in run.bytes_by_file(OFFSET_BITS).items():
            self._ledger.files[file_id].live -= size
        run.end()

    def commit(self, transaction: TransactionId, operations: Sequence[Operation]) -> None:
        """Record a whole transaction with its outcome, and apply it."""
        unit = self._transaction(transaction, operations)
        self._put_ended(unit, encode_record(Commit(transaction)), transaction)
        self._apply(operations)

    def prepare(self, transaction: XATransactionId, operations: Sequence[Operation]) -> None:
        """Record a transaction whose outcome will come later.

        Until then it keeps what it adds, and all files that its records are in.
        """
        unit = self._transaction(transaction, operations, is_outcome_known=False)
        prepared = PreparedLedger()
        unit.is_applied = False
        unit.book = prepared.files.add
        self._put_ended(unit, encode_record(Prepare(transaction)), transaction)
        self._ledger.prepared[transaction] = prepared
        for operation in operations:
            if isinstance(operation, Add):
                operation.reference.holders = 1
            elif operation.subscription is not None:
                entry = self._ledger.destination(operation.destination)
                prepared.consumed.append((entry, operation.reference))

    def commit_prepared(
        self, transaction: XATransactionId, operations: Sequence[Operation]
    ) -> None:
        """Record the good outcome of a prepared transaction, and apply it."""
        ledger = self._ledger
        prepared = ledger.prepared.pop(transaction, None) or PreparedLedger()
        files, entries = prepared.files, ledger.destinations
        adds: list[tuple[DestinationLedger, Reference]] = []
        consumed = [
            one for topic, one in prepared.consumed if entries.get(topic.destination) is topic
        ]
        for operation in operations:
            if isinstance(operation, Add):
                adds.append((ledger.destination(operation.destination), operation.reference))
            elif operation.subscription is None:
                consumed.append(operation.reference)

        def book(file_id: int) -> None:
            ledger.end(file_id, files)
            ledger.consume(files, [reference.location for reference in consumed])
            for entry, reference in adds:
                entry.files.add(reference.location >> OFFSET_BITS)

        self._put_booked(encode_record(Commit(transaction)), book)
        self._apply(operations)

    def rollback_prepared(
        self, transaction: XATransactionId, operations: Sequence[Operation]
    ) -> None:
        """Record the bad outcome of a prepared transaction: what it added is gone."""
        prepared = self._ledger.prepared.pop(transaction, None) or PreparedLedger()
        self.roll_back(encode_record(Rollback(transaction)), prepared.files)
        for operation in operations:
            if isinstance(operation, Add):
                operation.reference.holders = 1
                self.release(operation.reference)

    def roll_back(self, record: bytes, files: set[int]) -> None:
        """Record the end of a transaction whose records are in *files*."""
        self._put_booked(record, lambda file_id: self._ledger.end(file_id, files))

    def subscribe(self, subscription: Subscription) -> None:
        """Record a new durable subscription."""
        frame = subscription_frame(subscription)
        record = SubscriptionRecord(subscription.destination, subscription.key, False, frame)
        entry = SubscriptionLedger(subscription, encode_record(record))
        self._ledger.subscribe(entry)
        self.repeat(entry)

    def repeat(self, entry: SubscriptionLedger) -> None:
        """Record the creation of a subscription, which is now what keeps it alive."""
        self._put_booked(entry.record, entry.created_in)

    def unsubscribe(self, subscription: Subscription) -> None:
        """Record the end of a durable subscription."""
        created = self._ledger.unsubscribe(subscription.destination, subscription.key)
        record = SubscriptionRecord(subscription.destination, subscription.key)
        self._put_ending(encode_record(record), [created])

    def remove_destination(self, destination: Destination) -> None:
        """Record the end of a destination."""
        ended = self._ledger.remove_destination(destination)
        self._put_ending(encode_record(RemoveDestination(destination)), ended)

    def _put_booked(self, record: bytes, book: Book) -> None:
        """Let a record wait that is entered into the ledger once it is written."""
        self.put(Booked(record, book), BOOKED)

    def _put_ending(self, record: bytes, several: list[set[int]]) -> None:
        """Let a record wait that undoes records in these files.

        The sets are read when it is written: what waits before it has a file then.
        """
        self._put_booked(record, lambda file_id: self._ledger.refer(file_id, several))

    def _transaction(
        self,
        transaction: TransactionId,
        operations: Sequence[Operation],
        is_outcome_known: bool = True,
    ) -> Unit:
        """Return the records of a transaction without its outcome, as one that shares a batch.

        What it removes is referred to unless its outcome comes later.
        """
        unit = Unit(transaction)
        is_xa = isinstance(transaction, XATransactionId)
        for operation in operations:
            reference = operation.reference
            entry = self._ledger.destination(operation.destination)
            if isinstance(operation, Add):
                unit.add(entry, reference)
            elif reference.state in (WAITING, WRITTEN):
                ack = self._acknowledgement(operation, transaction) if is_xa else b""
                unit.remove(entry, *self._removal(reference, operation.subscription, ack))
                if is_outcome_known:
                    self._refer_to_add(reference, unit)
        return unit

    def _put_ended(self, unit: Unit, outcome: bytes, transaction: TransactionId) -> None:
        """Let a whole transaction wait. Raises UnitTooLargeError."""
        unit.end(outcome)
        self._put_unit(unit, str(transaction))

    def _put_unit(self, unit: Unit, name: str) -> None:
        """Let a unit wait. Raises UnitTooLargeError, with its *name*."""
        if unit.size > UNIT_BYTES_MAX:
            raise UnitTooLargeError(f"{name}: {unit.size} bytes do not fit into a data file")
        unit.wait()
        self.put(unit, UNIT)

    def _removal(
        self, reference: Reference, subscription: Subscription | None, ack: bytes = b""
    ) -> tuple[bytes, bytes]:
        """Return the key of a removed message and the fields behind it in the record.

        The one with the acknowledgement, if there is any, is *ack*.
        """
        message = reference.message
        key = self._bodies.key(reference) if message is None else journal_key(message.key)
        if subscription is not None:
            return key, ack + bytes_field(_SUBSCRIPTION_FIELD, subscription.key.encode())
        return key, ack

    def _acknowledgement(self, operation: Remove, transaction: TransactionId) -> bytes:
        """Return the field that tells of a removal in a transaction by itself."""
        reference = operation.reference
        message = reference.message
        key = self._bodies.key(reference) if message is None else message.key
        return bytes_field(_ACK_FIELD, ack_frame(operation.destination, key, transaction))

    def _refer_to_add(self, reference: Reference, unit: Unit) -> None:
        """Note the file of the add that a removal in *unit* undoes, or that it has none yet."""
        if reference.state == WAITING:
            unit.late.append(reference)
        else:
            unit.refers.add(reference.location >> OFFSET_BITS)
            if self._ledger.shadows:
                unit.refers |= self._ledger.adds_of(reference.location)

    def _apply(self, operations: Sequence[Operation]) -> None:
        """Count what a committed transaction did."""
        for operation in operations:
            entry = self._ledger.destination(operation.destination)
            if isinstance(operation, Remove):
                self._consumed(entry, operation.reference, operation.subscription)
                continue
            if entry.subscriptions:
                for subscription in entry.subscriptions.values():
                    subscription.pending += 1
            if operation.reference.holders <= 0:
                # Between prepare and commit, the last subscription that wanted it went.
                operation.reference.holders = 1
                self.release(operation.reference)

    def _consumed(
        self, topic: DestinationLedger, reference: Reference, subscription: Subscription | None
    ) -> None:
        """Count that a message, or one subscription's part in it, is done with."""
        if subscription is None:
            reference.holders = 1
        else:
            entry = topic.subscriptions.get(subscription.key)
            if entry is not None:
                entry.pending -= 1
        self.release(reference)
