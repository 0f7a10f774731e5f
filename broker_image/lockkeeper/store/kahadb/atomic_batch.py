"""Records that wait to be written and must share one batch: a transaction, copies of a message."""

from collections.abc import Callable

from lockkeeper.journal.splice import (
    ADD_TAIL_SIZE,
    ADD_TAILS,
    add_frame,
    remove_lead,
    transaction_field,
)
from lockkeeper.message.ids import TransactionId
from lockkeeper.store.base import WAITING, Reference
from lockkeeper.store.kahadb.file_references import DestinationReferences
from lockkeeper.store.kahadb.frames import journal_key

IN_ATOMIC_BATCH = -1
"""The location of a message that waits as part of an atomic batch."""


class AtomicBatch:
    """The records of one transaction, or none: `parts` joined are `size` bytes.

    `adds` tells where in it the record of each added message begins and how many bytes that has;
    `refers` are the files of messages that it removes, `late` those that have no location
    yet; `book` is called with the number of the file once it is written. Unless it `is_applied`
    by itself, as when it is only prepared, its adds count later. Messages of one transaction
    are alike as a rule, so what stands around their ids is made anew only when it changes.
    """

    __slots__ = (
        "_add_sizes",
        "_added_to",
        "_after",
        "_before",
        "_field",
        "_remove_lead",
        "_remove_sizes",
        "_removed_from",
        "adds",
        "book",
        "is_applied",
        "late",
        "parts",
        "refers",
        "size",
    )

    def __init__(self, transaction: TransactionId | None) -> None:
        self.parts: list[bytes] = []
        self.size = 0
        self.adds: list[tuple[Reference, int, int, DestinationReferences]] = []
        self.late: list[Reference] = []
        self.refers: set[int] = set()
        self.is_applied = True
        self.book: Callable[[int], None] | None = None
        self._field = b"" if transaction is None else transaction_field(transaction)
        self._added_to: DestinationReferences | None = None
        self._add_sizes = (0, 0)
        self._before = self._after = b""
        self._removed_from: DestinationReferences | None = None
        self._remove_sizes = (0, 0)
        self._remove_lead = b""

    def add(self, entry: DestinationReferences, reference: Reference) -> None:
        """Append the record of a message that is added to a destination."""
        message = reference.loaded
        body, key = message.body, journal_key(message.key)
        sizes = (len(key), len(body))
        if entry is not self._added_to or sizes != self._add_sizes:
            self._added_to, self._add_sizes = entry, sizes
            self._before, self._after = add_frame(entry.field, *sizes, self._field)
        before, after = self._before, self._after
        size = len(before) + sizes[0] + len(after) + sizes[1] + ADD_TAIL_SIZE
        self.adds.append((reference, self.size, size, entry))
        self.parts += (before, key, after, body, ADD_TAILS[reference.priority])
        self.size += size

    def remove(self, entry: DestinationReferences, key: bytes, rest: bytes) -> None:
        """Append the record of a message that is consumed; *rest* are the fields after its id."""
        sizes = (len(key), len(rest))
        if entry is not self._removed_from or sizes != self._remove_sizes:
            self._removed_from, self._remove_sizes = entry, sizes
            self._remove_lead = remove_lead(entry.field, *sizes, self._field)
        lead = self._remove_lead
        self.parts += (lead, key, rest)
        self.size += len(lead) + sizes[0] + sizes[1]

    def wait(self) -> None:
        """Let the added messages wait for their write; none of them can be skipped."""
        for reference, _, _, _ in self.adds:
            reference.state = WAITING
            reference.location = IN_ATOMIC_BATCH

    def end(self, record: bytes) -> None:
        """Append the record of the transaction's outcome."""
        self.parts.append(record)
        self.size += len(record)
