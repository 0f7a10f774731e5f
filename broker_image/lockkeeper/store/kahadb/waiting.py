"""Operations that wait to be written: flat lists, one pass over which makes a batch.

Each item has a kind beside it. What a record does to the file references is noted in the batch it
goes to, so that it is booked for the file that it is really in. Plain typed code, so that mypyc
can compile it.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from lockkeeper.journal.splice import ADD_TAIL_SIZE, ADD_TAILS
from lockkeeper.store.base import REMOVED, WAITING, WRITTEN, Receipt, Reference
from lockkeeper.store.kahadb.atomic_batch import AtomicBatch
from lockkeeper.store.kahadb.file_references import OFFSET_BITS, DestinationReferences
from lockkeeper.store.kahadb.frames import journal_key

RECORD: Final = None
"""The kind of a record that does nothing to the file references."""


class Kind:
    """Kind of an item that is neither a plain add nor a plain removal.

    A plain add has its destination's references instead of a kind, a plain removal the number of
    the file that the message is in.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        """Return the name, for failed tests."""
        return self.name


RECEIPT = Kind("a receipt: what it waits for stands before it")
LATE_REMOVE = Kind("a LateRemove")
ATOMIC_BATCH = Kind("a AtomicBatch")
BOOKED = Kind("a Booked")


class LateRemove(NamedTuple):
    """The removal of a message that has no location yet."""

    record: bytes
    reference: Reference

    @property
    def size(self) -> int:
        """The size of the record in bytes."""
        return len(self.record)


Book = Callable[[int], None]
"""Books what a record does, given the number of the file that it is in."""


class Booked(NamedTuple):
    """A record that does something to the file references, to be entered once it is written."""

    record: bytes
    book: Book

    @property
    def size(self) -> int:
        """The size of the record in bytes."""
        return len(self.record)


class Batch:
    """A gathered batch: what to write, and what to do once it is written, or could not be.

    `count` items of the list were used up; `parts` joined are `size` bytes of records, `live`
    of them those of needed messages; `is_cut` tells that an item did not fit any more.
    `references` are the messages that were added alone, `refers` the files of messages that it
    removes, `books` what else is to be entered into the file references, `entered` the
    destinations with their first add in the file.
    """

    __slots__ = (
        "atomic_batches",
        "books",
        "count",
        "entered",
        "is_cut",
        "live",
        "parts",
        "receipts",
        "references",
        "refers",
        "size",
    )

    def __init__(self) -> None:
        self.count = 0
        self.size = 0
        self.live = 0
        self.is_cut = False
        self.parts: list[bytes] = []
        self.receipts: list[Receipt] = []
        self.references: list[Reference] = []
        self.refers: set[int] = set()
        self.books: list[Book] = []
        self.entered: list[DestinationReferences] = []
        self.atomic_batches: list[AtomicBatch] = []


def gather(
    items: list[Any], kinds: list[Any], file_id: int, start: int, room: int, first_room: int
) -> Batch:
    """Return the batch of the first items whose records fit into *room* bytes.

    The batch goes to data file *file_id*, its first record to offset *start*. The first record,
    or transaction, may take *first_room* bytes. Messages get their location and their state.
    """
    batch = Batch()
    parts, receipts, references = batch.parts, batch.receipts, batch.references
    base = (file_id << OFFSET_BITS) + start
    size = count = live = 0
    entry: DestinationReferences | None = None
    sizes, referred = (0, 0), -1
    before = after = b""
    for item, kind in zip(items, kinds, strict=True):
        if type(kind) is DestinationReferences:
            reference: Reference = item
            if reference.state != WAITING:
                count += 1
                continue
            message = reference.message
            assert message is not None
            body, key = message.body, message.key
            if not key.isascii():
                key = journal_key(key)
            if kind is not entry or sizes != (len(key), len(body)):
                # Messages are alike as a rule: what stands around their ids is made once.
                entry, sizes = kind, (len(key), len(body))
                before, after = kind.add_frame(*sizes)
            length = len(before) + sizes[0] + len(after) + sizes[1] + ADD_TAIL_SIZE
            if size + length > room and (size or length > first_room):
                batch.is_cut = True
                break
            reference.location = base + size
            reference.size = length
            if reference.holders > 0:
                reference.state = WRITTEN
                live += length
            else:
                reference.state = REMOVED
            if reference.receipt is not None:
                receipts.append(reference.receipt)
            if kind.last_file != file_id:
                kind.last_file = file_id
                batch.entered.append(kind)
            references.append(reference)
            parts += (before, key, after, body, ADD_TAILS[reference.priority])
            size += length
        elif kind is RECEIPT:
            receipts.append(item)
        else:
            is_plain = kind is RECORD or type(kind) is int
            length = len(item) if is_plain else item.size
            if size + length > room and (size or length > first_room):
                batch.is_cut = True
                break
            if is_plain:
                parts.append(item)
                if kind is not RECORD and kind != referred:
                    referred = kind
                    batch.refers.add(kind)
            elif kind is ATOMIC_BATCH:
                live += _append_atomic_batch(batch, item, base + size, file_id)
            else:
                _append(batch, item, kind)
            size += length
        count += 1
    batch.count, batch.size, batch.live = count, size, live
    return batch


def _append(batch: Batch, item: Any, kind: object) -> None:
    """Append a record that does something to the file references."""
    batch.parts.append(item.record)
    if kind is LATE_REMOVE:
        batch.refers.add(item.reference.location >> OFFSET_BITS)
    else:
        batch.books.append(item.book)


def needs_writing(items: list[Any], kinds: list[Any]) -> bool:
    """Tell whether there is more than receipts and adds that were skipped."""
    for item, kind in zip(items, kinds, strict=True):
        if type(kind) is DestinationReferences:
            if item.state == WAITING:
                return True
        elif kind is not RECEIPT:
            return True
    return False


def _append_atomic_batch(
    batch: Batch, atomic_batch: AtomicBatch, location: int, file_id: int
) -> int:
    """Append a transaction to *batch*; returns the bytes of its messages that are needed."""
    batch.parts += atomic_batch.parts
    batch.atomic_batches.append(atomic_batch)
    live = 0
    for entry, references, offset, sizes in atomic_batch.adds:
        at = location + offset
        for reference, size in zip(references, sizes, strict=True):
            reference.location = at
            reference.size = size
            at += size
            if reference.holders > 0:
                reference.state = WRITTEN
                live += size
            else:
                reference.state = REMOVED
        if atomic_batch.is_applied and entry.last_file != file_id:
            entry.last_file = file_id
            batch.entered.append(entry)
    batch.refers |= atomic_batch.refers
    batch.refers.update(late.location >> OFFSET_BITS for late in atomic_batch.late)
    if atomic_batch.book is not None:
        batch.books.append(atomic_batch.book)
    return live


def settle(batch: Batch, file_id: int) -> None:
    """Book what a batch does that was written into *file_id*.

    The receipts of its messages are let go of: the batch has them.
    """
    for reference in batch.references:
        reference.receipt = None
    for entry in batch.entered:
        entry.files.add(file_id)
    for book in batch.books:
        book(file_id)


def undo(batch: Batch) -> None:
    """Put the messages of a batch that could not be written back to where they were."""
    for reference in batch.references:
        reference.state = WAITING
        reference.location = 0
    for atomic_batch in batch.atomic_batches:
        atomic_batch.wait()
    for entry in batch.entered:
        entry.last_file = 0
