"""Reading message bodies back from the data files, in pages of large sequential reads."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from lockkeeper.journal.batch import CONTROL_SIZE
from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.files import data_file_name
from lockkeeper.journal.records import AddMessage, UpdateMessage
from lockkeeper.journal.walk import ADD, QuickRecord, walk_batch
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.message import Message
from lockkeeper.message.reader import MessageReader
from lockkeeper.store.base import WRITTEN, Reference, StoreError
from lockkeeper.store.kahadb.ledger import OFFSET_BITS

PAGE_BYTES = 1 << 20
GAP_BYTES_MAX = 1 << 16
_OFFSET_MASK = (1 << OFFSET_BITS) - 1
_PREFIX_BYTES = 4

Wanted = tuple[Reference, int]
"""A message to be read, and the sequence number it gets."""


class BodyReader:
    """Reads messages of one directory by their locations."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._messages = MessageReader()

    def load(self, references: Sequence[Reference], next_sequence: int) -> None:
        """Set the `message` of the written references that have none; see `Store.load`."""
        wanted = [
            (reference, next_sequence + index)
            for index, reference in enumerate(references)
            if reference.message is None and reference.state == WRITTEN
        ]
        if len(wanted) > 1:
            wanted.sort(key=_location)
        for page in _pages(wanted):
            self._load_page(page)

    def key(self, reference: Reference) -> bytes:
        """Return the message id, as the journal has it, of a message without a body."""
        offset = reference.location & _OFFSET_MASK
        data, path = self._read(reference.location, reference.size)
        try:
            row = walk_batch(data, 0, len(data), path.name)[0]
            return row[4] if row[0] == ADD else _add(data).message_id.encode()
        except BadRecordError as error:
            raise StoreError(f"{path} at offset {offset}: {error.reason}") from error

    def _load_page(self, page: list[Wanted]) -> None:
        start = page[0][0].location
        last = page[-1][0]
        data, path = self._read(start, last.location + last.size - start)
        try:
            for run in _runs(page):
                first, last = run[0][0], run[-1][0]
                rows = walk_batch(data, first.location - start, last.location + last.size - start)
                by_offset = {row[1]: row for row in rows}
                for reference, sequence in run:
                    row = by_offset[reference.location - start]
                    reference.message = self._restore(data, row, sequence)
        except (BadRecordError, MalformedMessageError, KeyError) as error:
            offset = start & _OFFSET_MASK
            raise StoreError(f"{path}: bad message after offset {offset}: {error}") from error

    def _restore(self, data: bytes, row: QuickRecord, sequence: int) -> Message:
        command, offset, size, _, _, at, length, _, _, _ = row
        if command == ADD:
            return self._messages.restore(data, at + _PREFIX_BYTES, at + length, sequence)
        frame = _add(data[offset : offset + size]).message
        return self._messages.restore(frame, _PREFIX_BYTES, len(frame), sequence)

    def _read(self, location: int, size: int) -> tuple[bytes, Path]:
        """Return *size* bytes from *location*, and the path of the file they are in."""
        path = self._directory / data_file_name(location >> OFFSET_BITS)
        offset = location & _OFFSET_MASK
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = os.pread(descriptor, size, offset)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}") from error
        if len(data) < size:
            raise StoreError(f"{path}: ends before offset {offset + size}")
        return data, path


def _location(wanted: Wanted) -> int:
    return wanted[0].location


def _pages(wanted: list[Wanted]) -> Iterator[list[Wanted]]:
    """Group *wanted*, ordered by location, into runs that one read each brings in."""
    page: list[Wanted] = []
    start = end = 0
    for item in wanted:
        location = item[0].location
        if page and (location - end > GAP_BYTES_MAX or location - start > PAGE_BYTES):
            yield page
            page = []
        if not page:
            start = location
        page.append(item)
        end = location + item[0].size
    if page:
        yield page


def _runs(page: list[Wanted]) -> Iterator[list[Wanted]]:
    """Group *page* into runs of records without others between them."""
    run: list[Wanted] = []
    end = 0
    for item in page:
        location = item[0].location
        if run and location != end and location != end + CONTROL_SIZE:
            yield run
            run = []
        run.append(item)
        end = location + item[0].size
    yield run


def _add(data: bytes) -> AddMessage:
    """Return the add within the update, the one other record that holds a message."""
    record = decode_record(data)
    if not isinstance(record, UpdateMessage):
        raise BadRecordError(f"a {type(record).__name__} where a message must be")
    return record.add
