"""Bookkeeping of the journal's files: what each still holds, and what its records refer to."""

from lockkeeper.journal.splice import destination_field, remove_lead
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import XATransactionId
from lockkeeper.store.base import Subscription

OFFSET_BITS = 32
"""A location is `file id << OFFSET_BITS | offset of the record's header`."""


class FileLedger:
    """One data file: live messages in it, the other files its records undo, bytes on disk.

    `refers` holds the files of the messages that records of this file acknowledge, commit, roll
    back or drop: while one of those exists, this file must too (kahadb.md section 6).
    """

    __slots__ = ("live", "refers", "size")

    def __init__(self, size: int) -> None:
        self.live = 0
        self.refers: set[int] = set()
        self.size = size


class DestinationLedger:
    """One destination: its encoded field, the files with adds of it, its subscriptions."""

    __slots__ = (
        "_remove_lead",
        "_remove_sizes",
        "destination",
        "field",
        "files",
        "last_file",
        "subscriptions",
    )

    def __init__(self, destination: Destination) -> None:
        self.destination = destination
        self.field = destination_field(destination)
        self.files: set[int] = set()
        self.last_file = 0
        self.subscriptions: list[SubscriptionLedger] = []
        self._remove_sizes = (0, 0)
        self._remove_lead = b""

    def remove_lead(self, id_size: int, rest_size: int) -> bytes:
        """Return what a remove record begins with; kept, as the next one is like it as a rule."""
        sizes = (id_size, rest_size)
        if sizes != self._remove_sizes:
            self._remove_sizes, self._remove_lead = sizes, remove_lead(self.field, *sizes)
        return self._remove_lead


class SubscriptionLedger:
    """One durable subscription: its create records' files (the last is what keeps it alive).

    `pending` counts the messages it has not consumed.
    """

    __slots__ = ("create_files", "last_create", "pending", "record", "subscription")

    def __init__(self, subscription: Subscription, record: bytes) -> None:
        self.subscription = subscription
        self.record = record
        self.create_files: set[int] = set()
        self.last_create = 0
        self.pending = 0

    def created_in(self, file_id: int) -> None:
        """Note that the create record was written into *file_id*."""
        self.create_files.add(file_id)
        self.last_create = file_id


class Ledger:
    """The bookkeeping of one directory.

    `prepared` holds the files with the records of each prepared transaction; `shadows` the
    files of second adds of a message, which count only once the first is gone, by location.
    """

    def __init__(self) -> None:
        self.files: dict[int, FileLedger] = {}
        self.destinations: dict[Destination, DestinationLedger] = {}
        self.subscriptions: dict[str, SubscriptionLedger] = {}
        self.prepared: dict[XATransactionId, set[int]] = {}
        self.shadows: dict[int, set[int]] = {}
        self._last: Destination | None = None
        self._last_entry: DestinationLedger

    def destination(self, destination: Destination) -> DestinationLedger:
        """Return the entry of *destination*, made at its first use."""
        if destination is self._last:
            return self._last_entry
        entry = self.destinations.get(destination)
        if entry is None:
            entry = self.destinations[destination] = DestinationLedger(destination)
        self._last, self._last_entry = destination, entry
        return entry

    def subscribe(self, entry: SubscriptionLedger) -> set[int]:
        """Enter a subscription in place of one with its key; returns the latter's files."""
        subscription = entry.subscription
        replaced = self.unsubscribe(subscription.key)
        entry.create_files |= replaced
        self.subscriptions[subscription.key] = entry
        self.destination(subscription.destination).subscriptions.append(entry)
        return replaced

    def unsubscribe(self, key: str) -> set[int]:
        """Forget a subscription; returns the files of its create records."""
        entry = self.subscriptions.pop(key, None)
        if entry is None:
            return set()
        self.destination(entry.subscription.destination).subscriptions.remove(entry)
        return entry.create_files

    def remove_destination(self, destination: Destination) -> list[set[int]]:
        """Forget a destination; returns the sets of files whose records its removal undoes.

        They are the ledger's own: adds that still wait to be written enter their files later.
        """
        self._last = None
        entry = self.destinations.pop(destination, None)
        if entry is None:
            return []
        for subscription in entry.subscriptions:
            del self.subscriptions[subscription.subscription.key]
        return [entry.files, *(subscription.create_files for subscription in entry.subscriptions)]

    def forget_files(self, file_ids: set[int]) -> None:
        """Drop deleted files from all bookkeeping."""
        for file_id in file_ids:
            del self.files[file_id]
        for ledger in self.files.values():
            ledger.refers -= file_ids
        for destination in self.destinations.values():
            destination.files -= file_ids
        for subscription in self.subscriptions.values():
            subscription.create_files -= file_ids

    def pinned(self) -> set[int]:
        """Return the files that live subscriptions and prepared transactions need."""
        files = {entry.last_create for entry in self.subscriptions.values()}
        return files.union(*self.prepared.values())
