"""Reading message bodies back from the data files, in pages of large sequential reads."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from lockkeeper.journal.batch import CONTROL_SIZE
from lockkeeper.journal.decode import decode_destination, decode_record
from lockkeeper.journal.encode import encode_destination
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.files import data_file_name
from lockkeeper.journal.records import AddMessage, UpdateMessage
from lockkeeper.journal.walk import ADD, QuickRecord, walk_batch
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.message import Message
from lockkeeper.message.reader import MessageReader
from lockkeeper.message.rewrite import unreadable
from lockkeeper.store.base import WRITTEN, GoneError, Reference, StoreError
from lockkeeper.store.kahadb.extracts import delete_extract
from lockkeeper.store.kahadb.file_references import OFFSET_BITS, OFFSET_MASK
from lockkeeper.store.kahadb.frames import message_id_of
from lockkeeper.store.kahadb.rewriting import Moves
from lockkeeper.store.segment import Entry

PAGE_BYTES: Final = 1 << 20
GAP_BYTES_MAX: Final = 1 << 16
FRAME_PREFIX_BYTES: Final = 4

Wanted = tuple[int, Any, int]
"""A message to be read, after where it is now, and a number that goes with it.

It is a Reference, and the number is the sequence number that it gets; or it is the Entry of a
stream, which has a size, too, and the number is its turn.
"""


class BodyReader:
    """Reads messages of one directory by their locations.

    `moved` has the data files in which messages are elsewhere by now: a location stays what it
    was when the message got it.
    """

    def __init__(self, directory: Path) -> None:
        self.moved: dict[int, Moves] = {}
        self._directory = directory
        self._messages = MessageReader()

    def load(self, references: Sequence[Reference], next_sequence: int) -> None:
        """Set the `message` of the written references that have none; see `Store.load`."""
        wanted = [
            (self._place(reference.location), reference, next_sequence + index)
            for index, reference in enumerate(references)
            if reference.message is None and reference.state == WRITTEN
        ]
        if len(wanted) > 1:
            wanted.sort(key=_place)
        for page in _pages(wanted):
            self._load_page(page)

    def key(self, reference: Reference) -> bytes:
        """Return the message id, as the journal has it, of a message without a body."""
        place = self._place(reference.location)
        offset = place & OFFSET_MASK
        data, path = self._read(place, reference.size)
        try:
            row = walk_batch(data, 0, len(data), path.name)[0]
            return row[4] if row[0] == ADD else _add(data).message_id.encode()
        except BadRecordError as error:
            raise _damaged(path, f"bad record at offset {offset}: {error.reason}") from error

    def frames(self, entries: Sequence[Entry]) -> list[bytes]:
        """Return the messages of *entries* as bytes; see `StreamStore.read_frames`."""
        found = [b""] * len(entries)
        wanted: list[Wanted] = []
        for turn, entry in enumerate(entries):
            try:
                wanted.append((self._place(entry.location), entry, turn))
            except GoneError:
                continue
        wanted.sort(key=_place)
        for page in _pages(wanted):
            start = page[0][0]
            data, path = self._read(start, _end(page[-1]) - start)
            try:
                for run in _runs(page):
                    rows = walk_batch(data, run[0][0] - start, _end(run[-1]) - start)
                    by_offset = {row[1]: row for row in rows}
                    for place, _, turn in run:
                        found[turn] = _frame(data, by_offset[place - start])
            except (BadRecordError, KeyError) as error:
                offset = start & OFFSET_MASK
                raise _damaged(path, f"bad message after offset {offset}: {error}") from error
        return found

    def read_at(self, location: int, size: int) -> tuple[bytes, Path]:
        """Return *size* bytes of what got *location*, and the path of the file they are in.

        Raises StoreError.
        """
        return self._read(self._place(location), size)

    def _place(self, location: int) -> int:
        """Return where what was at *location* is now. Raises GoneError."""
        moves = self.moved.get(location >> OFFSET_BITS) if self.moved else None
        if moves is None:
            return location
        offset = moves.find(location & OFFSET_MASK)
        if offset < 0:
            name = data_file_name(location >> OFFSET_BITS)
            raise GoneError(f"{name}: what was at offset {location & OFFSET_MASK} is gone")
        return location & ~OFFSET_MASK | offset

    def _load_page(self, page: list[Wanted]) -> None:
        start = page[0][0]
        data, path = self._read(start, _end(page[-1]) - start)
        try:
            for run in _runs(page):
                rows = walk_batch(data, run[0][0] - start, _end(run[-1]) - start)
                by_offset = {row[1]: row for row in rows}
                for place, reference, sequence in run:
                    row = by_offset[place - start]
                    reference.message = self._restore(data, row, sequence)
        except (BadRecordError, KeyError) as error:
            offset = start & OFFSET_MASK
            raise _damaged(path, f"bad message after offset {offset}: {error}") from error

    def _restore(self, data: bytes, row: QuickRecord, sequence: int) -> Message:
        command, offset, size, destination, key, at, length, _, _, _ = row
        if command == ADD:
            frame, start, end = data, at + FRAME_PREFIX_BYTES, at + length
        else:
            add = _add(data[offset : offset + size])
            frame, start, end = add.message, FRAME_PREFIX_BYTES, len(add.message)
            destination, key = encode_destination(add.destination), add.message_id.encode()
        try:
            return self._messages.restore(frame, start, end, sequence)
        except MalformedMessageError as error:
            # The record is sound: somebody wrote a message that nobody can read.
            message_id = replace(message_id_of(key), broker_sequence=sequence)
            place = decode_destination(destination)
            return unreadable(frame[start:end], place, message_id, str(error))

    def _read(self, location: int, size: int) -> tuple[bytes, Path]:
        """Return *size* bytes from *location*, and the path of the file they are in."""
        path = self._directory / data_file_name(location >> OFFSET_BITS)
        offset = location & OFFSET_MASK
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = os.pread(descriptor, size, offset)
            finally:
                os.close(descriptor)
        except FileNotFoundError as gone:
            raise GoneError(f"cannot read {path}: {gone.strerror}") from gone
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}") from error
        if len(data) < size:
            raise StoreError(f"{path}: ends before offset {offset + size}")
        return data, path


def _damaged(path: Path, what: str) -> StoreError:
    """Return the error for a bad record; the next start reads its file, not only the extract."""
    with suppress(OSError):
        delete_extract(path)
    return StoreError(f"{path}: {what}")


def _place(wanted: Wanted) -> int:
    return wanted[0]


def _end(wanted: Wanted) -> int:
    size: int = wanted[1].size
    return wanted[0] + size


def _pages(wanted: list[Wanted]) -> Iterator[list[Wanted]]:
    """Group *wanted*, ordered by location, into runs that one read each brings in."""
    page: list[Wanted] = []
    start = end = 0
    for item in wanted:
        location = item[0]
        if page and (location - end > GAP_BYTES_MAX or location - start > PAGE_BYTES):
            yield page
            page = []
        if not page:
            start = location
        page.append(item)
        end = _end(item)
    if page:
        yield page


def _runs(page: list[Wanted]) -> Iterator[list[Wanted]]:
    """Group *page* into runs of records without others between them."""
    run: list[Wanted] = []
    end = 0
    for item in page:
        location = item[0]
        if run and location != end and location != end + CONTROL_SIZE:
            yield run
            run = []
        run.append(item)
        end = _end(item)
    yield run


def _frame(data: bytes, row: QuickRecord) -> bytes:
    """Return the message that a record holds, without its size."""
    command, offset, size, _, _, at, length, _, _, _ = row
    if command == ADD:
        return data[at + FRAME_PREFIX_BYTES : at + length]
    return _add(data[offset : offset + size]).message[FRAME_PREFIX_BYTES:]


def _add(data: bytes) -> AddMessage:
    """Return the add within the update, the one other record that holds a message."""
    record = decode_record(data)
    if not isinstance(record, UpdateMessage):
        raise BadRecordError(f"a {type(record).__name__} where a message must be")
    return record.add
