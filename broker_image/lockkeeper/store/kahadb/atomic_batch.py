"""Records that wait to be written and must share one batch: a transaction, copies of a message."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

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

IN_ATOMIC_BATCH: Final = -1
"""The location of a message that waits as part of an atomic batch."""


class AddedRun(NamedTuple):
    """Messages whose records stand one behind the other, from `offset` in the batch on."""

    entry: DestinationReferences
    references: Sequence[Reference]
    offset: int
    sizes: list[int]


class AtomicBatch:
    """The records of one transaction, or none: `parts` joined are `size` bytes.

    `adds` tells of each run of added messages to which destination they go, where in the batch
    the first of their records begins, and how many bytes each of these has;
    `refers` are the files of messages that it removes, `late` those that have no location
    yet; `book` is called with the number of the file once it is written. Unless it `is_applied`
    by itself, as when it is only prepared, its adds count later. Messages of one transaction
    are alike as a rule, so what stands around their ids is made anew only when it changes.
    """

    __slots__ = (
        "_field",
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
        self.adds: list[AddedRun] = []
        self.late: list[Reference] = []
        self.refers: set[int] = set()
        self.is_applied = True
        self.book: Callable[[int], None] | None = None
        self._field = b"" if transaction is None else transaction_field(transaction)

    def add(self, entry: DestinationReferences, references: Sequence[Reference]) -> None:
        """Append the records of messages that are added to a destination."""
        parts, sizes = self.parts, list[int]()
        key_size = body_size = around = -1
        before = after = b""
        for reference in references:
            message = reference.message
            assert message is not None
            body, key = message.body, message.key
            if not key.isascii():
                key = journal_key(key)
            if len(key) != key_size or len(body) != body_size:
                key_size, body_size = len(key), len(body)
                before, after = add_frame(entry.field, key_size, body_size, self._field)
                around = len(before) + len(after) + ADD_TAIL_SIZE
            parts += (before, key, after, body, ADD_TAILS[reference.priority])
            sizes.append(around + key_size + body_size)
        self.adds.append(AddedRun(entry, references, self.size, sizes))
        self.size += sum(sizes)

    def remove(self, entry: DestinationReferences, keys: Iterable[bytes], rest: bytes) -> None:
        """Append the records of consumed messages; *rest* are the fields after their ids."""
        parts, size = self.parts, self.size
        key_size, lead = -1, b""
        for key in keys:
            if len(key) != key_size:
                key_size = len(key)
                lead = remove_lead(entry.field, key_size, len(rest), self._field)
            parts += (lead, key, rest)
            size += len(lead) + key_size + len(rest)
        self.size = size

    def wait(self) -> None:
        """Let the added messages wait for their write; none of them can be skipped."""
        for run in self.adds:
            for reference in run.references:
                reference.state = WAITING
                reference.location = IN_ATOMIC_BATCH

    def end(self, record: bytes) -> None:
        """Append the record of the transaction's outcome."""
        self.parts.append(record)
        self.size += len(record)
