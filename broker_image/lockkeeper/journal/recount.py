"""Recount of everything that each data file keeps alive, from the journal alone.

A plain reading of kahadb.md sections 4 and 6, record by record, slow and without any of the
broker's bookkeeping: so it can tell whether that is right. Memory holds the ids of all messages.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.files import DataFile, list_data_files
from lockkeeper.journal.records import (
    AddMessage,
    Commit,
    Prepare,
    Record,
    RemoveDestination,
    RemoveMessage,
    RewrittenDataFile,
    Rollback,
    Subscription,
    UpdateMessage,
)
from lockkeeper.journal.rewritten import in_reading_order
from lockkeeper.journal.scan import Batch, record_offsets, scan_file
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId, XATransactionId

Place = tuple[Destination, str]


@dataclass(slots=True)
class Kept:
    """One data file: how many live messages are in it, and which files it has to outlast.

    `live_bytes` are those of the messages' records.

    `refers` are other files with what its records acknowledge, replace or drop; `outcomes` other
    files with records of transactions that it commits or rolls back. It `is_pinned` by the
    creation of a live subscription or by a prepared transaction.
    """

    live: int = 0
    live_bytes: int = 0
    refers: set[int] = field(default_factory=set)
    outcomes: set[int] = field(default_factory=set)
    is_pinned: bool = False


class Recount(NamedTuple):
    """Every file by its number, and how many messages each durable subscription has pending.

    A subscription is known by its topic and its key: one to a wildcard has several topics.
    `superseded` are files that only repeat another one that is still there.
    """

    files: dict[int, Kept]
    pending: dict[Place, int]
    superseded: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class _Message:
    """A live message: the file of its contents, and those of second adds, which do not count."""

    file_id: int
    size: int = 0
    shadows: set[int] = field(default_factory=set)

    def files(self) -> set[int]:
        return {self.file_id} | self.shadows


@dataclass(slots=True)
class _Destination:
    """Messages by id: a queue's under the key None, a topic's by subscription.

    `added` has the file of every add of a topic: its removals refer there even when the creation
    of their subscription is no longer before them, because it was created again.
    """

    added_in: set[int] = field(default_factory=set)
    begun_in: set[int] = field(default_factory=set)
    added: dict[str, int] = field(default_factory=dict)
    messages: dict[str | None, dict[str, _Message]] = field(default_factory=dict)


@dataclass(slots=True)
class _Created:
    """A durable subscription: the files with its creation, and those that it cannot do without."""

    files: set[int]
    needs: set[int]


@dataclass(slots=True)
class _Transaction:
    operations: list[tuple[int, int, AddMessage | RemoveMessage]] = field(default_factory=list)
    files: set[int] = field(default_factory=set)
    is_prepared: bool = False


def recount_directory(directory: Path) -> Recount:
    """Return what the files of *directory* keep alive. Raises JournalError or OSError.

    A torn tail is passed over, as a restart does.
    """
    counter = _Counter()
    files = in_reading_order(list_data_files(directory))
    present = {file.file_id for file in files}
    superseded = set()
    for file in files:
        counter.files[file.file_id] = Kept()
        for record, size in _read(file):
            if isinstance(record, RewrittenDataFile) and is_repeated(record, present):
                superseded.add(file.file_id)
                break
            counter.apply(record, file.file_id, size)
    return counter.finish(frozenset(superseded))


def is_repeated(record: RewrittenDataFile, present: set[int]) -> bool:
    """Tell whether what follows this record only repeats a file that is still there."""
    return record.skip_if_source_exists and record.source_data_file_id in present


def read_data_file(file: DataFile) -> Iterator[Record]:
    """Yield the records of one file. Raises JournalError."""
    for record, _ in _read(file):
        yield record


def _read(file: DataFile) -> Iterator[tuple[Record, int]]:
    """Yield the records of one file, each with its size in bytes."""
    data = file.path.read_bytes()
    scan = scan_file(data, file.path.name)
    scan.require_uncorrupted()
    for batch in scan.batches:
        yield from _records(data, batch, file.path.name)


def _records(data: bytes, batch: Batch, file_name: str) -> Iterator[tuple[Record, int]]:
    for offset, size in record_offsets(data, batch, file_name):
        yield decode_record(data, offset, file_name), size


class _Counter:
    def __init__(self) -> None:
        self.files: dict[int, Kept] = {}
        self._destinations: dict[Destination, _Destination] = {}
        self._subscriptions: dict[Place, _Created] = {}
        self._transactions: dict[TransactionId, _Transaction] = {}

    def apply(self, record: Record, file_id: int, size: int) -> None:
        """Apply one record, in its turn."""
        match record:
            case AddMessage() | RemoveMessage():
                if record.transaction is None:
                    self._operate(record, file_id, size, {file_id})
                else:
                    opened = self._transactions.setdefault(record.transaction, _Transaction())
                    opened.operations.append((file_id, size, record))
                    opened.files.add(file_id)
            case Prepare(transaction=identifier):
                if identifier in self._transactions:
                    self._transactions[identifier].files.add(file_id)
                    self._transactions[identifier].is_prepared = True
            case Commit(transaction=identifier):
                ended = self._end(identifier, file_id)
                for where, length, operation in ended.operations:
                    self._operate(operation, where, length, ended.files)
            case Rollback(transaction=identifier):
                self._end(identifier, file_id)
            case UpdateMessage(add=add):
                self._update(add, file_id, size)
            case RemoveDestination(destination=destination):
                self._remove_destination(destination, file_id)
            case Subscription():
                self._subscribe(record, file_id)

    def _end(self, identifier: TransactionId, file_id: int) -> _Transaction:
        ended = self._transactions.pop(identifier, None) or _Transaction()
        self.files[file_id].outcomes |= ended.files
        return ended

    def _of(self, destination: Destination) -> _Destination:
        found = self._destinations.get(destination)
        if found is None:
            found = self._destinations[destination] = _Destination()
            if destination.is_queue:
                found.messages[None] = {}
        return found

    def _operate(
        self, record: AddMessage | RemoveMessage, file_id: int, size: int, referring: set[int]
    ) -> None:
        """Apply a record in *file_id*; all files *referring* outlast what it consumes."""
        if isinstance(record, AddMessage):
            self._add(record, file_id, size)
            return
        taken = self._take_messages(record)
        ended = set().union(*(message.files() for message in taken))
        added = self._of(record.destination).added
        if not taken and record.message_id in added:
            ended.add(added[record.message_id])
        for one in referring:
            self.files[one].refers |= ended

    def _add(self, record: AddMessage, file_id: int, size: int) -> None:
        destination = self._of(record.destination)
        destination.added_in.add(file_id)
        if record.destination.is_topic:
            destination.added[record.message_id] = file_id
        places = destination.messages.values()
        present = [place[record.message_id] for place in places if record.message_id in place]
        if present:
            present[0].shadows.add(file_id)
            return
        message = _Message(file_id, size)
        for place in places:
            place[record.message_id] = message

    def _take_messages(self, record: RemoveMessage) -> list[_Message]:
        """Take what a record removes out of where it waits."""
        destination = self._of(record.destination)
        if record.subscription_key is None or record.destination.is_queue:
            places = list(destination.messages.values())
        else:
            places = [destination.messages.get(record.subscription_key, {})]
        taken = [place.pop(record.message_id, None) for place in places]
        return [message for message in taken if message is not None]

    def _update(self, add: AddMessage, file_id: int, size: int) -> None:
        destination = self._of(add.destination)
        places = destination.messages.values()
        present = [place[add.message_id] for place in places if add.message_id in place]
        if not present:
            self._add(add, file_id, size)
            return
        destination.added_in.add(file_id)
        self.files[file_id].refers.add(present[0].file_id)
        present[0].file_id, present[0].size = file_id, size

    def _remove_destination(self, destination: Destination, file_id: int) -> None:
        refers = self.files[file_id].refers
        gone = self._destinations.pop(destination, None)
        if gone is not None:
            refers |= gone.added_in
        for place, created in list(self._subscriptions.items()):
            if place[0] == destination:
                refers |= created.files
                del self._subscriptions[place]

    def _subscribe(self, record: Subscription, file_id: int) -> None:
        key = record.subscription_key
        before = self._subscriptions.pop((record.destination, key), None)
        places = self._of(record.destination).messages
        forgotten = places.pop(key, {})
        if record.info is None:
            if before is not None:
                self.files[file_id].refers |= before.files
            return
        files = {file_id} if before is None else before.files | {file_id}
        begun_in = self._of(record.destination).begun_in
        needs = begun_in | {file_id} if record.retroactive else {file_id}
        self._subscriptions[record.destination, key] = _Created(files, needs)
        begun_in.add(file_id)
        retained: dict[str, _Message] = {}
        if record.retroactive:
            retained = forgotten
            for place in places.values():
                retained |= place
        places[key] = retained

    def finish(self, superseded: frozenset[int]) -> Recount:
        """Count what is live after the last record."""
        live = self._hold_prepared()
        pending = {}
        for (topic, key), created in self._subscriptions.items():
            for file_id in created.needs:
                self.files[file_id].is_pinned = True
            pending[topic, key] = len(self._of(topic).messages.get(key, {}))
        for owner in self._held:
            pending[owner] = pending.get(owner, 0) + 1
        for destination in self._destinations.values():
            for place in destination.messages.values():
                live |= {id(message): message for message in place.values()}
        for message in live.values():
            self.files[message.file_id].live += 1
            self.files[message.file_id].live_bytes += message.size
        for file_id, kept in self.files.items():
            kept.refers = kept.refers & self.files.keys() - {file_id}
            kept.outcomes = kept.outcomes & self.files.keys() - {file_id}
        return Recount(self.files, pending, superseded)

    def _hold_prepared(self) -> dict[int, _Message]:
        """Return the messages that prepared transactions have added or consumed."""
        self._held: list[Place] = []
        live: dict[int, _Message] = {}
        for identifier, opened in self._transactions.items():
            if not (opened.is_prepared and isinstance(identifier, XATransactionId)):
                continue
            for file_id in opened.files:
                self.files[file_id].is_pinned = True
            added: dict[str, _Message] = {}
            for file_id, size, record in opened.operations:
                if isinstance(record, AddMessage):
                    added[record.message_id] = message = _Message(file_id, size)
                    live[id(message)] = message
                    continue
                taken = self._take_messages(record)[:1]
                if taken and record.subscription_key is not None:
                    self._held.append((record.destination, record.subscription_key))
                live |= {id(message): message for message in taken}
        return live
