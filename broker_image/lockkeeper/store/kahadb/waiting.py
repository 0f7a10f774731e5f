"""What waits to be written: flat lists, one pass over which makes a batch.

Each item has a kind beside it. Plain typed code, so that mypyc can compile it.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from lockkeeper.journal.splice import ADD_TAIL_SIZE, ADD_TAILS, add_frame
from lockkeeper.store.base import REMOVED, WAITING, WRITTEN, Receipt, Reference
from lockkeeper.store.kahadb.frames import journal_key
from lockkeeper.store.kahadb.ledger import OFFSET_BITS, DestinationLedger
from lockkeeper.store.kahadb.unit import Unit

RECORD: Final = None


class Kind:
    """What an item is when it is not a plain add (then its kind is the destination's ledger)."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        """Return the name, for failed tests."""
        return self.name


RECEIPT = Kind("a receipt: what it waits for stands before it")
LATE_REMOVE = Kind("a LateRemove")
UNIT = Kind("a Unit")
NOTE = Kind("a function to be called with the id of the file that the batch goes to")


class LateRemove(NamedTuple):
    """The removal of a message that has no location yet."""

    record: bytes
    reference: Reference

    @property
    def size(self) -> int:
        """The size of the record in bytes."""
        return len(self.record)


Note = Callable[[int], None]


class Batch:
    """A gathered batch: what to write, and what to do once it is written, or could not be.

    `count` items of the list were used up; `parts` joined are `size` bytes of records, `live`
    of them adds that something still needs; `is_cut` tells that an item did not fit any more.
    """

    __slots__ = (
        "count",
        "is_cut",
        "live",
        "parts",
        "receipts",
        "references",
        "refers",
        "size",
        "units",
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
        self.units: list[Unit] = []


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
    entry: DestinationLedger | None = None
    sizes = (0, 0)
    before = after = b""
    for item, kind in zip(items, kinds, strict=True):
        if type(kind) is DestinationLedger:
            reference: Reference = item
            if reference.state != WAITING:
                count += 1
                continue
            message = reference.message
            assert message is not None
            body = message.body
            key = message.key
            if not key.isascii():
                key = journal_key(key)
            if kind is not entry or sizes != (len(key), len(body)):
                # Messages are alike as a rule: what stands around their ids is made once.
                entry, sizes = kind, (len(key), len(body))
                before, after = add_frame(kind.field, *sizes)
            length = len(before) + sizes[0] + len(after) + sizes[1] + ADD_TAIL_SIZE
            if size + length > room and (size or length > first_room):
                batch.is_cut = True
                break
            reference.location = base + size
            reference.size = length
            if reference.holders > 0:
                reference.state = WRITTEN
                live += 1
            else:
                reference.state = REMOVED
            if reference.receipt is not None:
                receipts.append(reference.receipt)
            if kind.last_file != file_id:
                kind.last_file = file_id
                kind.files.add(file_id)
            references.append(reference)
            parts += (before, key, after, body, ADD_TAILS[reference.priority])
            size += length
        elif kind is RECEIPT:
            receipts.append(item)
        elif kind is NOTE:
            item(file_id)
        else:
            length = len(item) if kind is RECORD else item.size
            if size + length > room and (size or length > first_room):
                batch.is_cut = True
                break
            if kind is RECORD:
                parts.append(item)
            elif kind is LATE_REMOVE:
                parts.append(item.record)
                batch.refers.add(item.reference.location >> OFFSET_BITS)
            else:
                live += _append_unit(batch, item, base + size, file_id)
            size += length
        count += 1
    batch.count, batch.size, batch.live = count, size, live
    return batch


def needs_writing(items: list[Any], kinds: list[Any]) -> bool:
    """Tell whether there is more than receipts and adds that were skipped."""
    for item, kind in zip(items, kinds, strict=True):
        if type(kind) is DestinationLedger:
            if item.state == WAITING:
                return True
        elif kind is not RECEIPT:
            return True
    return False


def _append_unit(batch: Batch, unit: Unit, location: int, file_id: int) -> int:
    """Append a transaction to *batch*; returns how many of its messages anything needs."""
    batch.parts += unit.parts
    batch.units.append(unit)
    live = 0
    for reference, offset, size, destination in unit.adds:
        reference.location = location + offset
        reference.size = size
        if reference.holders > 0:
            reference.state = WRITTEN
            live += 1
        else:
            reference.state = REMOVED
        if destination.last_file != file_id:
            destination.last_file = file_id
            destination.files.add(file_id)
        batch.references.append(reference)
    batch.refers.update(late.location >> OFFSET_BITS for late in unit.late)
    return live


def settle_states(batch: Batch) -> None:
    """Let go of the receipts of messages whose batch was written; the batch has them."""
    for reference in batch.references:
        reference.receipt = None


def undo(batch: Batch) -> None:
    """Put the messages of a batch that could not be written back to where they were."""
    for reference in batch.references:
        reference.state = WAITING
        reference.location = 0
    for unit in batch.units:
        unit.wait()
