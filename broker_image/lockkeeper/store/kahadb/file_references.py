"""Bookkeeping of the journal's files: what each still holds, and what its records refer to."""

from collections.abc import Iterable
from typing import Final

from lockkeeper.journal.splice import add_frame, destination_field, remove_lead
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import XATransactionId
from lockkeeper.store.base import Reference, Subscription

OFFSET_BITS: Final = 32
OFFSET_MASK: Final = (1 << OFFSET_BITS) - 1
"""A location is `file id << OFFSET_BITS | offset of the record's header`."""

Place = tuple[Destination, str]
"""A topic, and the key of a durable subscription: one to a wildcard has several topics."""


class FileEntry:
    """One data file: bytes of live messages in it, the files its records undo, bytes on disk.

    `refers` holds the files of what records of this file acknowledge, replace or drop,
    `outcomes` those with records of transactions that it commits or rolls back: while one of
    those exists, this file must too (kahadb.md section 6). `awaiting` are those of
    them of which a copy is being made without what was ended; `besides` are the bytes that the
    last copy of this file had besides live messages, `needed` what it was needed for then.
    """

    __slots__ = ("awaiting", "besides", "live", "needed", "outcomes", "refers", "size")

    def __init__(self, size: int) -> None:
        self.live = 0
        self.refers: set[int] = set()
        self.outcomes: set[int] = set()
        self.awaiting: set[int] = set()
        self.size = size
        self.besides = 0
        self.needed: set[int] = set()

    def needs(self) -> set[int]:
        """Return the files that must be gone, or go with it, for this one to go."""
        return self.refers | self.outcomes | self.awaiting

    def in_vain(self) -> int:
        """Return how many bytes a copy would not have, as far as is known."""
        besides = self.besides if self.needs() == self.needed else 0
        return self.size - self.live - besides

    def leave_as_is(self, besides: int) -> None:
        """Note how many bytes are needed besides live messages, until its needs change."""
        self.besides = besides
        self.needed = self.needs()


class DestinationReferences:
    """One destination: its encoded field, the files with adds of it, its subscriptions.

    `creations` are the files with records that create subscriptions, also former ones.
    """

    __slots__ = (
        "_add_frame",
        "_add_sizes",
        "_remove_lead",
        "_remove_sizes",
        "creations",
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
        self.creations: set[int] = set()
        self.last_file = 0
        self.subscriptions: dict[str, SubscriptionReferences] = {}
        self._add_sizes = self._remove_sizes = (0, 0)
        self._add_frame = (b"", b"")
        self._remove_lead = b""

    def add_frame(self, id_size: int, body_size: int) -> tuple[bytes, bytes]:
        """Return what stands around the id in an add record; kept, as the next one is like it."""
        sizes = (id_size, body_size)
        if sizes != self._add_sizes:
            self._add_sizes, self._add_frame = sizes, add_frame(self.field, *sizes)
        return self._add_frame

    def remove_lead(self, id_size: int, rest_size: int) -> bytes:
        """Return what a remove record begins with; kept, as the next one is like it as a rule."""
        sizes = (id_size, rest_size)
        if sizes != self._remove_sizes:
            self._remove_sizes, self._remove_lead = sizes, remove_lead(self.field, *sizes)
        return self._remove_lead


class SubscriptionReferences:
    """One durable subscription: its create records' files (the last is what keeps it alive).

    `pending` counts the messages it has not consumed, `record` creates it anew, without any.
    `earlier` are files that a retroactive one needs besides: subscriptions that were created
    there kept the messages that it found (kahadb.md section 6).
    """

    __slots__ = (
        "create_files",
        "earlier",
        "is_retroactive",
        "last_create",
        "pending",
        "record",
        "subscription",
    )

    def __init__(self, subscription: Subscription, record: bytes) -> None:
        self.subscription = subscription
        self.record = record
        self.create_files: set[int] = set()
        self.earlier: set[int] = set()
        self.is_retroactive = False
        self.last_create = 0
        self.pending = 0

    def created_in(self, file_id: int) -> None:
        """Note that *file_id* has the record that creates it, without what was there before."""
        self.create_files.add(file_id)
        self.last_create = file_id
        self.is_retroactive = False
        self.earlier = set()

    def needs(self, file_id: int) -> bool:
        """Tell whether without a file it would not be there, or not wait for what it does."""
        return file_id == self.last_create or file_id in self.earlier


class PreparedReferences:
    """One prepared transaction: the files of its records, and what it consumed of topics.

    What has ended meanwhile together with its subscription is among that.
    """

    __slots__ = ("consumed", "files")

    def __init__(self) -> None:
        self.files: set[int] = set()
        self.consumed: list[tuple[DestinationReferences, Reference]] = []


class FileReferences:
    """The bookkeeping of one directory.

    `prepared` are the transactions without an outcome; `shadows` holds the
    files of second adds of a message, which count only once the first is gone, by location.
    `superseded` are files that only repeat another one: they have to go before it does.
    `copied` is the file of which a copy is being made, 0 for none; `unsure` are the files with
    records since then that end what records in sets of files began, it among them.
    """

    def __init__(self) -> None:
        self.files: dict[int, FileEntry] = {}
        self.destinations: dict[Destination, DestinationReferences] = {}
        self.subscriptions: dict[Place, SubscriptionReferences] = {}
        self.prepared: dict[XATransactionId, PreparedReferences] = {}
        self.shadows: dict[int, set[int]] = {}
        self.superseded: set[int] = set()
        self.copied = 0
        self.unsure: list[tuple[int, list[set[int]]]] = []
        self._last: Destination | None = None
        self._last_entry: DestinationReferences

    def destination(self, destination: Destination) -> DestinationReferences:
        """Return the entry of *destination*, made at its first use."""
        if destination is self._last:
            return self._last_entry
        entry = self.destinations.get(destination)
        if entry is None:
            entry = self.destinations[destination] = DestinationReferences(destination)
        self._last, self._last_entry = destination, entry
        return entry

    def subscribe(self, entry: SubscriptionReferences) -> set[int]:
        """Enter a subscription in place of one of its topic with its key; returns its files."""
        destination, key = entry.subscription.destination, entry.subscription.key
        is_there = (destination, key) in self.subscriptions
        replaced = self.unsubscribe(destination, key)
        if is_there:
            # The same set, empty or not: a create record of the other one may wait to be written.
            entry.create_files = replaced
        self.subscriptions[destination, key] = entry
        self.destination(destination).subscriptions[key] = entry
        return replaced

    def unsubscribe(self, destination: Destination, key: str) -> set[int]:
        """Forget a topic's subscription; returns the files of its create records."""
        entry = self.subscriptions.pop((destination, key), None)
        if entry is None:
            return set()
        del self.destination(destination).subscriptions[key]
        return entry.create_files

    def remove_destination(self, destination: Destination) -> list[set[int]]:
        """Forget a destination; returns the sets of files whose records its removal undoes.

        They are the files' own: what still waits to be written enters its files later.
        """
        self._last = None
        entry = self.destinations.pop(destination, None)
        if entry is None:
            return []
        for key in entry.subscriptions:
            del self.subscriptions[destination, key]
        return [entry.files, *(one.create_files for one in entry.subscriptions.values())]

    def forget_files(self, file_ids: set[int]) -> None:
        """Drop deleted files from all bookkeeping."""
        for file_id in file_ids:
            del self.files[file_id]
        for file_references in self.files.values():
            file_references.refers -= file_ids
            file_references.outcomes -= file_ids
            file_references.awaiting -= file_ids
        for destination in self.destinations.values():
            destination.files -= file_ids
            destination.creations -= file_ids
        for subscription in self.subscriptions.values():
            subscription.create_files -= file_ids

    def refer(self, file_id: int, several: Iterable[set[int]]) -> None:
        """Note that a record in *file_id* ends what records in these files began."""
        several = list(several)
        began = self.files.keys() & set().union(*several)
        if self.copied in began:
            # Whether the copy has something of it is known when it is there.
            began.discard(self.copied)
            self.files[file_id].awaiting.add(self.copied)
            self.unsure.append((file_id, several))
        self.files[file_id].refers |= began

    def end(self, file_id: int, files: set[int]) -> None:
        """Note that the outcome of a transaction with records in *files* is in *file_id*."""
        self.files[file_id].outcomes |= self.files.keys() & files

    def consume(self, files: set[int], consumed: Iterable[int]) -> None:
        """Note that a transaction with records in *files* ended the messages at *consumed*."""
        ended = [self.adds_of(location) for location in consumed]
        for file_id in files & self.files.keys():
            self.refer(file_id, ended)

    def adds_of(self, location: int) -> set[int]:
        """Return the files with adds of the message at *location*."""
        return self.shadows.get(location, set()) | {location >> OFFSET_BITS}

    def pinned(self) -> set[int]:
        """Return the files that live subscriptions and prepared transactions need."""
        files = {entry.last_create for entry in self.subscriptions.values()}
        return files.union(
            *(entry.earlier for entry in self.subscriptions.values() if entry.earlier),
            *(entry.files for entry in self.prepared.values()),
        )
