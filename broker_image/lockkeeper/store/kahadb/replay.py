"""The replay's state, and the records that are rarer than plain adds and removes of queues."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from lockkeeper.journal import records
from lockkeeper.journal.decode import decode_destination, decode_record, decode_transaction
from lockkeeper.journal.encode import encode_destination, encode_record
from lockkeeper.journal.records import PRIORITY_DEFAULT
from lockkeeper.journal.walk import ADD, REMOVE, QuickRecord
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId, XATransactionId
from lockkeeper.message.segments import SEGMENT_PREFIX
from lockkeeper.store.base import (
    WRITTEN,
    Add,
    Identity,
    Operation,
    Recovered,
    RecoveredSubscription,
    Reference,
    Remove,
    Subscription,
)
from lockkeeper.store.kahadb.existing import ToldQueues
from lockkeeper.store.kahadb.extracts import Extract
from lockkeeper.store.kahadb.file_references import (
    OFFSET_BITS,
    FileReferences,
    PreparedReferences,
    SubscriptionReferences,
)
from lockkeeper.store.kahadb.frames import read_subscription
from lockkeeper.store.kahadb.holders import count_holders
from lockkeeper.store.kahadb.long_index import LongIndex
from lockkeeper.store.kahadb.replayed_destination import Messages, ReplayedDestination, key_text
from lockkeeper.store.kahadb.segment_replay import (
    MakeSegment,
    ReplayedKeys,
    SegmentReplay,
    SegmentReplays,
)
from lockkeeper.store.kahadb.term import epoch_of, identity_of
from lockkeeper.store.kahadb.ways import ends_plainly_at, note_way
from lockkeeper.store.producers import Producers

COMPACTED_AFTER: Final = 8
"""Runs of batches, a megabyte each as a rule."""


class OpenTransaction:
    """The operations of a transaction without an outcome, in runs by file, and their files."""

    __slots__ = ("files", "is_prepared", "runs")

    def __init__(self) -> None:
        self.runs: list[tuple[int, list[QuickRecord]]] = []
        self.files: set[int] = set()
        self.is_prepared = False

    def run_in(self, file_id: int) -> list[QuickRecord]:
        """Return the list to add operations to whose records are in *file_id*."""
        if not self.runs or self.runs[-1][0] != file_id:
            self.runs.append((file_id, []))
            self.files.add(file_id)
        return self.runs[-1][1]


class Replay:
    """Live messages and subscriptions after the records applied so far."""

    def __init__(self, file_references: FileReferences, make_segment: MakeSegment) -> None:
        self.file_references = file_references
        self._segments = SegmentReplays(make_segment, file_references)
        self._keys = ReplayedKeys()
        self.producers = Producers()
        self._destinations: dict[bytes, ReplayedDestination] = {}
        self._by_name: dict[Destination, ReplayedDestination] = {}
        self._transactions: dict[TransactionId, OpenTransaction] = {}
        self.existing = ToldQueues()
        self._last_trace = ""
        self._batches = 0
        self._epoch = 0
        self._identity: Identity | None = None

    def apply_batch(
        self, rows: list[QuickRecord], file_id: int, data: bytes, file_name: str
    ) -> None:
        """Apply the records of one batch of *file_id*, whose bytes are *data*."""
        plain: list[QuickRecord] = []
        run, last = plain, None
        for row in rows:
            command, _, _, _, _, _, _, transaction, _, _ = row
            if command not in (ADD, REMOVE):
                self._apply_plain(plain, file_id, data)
                plain.clear()
                self._apply(row, file_id, data, file_name)
                last = None
            elif transaction is None:
                plain.append(row)
                if command == ADD and not ends_plainly_at(data, row[5] + row[6]):
                    note_way(self.producers, self._enter(row[3]).destination, row, data)
            else:
                if transaction != last:
                    last = transaction
                    run = self._open(decode_transaction(transaction)).run_in(file_id)
                run.append(row)
                if command == ADD:
                    self._keys.note(row, data)
        self._apply_plain(plain, file_id, data)
        self._batches += 1
        if self._batches % COMPACTED_AFTER == 0:
            for replayed in self._by_name.values():
                replayed.compact()

    def adopt(self, extract: Extract, file_id: int) -> bool:
        """Take over segments' messages, as an extract has them; False if they do not come next."""
        found = [(part, self._enter(part.destination).segment) for part in extract.parts]
        for part, segment in found:
            if segment is None or not segment.goes_on_with(part):
                return False
        for part, segment in found:
            assert segment is not None
            segment.adopt(part)
            self._added(part.destination, file_id)
        return True

    def _apply_plain(self, rows: list[QuickRecord], file_id: int, data: bytes = b"") -> None:
        """Apply adds and removes whose records are in *file_id*; quick for those of queues.

        *data* are the bytes of the file, if it is the one that is being read.
        """
        if not rows:
            return
        base = file_id << OFFSET_BITS
        refers, shadows = self.file_references.files[file_id].refers, self.file_references.shadows
        note = self.producers.note_number
        index: Messages | LongIndex | None = None
        last: bytes | None = None
        entered: bytes | None = None
        segment: SegmentReplay | None = None
        run: list[QuickRecord] = []
        for row in rows:
            command, offset, size, destination, message_id, _, _, _, key, priority = row
            if destination is not last:
                if segment is not None:
                    segment.operate(run, file_id, data, self._keys)
                    run = []
                replayed = self._enter(destination)
                index, segment = replayed.index, replayed.segment
                last = destination
            if command == ADD and destination is not entered:
                self._added(destination, file_id)
                entered = destination
            if segment is not None:
                run.append(row)
            elif index is None or key is not None:
                self._operate(row, file_id)
            elif command == ADD:
                if message_id in index:
                    shadows.setdefault(index[message_id].location, set()).add(file_id)
                    continue
                index[message_id] = reference = Reference(None, size, base + offset, WRITTEN)
                if priority != PRIORITY_DEFAULT:
                    reference.priority = priority
                producer, _, sequence = message_id.rpartition(b":")
                if sequence.isdigit():
                    note(producer, int(sequence))
            else:
                removed = index.pop(message_id, None)
                if removed is not None:
                    refers.add(removed.location >> OFFSET_BITS)
                    if shadows:
                        refers |= shadows.pop(removed.location, set())
        if segment is not None:
            segment.operate(run, file_id, data, self._keys)

    def _apply(self, row: QuickRecord, file_id: int, data: bytes, file_name: str) -> None:
        """Apply a record that is no add or remove. Raises BadRecordError or StoreError."""
        _, offset, size, _, _, _, _, _, _, _ = row
        match decode_record(data, offset, file_name):
            case records.Commit(transaction=identifier):
                self._commit(identifier, file_id)
            case records.Rollback(transaction=identifier):
                self._end(identifier, file_id)
            case records.Prepare(transaction=identifier):
                self._prepare(identifier, file_id)
            case records.UpdateMessage(add=add):
                self._update(add, size, file_id << OFFSET_BITS | offset)
            case records.RemoveDestination(destination=destination):
                self._remove_destination(destination, file_id)
            case records.Subscription() as record:
                made = None
                if record.info is not None:
                    made = read_subscription(record, record.destination, file_name, offset)
                self._subscription(record, made, data[offset : offset + size], file_id)
            case records.Trace(message=text):
                self.existing.note(text)
                self._last_trace = text
                self._epoch = max(self._epoch, epoch_of(text))
                self._identity = identity_of(text) or self._identity
            case _:
                # ActiveMQ's own bookkeeping says nothing about messages.
                return

    def rollbacks(self) -> list[tuple[bytes, set[int]]]:
        """Return a rollback record for each transaction that never ended, and its files."""
        return [
            (encode_record(records.Rollback(identifier)), entry.files)
            for identifier, entry in self._transactions.items()
            if not entry.is_prepared
        ]

    def finish(self) -> Recovered:
        """Return what is live, and count it in the file references."""
        recovered = Recovered(
            producers=self.producers,
            last_trace=self._last_trace,
            epoch=self._epoch,
            identity=self._identity,
        )
        for identifier, opened in self._transactions.items():
            if opened.is_prepared and isinstance(identifier, XATransactionId):
                prepared = self.file_references.prepared[identifier] = PreparedReferences()
                prepared.files = opened.files
                recovered.prepared[identifier] = self._operations(opened, prepared)
        operations = [one for several in recovered.prepared.values() for one in several]
        live = {one.location: one for operation in operations for one in operation.references}
        for replayed in dict.fromkeys(self._destinations.values()):
            if replayed.segment is not None:
                recovered.segments.append(replayed.segment.finish())
                if replayed.segment.strays:
                    strays = list(replayed.segment.strays.values())
                    recovered.strays[replayed.destination] = strays
                    self._count(strays)
            elif isinstance(replayed.index, LongIndex):
                recovered.queues[replayed.destination], counts = replayed.index.finish()
                self._count_in(counts)
            elif replayed.index:
                references = list(replayed.index.values())
                recovered.queues[replayed.destination] = references
                self._count(references)
            for key, messages in replayed.pending.items():
                entry = self.file_references.subscriptions[replayed.destination, key]
                entry.pending = len(messages)
                pending = RecoveredSubscription(entry.subscription, list(messages.values()))
                recovered.subscriptions.append(pending)
                live |= {reference.location: reference for reference in pending.pending}
        self._count(live.values())
        recovered.existing = [name for name in self.existing.names if not name.is_temporary]
        count_holders(self.file_references, recovered)
        return recovered

    def _count(self, references: Iterable[Reference]) -> None:
        files = self.file_references.files
        for reference in references:
            files[reference.location >> OFFSET_BITS].live += reference.size

    def _count_in(self, counts: Counter[int]) -> None:
        for file_id, count in counts.items():
            self.file_references.files[file_id].live += count

    def _added(self, destination: bytes, file_id: int) -> None:
        """Note that an add in *file_id* was applied to the destination of these bytes."""
        self.file_references.destination(self._enter(destination).destination).files.add(file_id)

    def _enter(self, destination: bytes) -> ReplayedDestination:
        """Return the destination of these bytes."""
        replayed = self._destinations.get(destination)
        if replayed is None:
            decoded = decode_destination(destination)
            # Two writers may encode the same name in two ways.
            replayed = self._by_name.get(decoded)
            if replayed is None:
                replayed = ReplayedDestination(decoded, self._segments.begin(decoded))
            replayed.encodings.append(destination)
            self._destinations[destination] = self._by_name[decoded] = replayed
            if decoded.is_queue and not decoded.name.startswith(SEGMENT_PREFIX):
                self.existing.names[decoded] = None
        return replayed

    def _open(self, identifier: TransactionId) -> OpenTransaction:
        opened = self._transactions.get(identifier)
        if opened is None:
            opened = self._transactions[identifier] = OpenTransaction()
        return opened

    def _prepare(self, identifier: TransactionId, file_id: int) -> None:
        opened = self._transactions.get(identifier)
        if opened is not None:
            opened.is_prepared = True
            opened.files.add(file_id)

    def _commit(self, identifier: TransactionId, file_id: int) -> None:
        opened = self._end(identifier, file_id)
        if opened is None:
            return
        files = self.file_references.files
        before = {row_file: files[row_file].refers for row_file in opened.files}
        for row_file in before:
            files[row_file].refers = set()
        for row_file, rows in opened.runs:
            self._apply_plain(rows, row_file)
            if row_file != file_id:
                self._scatter(rows)
        # All its files are needed while one of the messages that it consumed is in the journal.
        consumed = set().union(*(files[row_file].refers for row_file in before))
        for row_file, refers in before.items():
            files[row_file].refers = refers | consumed

    def _scatter(self, rows: Iterable[QuickRecord]) -> None:
        """Have segments be plain no more that have adds which a later file commits.

        An extract would take these for committed where they stand.
        """
        for destination in {row[3] for row in rows}:
            segment = self._enter(destination).segment
            if segment is not None:
                segment.segment.is_plain = False

    def _end(self, identifier: TransactionId, file_id: int) -> OpenTransaction | None:
        opened = self._transactions.pop(identifier, None)
        if opened is not None:
            self.file_references.end(file_id, opened.files)
        return opened

    def _operate(self, row: QuickRecord, file_id: int) -> None:
        """Apply an add or a remove, of a queue or a topic, whose record is in *file_id*."""
        command, offset, size, destination, message_id, _, _, _, key, priority = row
        replayed = self._enter(destination)
        if command == REMOVE:
            self._remove(replayed, message_id, key, file_id)
            return
        self.producers.note_key(message_id)
        replayed.added[message_id] = file_id << OFFSET_BITS
        present = replayed.holders_of(message_id)
        if present:
            location = present[0][message_id].location
            self.file_references.shadows.setdefault(location, set()).add(file_id)
            return
        replayed.keep(message_id, _written(size, file_id << OFFSET_BITS | offset, priority))

    def _remove(
        self, replayed: ReplayedDestination, message_id: bytes, key: bytes | None, file_id: int
    ) -> None:
        holders = replayed.holders_of(message_id, key)
        for messages in holders:
            self._refer(file_id, messages[message_id])
            messages.pop(message_id)
        if not holders and message_id in replayed.added:
            self.file_references.files[file_id].refers.add(
                replayed.added[message_id] >> OFFSET_BITS
            )

    def _refer(self, file_id: int, consumed: Reference) -> None:
        """Note that a record in *file_id* ends a message, wherever its adds are."""
        refers = self.file_references.files[file_id].refers
        refers.add(consumed.location >> OFFSET_BITS)
        refers |= self.file_references.shadows.get(consumed.location, set())

    def _update(self, add: records.AddMessage, size: int, location: int) -> None:
        """Let an update's contents take the place of the message's, which keeps its turn."""
        file_id = location >> OFFSET_BITS
        message_id = add.message_id.encode()
        encoded = encode_destination(add.destination)
        replayed = self._enter(encoded)
        self._added(encoded, file_id)
        if replayed.segment is not None:
            replayed.segment.update(add, size, location)
            return
        holders = replayed.holders_of(message_id)
        if not holders:
            priority = add.priority if add.priority_supported else PRIORITY_DEFAULT
            replayed.keep(message_id, _written(size, location, priority))
            return
        reference = holders[0][message_id]
        self.file_references.files[file_id].refers.add(reference.location >> OFFSET_BITS)
        shadows = self.file_references.shadows.pop(reference.location, None)
        if shadows is not None:
            self.file_references.shadows[location] = shadows
        reference.location, reference.size = location, size
        if isinstance(replayed.index, LongIndex):
            replayed.index.move(message_id, location, size)

    def _remove_destination(self, destination: Destination, file_id: int) -> None:
        undone = self.file_references.remove_destination(destination)
        self.file_references.refer(file_id, undone)
        self.existing.names.pop(destination, None)
        removed = self._by_name.pop(destination, None)
        if removed is not None and removed.segment is not None:
            removed.segment.segment.forget()
        for encoding in () if removed is None else removed.encodings:
            del self._destinations[encoding]

    def _subscription(
        self,
        record: records.Subscription,
        subscription: Subscription | None,
        encoded: bytes,
        file_id: int,
    ) -> None:
        replayed = self._enter(encode_destination(record.destination))
        key = record.subscription_key
        forgotten = replayed.pending.pop(key, {})
        if subscription is None:
            created = self.file_references.unsubscribe(replayed.destination, key)
            self.file_references.files[file_id].refers |= created
            return
        # If it is repeated, it has received already what was there before.
        again = encode_record(replace(record, retroactive=False)) if record.retroactive else encoded
        entry = SubscriptionReferences(subscription, again)
        self.file_references.subscribe(entry)
        entry.created_in(file_id)
        creations = self.file_references.destination(replayed.destination).creations
        replayed.pending[key] = {}
        if record.retroactive:
            replayed.pending[key] = replayed.retained(forgotten)
            entry.is_retroactive = True
            entry.earlier = set(creations)
        creations.add(file_id)

    def _operations(self, opened: OpenTransaction, prepared: PreparedReferences) -> list[Operation]:
        """Return what a prepared transaction will do; what it consumes is live no more."""
        operations: list[Operation] = []
        added: defaultdict[ReplayedDestination, Messages] = defaultdict(dict)
        rows = ((row, file_id) for file_id, run in opened.runs for row in run)
        for row, file_id in rows:
            command, offset, size, destination, message_id, _, _, _, key, priority = row
            replayed = self._enter(destination)
            if command == ADD:
                reference = _written(size, file_id << OFFSET_BITS | offset, priority)
                added[replayed][message_id] = reference
                operations.append(Add(replayed.destination, [reference]))
                continue
            entry = (
                None
                if key is None
                else self.file_references.subscriptions.get((replayed.destination, key_text(key)))
            )
            holders = [*replayed.messages_of(key), added[replayed]]
            taken = next((one.pop(message_id) for one in holders if message_id in one), None)
            if key is not None and (taken is not None or message_id in replayed.added):
                topic = self.file_references.destination(replayed.destination)
                gone = Reference(None, 0, replayed.added.get(message_id, 0))
                prepared.consumed.append((topic, taken or gone))
            if taken is not None:
                subscription = None if entry is None else entry.subscription
                operations.append(Remove(replayed.destination, [taken], subscription))
        return operations


def _written(size: int, location: int, priority: int) -> Reference:
    reference = Reference(None, size, location, WRITTEN)
    if priority != PRIORITY_DEFAULT:
        reference.priority = priority
    return reference
