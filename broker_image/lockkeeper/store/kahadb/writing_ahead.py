"""Large batches, written ahead in pieces: the event loop has other turns between them.

Where the control record belongs stands an end of the journal, until all that it speaks of is
durable. Then it takes that place, and the batch is there; whoever reads the file before, after a
crash or beside its writer, finds the end. The bytes are those of a batch written at once.
"""

import os
from collections.abc import Iterator
from typing import Final
from zlib import adler32

from lockkeeper.journal.batch import CONTROL, CONTROL_SIZE, CONTROL_START, EOF_RECORD, EOF_SIZE
from lockkeeper.store.base import WAITING
from lockkeeper.store.kahadb.waiting import Batch

PIECE_BYTES_MAX: Final = 2 << 20


class WritingAhead:
    """Writer of the records of one *batch* to *offset* of a file.

    `is_whole` tells that all of them are there. Each piece is to be synced before the next one.
    """

    def __init__(self, descriptor: int, offset: int, batch: Batch, piece_bytes: int) -> None:
        """*piece_bytes* are written at a time, or PIECE_BYTES_MAX."""
        self._references = batch.references
        self._descriptor = descriptor
        self._offset = self._at = offset
        self._size = size = batch.size
        self._checksum = 1
        self._pieces = _pieces(batch.parts, min(piece_bytes, PIECE_BYTES_MAX))
        # What looks like a batch in a message is none as long as this stands before it: see `scan`.
        self._piece = EOF_RECORD + CONTROL.pack(CONTROL_START, size, 0)[EOF_SIZE:]

    @property
    def is_needed(self) -> bool:
        """Tell whether no message of it has ended before it was written."""
        return all(each.state == WAITING for each in self._references)

    @property
    def is_whole(self) -> bool:
        """Tell whether nothing but the control record is missing."""
        return self._at == self._offset + CONTROL_SIZE + self._size

    def go_on(self) -> None:
        """Write one more piece; one that could not be written is the next one again.

        Raises OSError.
        """
        self._piece = self._piece or next(self._pieces)
        write_all(self._descriptor, [self._piece], self._at)
        if self._at > self._offset:
            self._checksum = adler32(self._piece, self._checksum)
        self._at += len(self._piece)
        self._piece = b""

    def end(self) -> None:
        """Make a batch of what is whole. Raises OSError."""
        write_all(self._descriptor, [EOF_RECORD], self._at)
        control = CONTROL.pack(CONTROL_START, self._size, self._checksum)
        write_all(self._descriptor, [control], self._offset)


def _pieces(parts: list[bytes], most: int) -> Iterator[bytes]:
    """Yield *parts* as pieces of *most* bytes, the last one of what is left."""
    begun: list[memoryview] = []
    size = 0
    for part in parts:
        rest = memoryview(part)
        while rest:
            taken = rest[: most - size]
            rest = rest[len(taken) :]
            begun.append(taken)
            size += len(taken)
            if size == most:
                yield b"".join(begun)
                begun, size = [], 0
    if begun:
        yield b"".join(begun)


def write_all(descriptor: int, buffers: list[bytes], offset: int) -> None:
    """Write *buffers* one behind the other at *offset*. Raises OSError."""
    written = os.pwritev(descriptor, buffers, offset)
    if written == sum(map(len, buffers)):
        return
    rest = memoryview(b"".join(buffers))
    while written < len(rest):
        written += os.pwrite(descriptor, rest[written:], offset + written)
