"""Operations, made into records and receipts that wait to be written.

What an operation ends is subtracted from the file references at once; files are deleted only when
everything handed over before is durable (see `cleaner`). What keeps a file is booked when the
record is written, for the file that it is in then.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.protobuf import bytes_field
from lockkeeper.journal.records import Commit, Prepare, RemoveDestination, Rollback, Trace
from lockkeeper.journal.records import Subscription as SubscriptionRecord
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId, XATransactionId
from lockkeeper.store.base import (
    REMOVED,
    WAITING,
    WRITTEN,
    Add,
    AtomicBatchTooLargeError,
    Operation,
    Receipt,
    Reference,
    Remove,
    Run,
    Subscription,
)
from lockkeeper.store.kahadb.atomic_batch import AtomicBatch
from lockkeeper.store.kahadb.commit import ATOMIC_BATCH_BYTES_MAX, GroupCommit
from lockkeeper.store.kahadb.file_references import (
    OFFSET_BITS,
    DestinationReferences,
    FileReferences,
    PreparedReferences,
    SubscriptionReferences,
)
from lockkeeper.store.kahadb.frames import ack_frame, journal_key, subscription_frame
from lockkeeper.store.kahadb.paging import BodyReader
from lockkeeper.store.kahadb.waiting import (
    ATOMIC_BATCH,
    BOOKED,
    LATE_REMOVE,
    RECEIPT,
    RECORD,
    Book,
    Booked,
    LateRemove,
)

TRACE_BYTES_MAX: Final = 1 << 20
"""So much of the flight recorder waits for company: without any it would fill the memory."""
_ACK_FIELD: Final = 4
_SUBSCRIPTION_FIELD: Final = 5


class JournalAppender:
    """Takes operations for one directory; nothing here touches the disk but `key`."""

    def __init__(
        self, file_references: FileReferences, commit: GroupCommit, bodies: BodyReader
    ) -> None:
        self._file_references = file_references
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
            self._commit.urgent += 1
        else:
            self._commit.is_lazy = True

    def add_run(self, destination: Destination, references: Sequence[Reference]) -> None:
        """Let messages wait for their write."""
        for reference in references:
            reference.state = WAITING
        entry, commit = self._file_references.destination(destination), self._commit
        commit.items.extend(references)
        commit.kinds.extend([entry] * len(references))
        commit.urgent += len(references)
        for subscription in entry.subscriptions.values():
            subscription.pending += len(references)

    def add_together(self, adds: Sequence[Add]) -> None:
        """Record messages that must share a batch. Raises AtomicBatchTooLargeError."""
        atomic_batch = AtomicBatch(None)
        for destination, references in adds:
            atomic_batch.add(self._file_references.destination(destination), references)
        self._put_atomic_batch(atomic_batch, "the copies of a message")
        self._apply(adds)

    def remove(
        self, destination: Destination, reference: Reference, subscription: Subscription | None
    ) -> None:
        """Record the end of a message, or of one subscription's part in it."""
        (key,), rest = self._keys((reference,)), _subscription_field(subscription)
        entry = self._file_references.destination(destination)
        record = entry.remove_lead(len(key), len(rest)) + key + rest
        file_references, commit = self._file_references, self._commit
        if reference.state == WAITING:
            self.put(LateRemove(record, reference), LATE_REMOVE)
        elif file_references.shadows:
            self._put_ending(record, [file_references.adds_of(reference.location)])
        else:
            commit.items.append(record)
            commit.kinds.append(reference.location >> OFFSET_BITS)
        self._consumed(entry, (reference,), subscription)

    def remove_run(self, destination: Destination, references: Sequence[Reference]) -> None:
        """Record the ends of messages of a queue that are in the journal."""
        file_references = self._file_references
        if file_references.shadows:
            for reference in references:
                self.remove(destination, reference, None)
            return
        entry, files = file_references.destination(destination), file_references.files
        items, kinds = self._commit.items, self._commit.kinds
        lead, size = b"", -1
        for reference in references:
            message = reference.message
            key = self._bodies.key(reference) if message is None else journal_key(message.key)
            if len(key) != size:
                size = len(key)
                lead = entry.remove_lead(size, 0)
            file_id = reference.location >> OFFSET_BITS
            items.append(lead + key)
            kinds.append(file_id)
            # What `_end` does, without a second look at each message.
            reference.holders = 0
            reference.state = REMOVED
            files[file_id].live -= reference.size

    def release(self, reference: Reference) -> None:
        """Count one holder less; without holders the message is live no more."""
        reference.holders -= 1
        if reference.holders <= 0:
            self._end((reference,))

    def _end(self, references: Sequence[Reference]) -> None:
        """Count that messages are live no more: nobody needs them."""
        files = self._file_references.files
        for reference in references:
            reference.holders = 0
            if reference.state == WRITTEN:
                reference.state = REMOVED
                files[reference.location >> OFFSET_BITS].live -= reference.size

    def release_run(self, run: Run) -> None:
        """Count that messages of a queue to which nobody has references are live no more."""
        for file_id, size in run.bytes_by_file(OFFSET_BITS).items():
            self._file_references.files[file_id].live -= size
        run.end()

    def commit(self, transaction: TransactionId, operations: Sequence[Operation]) -> None:
        """Record a whole transaction with its outcome, and apply it."""
        atomic_batch = self._transaction(transaction, operations)
        self._put_ended(atomic_batch, encode_record(Commit(transaction)), transaction)
        self._apply(operations)

    def prepare(self, transaction: XATransactionId, operations: Sequence[Operation]) -> None:
        """Record a transaction whose outcome will come later.

        Until then it keeps what it adds, and all files that its records are in.
        """
        atomic_batch = self._transaction(transaction, operations, is_outcome_known=False)
        prepared = PreparedReferences()
        atomic_batch.is_applied = False
        atomic_batch.book = prepared.files.add
        self._put_ended(atomic_batch, encode_record(Prepare(transaction)), transaction)
        self._file_references.prepared[transaction] = prepared
        for operation in operations:
            if isinstance(operation, Add):
                for reference in operation.references:
                    reference.holders = 1
            elif operation.subscription is not None:
                entry = self._file_references.destination(operation.destination)
                prepared.consumed += [(entry, reference) for reference in operation.references]

    def commit_prepared(
        self, transaction: XATransactionId, operations: Sequence[Operation]
    ) -> None:
        """Record the good outcome of a prepared transaction, and apply it."""
        file_references = self._file_references
        prepared = file_references.prepared.pop(transaction, None) or PreparedReferences()
        files, entries = prepared.files, file_references.destinations
        adds: list[tuple[DestinationReferences, Reference]] = []
        consumed = [
            one for topic, one in prepared.consumed if entries.get(topic.destination) is topic
        ]
        for operation in operations:
            if isinstance(operation, Add):
                entry = file_references.destination(operation.destination)
                adds += [(entry, reference) for reference in operation.references]
            elif operation.subscription is None:
                consumed += operation.references

        def book(file_id: int) -> None:
            file_references.end(file_id, files)
            file_references.consume(files, [reference.location for reference in consumed])
            for entry, reference in adds:
                entry.files.add(reference.location >> OFFSET_BITS)

        self._put_booked(encode_record(Commit(transaction)), book)
        self._apply(operations)

    def rollback_prepared(
        self, transaction: XATransactionId, operations: Sequence[Operation]
    ) -> None:
        """Record the bad outcome of a prepared transaction: what it added is gone."""
        prepared = self._file_references.prepared.pop(transaction, None) or PreparedReferences()
        self.roll_back(encode_record(Rollback(transaction)), prepared.files)
        for operation in operations:
            if isinstance(operation, Add):
                self._end(operation.references)

    def roll_back(self, record: bytes, files: set[int]) -> None:
        """Record the end of a transaction whose records are in *files*."""
        self._put_booked(record, lambda file_id: self._file_references.end(file_id, files))

    def subscribe(self, subscription: Subscription) -> None:
        """Record a new durable subscription."""
        frame = subscription_frame(subscription)
        record = SubscriptionRecord(subscription.destination, subscription.key, False, frame)
        entry = SubscriptionReferences(subscription, encode_record(record))
        self._file_references.subscribe(entry)
        self.repeat(entry)

    def repeat(self, entry: SubscriptionReferences) -> None:
        """Record the creation of a subscription, which is now what keeps it alive."""
        self._put_booked(entry.record, entry.created_in)

    def unsubscribe(self, subscription: Subscription) -> None:
        """Record the end of a durable subscription."""
        created = self._file_references.unsubscribe(subscription.destination, subscription.key)
        record = SubscriptionRecord(subscription.destination, subscription.key)
        self._put_ending(encode_record(record), [created])

    def remove_destination(self, destination: Destination) -> None:
        """Record the end of a destination."""
        ended = self._file_references.remove_destination(destination)
        self._put_ending(encode_record(RemoveDestination(destination)), ended)

    def trace(self, text: str) -> None:
        """Let a line of the flight recorder wait for company, but not for ever."""
        record, commit = encode_record(Trace(text)), self._commit
        self.put(record)
        commit.trace_bytes += len(record)
        commit.is_lazy |= commit.trace_bytes >= TRACE_BYTES_MAX

    def _put_booked(self, record: bytes, book: Book) -> None:
        """Let a record wait that is entered into the file references once it is written."""
        self.put(Booked(record, book), BOOKED)

    def _put_ending(self, record: bytes, several: list[set[int]]) -> None:
        """Let a record wait that undoes records in these files.

        The sets are read when it is written: what waits before it has a file then.
        """
        self._put_booked(record, lambda file_id: self._file_references.refer(file_id, several))

    def _transaction(
        self,
        transaction: TransactionId,
        operations: Sequence[Operation],
        is_outcome_known: bool = True,
    ) -> AtomicBatch:
        """Return the records of a transaction without its outcome, as one that shares a batch.

        What it removes is referred to unless its outcome comes later.
        """
        atomic_batch = AtomicBatch(transaction)
        for operation in operations:
            entry = self._file_references.destination(operation.destination)
            if isinstance(operation, Add):
                atomic_batch.add(entry, operation.references)
                continue
            known = [each for each in operation.references if each.state in (WAITING, WRITTEN)]
            rest = _subscription_field(operation.subscription)
            if isinstance(transaction, XATransactionId):
                for reference in known:
                    ack = self._acknowledgement(operation.destination, reference, transaction)
                    atomic_batch.remove(entry, self._keys((reference,)), ack + rest)
            else:
                atomic_batch.remove(entry, self._keys(known), rest)
            if is_outcome_known:
                self._refer_to_adds(known, atomic_batch)
        return atomic_batch

    def _put_ended(
        self, atomic_batch: AtomicBatch, outcome: bytes, transaction: TransactionId
    ) -> None:
        """Let a whole transaction wait. Raises AtomicBatchTooLargeError."""
        atomic_batch.end(outcome)
        self._put_atomic_batch(atomic_batch, str(transaction))

    def _put_atomic_batch(self, atomic_batch: AtomicBatch, name: str) -> None:
        """Let an atomic batch wait. Raises AtomicBatchTooLargeError, with its *name*."""
        if atomic_batch.size > ATOMIC_BATCH_BYTES_MAX:
            raise AtomicBatchTooLargeError(
                f"{name}: {atomic_batch.size} bytes do not fit into a data file"
            )
        atomic_batch.wait()
        self.put(atomic_batch, ATOMIC_BATCH)

    def _keys(self, references: Iterable[Reference]) -> list[bytes]:
        """Return the keys of messages as the journal writes them, read from there if need be."""
        keys = []
        for reference in references:
            message = reference.message
            if message is None:
                key = self._bodies.key(reference)
            else:
                key = message.key
                if not key.isascii():
                    key = journal_key(key)
            keys.append(key)
        return keys

    def _acknowledgement(
        self, destination: Destination, reference: Reference, transaction: TransactionId
    ) -> bytes:
        """Return the field that tells of a removal in a transaction by itself."""
        message = reference.message
        key = self._bodies.key(reference) if message is None else message.key
        return bytes_field(_ACK_FIELD, ack_frame(destination, key, transaction))

    def _refer_to_adds(self, references: list[Reference], atomic_batch: AtomicBatch) -> None:
        """Note the files of the adds that removals in *atomic_batch* undo, or that some lack."""
        file_references = self._file_references
        for reference in references:
            if reference.state == WAITING:
                atomic_batch.late.append(reference)
                continue
            atomic_batch.refers.add(reference.location >> OFFSET_BITS)
            if file_references.shadows:
                atomic_batch.refers |= file_references.adds_of(reference.location)

    def _apply(self, operations: Sequence[Operation]) -> None:
        """Count what a committed transaction did."""
        for operation in operations:
            entry = self._file_references.destination(operation.destination)
            if isinstance(operation, Remove):
                self._consumed(entry, operation.references, operation.subscription)
                continue
            for subscription in entry.subscriptions.values():
                subscription.pending += len(operation.references)
            # Between prepare and commit, the last subscription that wanted them may have gone.
            self._end([each for each in operation.references if each.holders <= 0])

    def _consumed(
        self,
        topic: DestinationReferences,
        references: Sequence[Reference],
        subscription: Subscription | None,
    ) -> None:
        """Count that messages, or one subscription's part in them, are done with."""
        if subscription is None:
            self._end(references)
            return
        entry = topic.subscriptions.get(subscription.key)
        if entry is not None:
            entry.pending -= len(references)
        for reference in references:
            self.release(reference)


def _subscription_field(subscription: Subscription | None) -> bytes:
    """Return the field of a removal that is one subscription's part alone."""
    if subscription is None:
        return b""
    return bytes_field(_SUBSCRIPTION_FIELD, subscription.key.encode())
