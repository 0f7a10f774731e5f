"""Sync of what the last master wrote and may not have synced, before it is believed.

A process that is killed leaves writes that the kernel still has in memory. Its successor reads
them like all others, delivers them, and takes a repeated send for one that is stored; a power cut
later they would be gone. The same goes for a sync that failed: the kernel shows what it could not
write as if nothing had happened, and does not try again unless it is written again.
"""

import os
from pathlib import Path
from typing import NamedTuple

from lockkeeper.store.base import StoreError


class LastBatch(NamedTuple):
    """The last batch of a journal: only one sync is ever outstanding, so no other is unsure.

    `data` are its bytes, control record and all, from `offset` of the file on.
    """

    path: Path
    offset: int
    data: bytes


def make_durable(batch: LastBatch) -> None:
    """Write *batch* once more where it stands, and sync its file. Raises StoreError."""
    try:
        descriptor = os.open(batch.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            written = 0
            while written < len(batch.data):
                rest = memoryview(batch.data)[written:]
                written += os.pwrite(descriptor, rest, batch.offset + written)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(f"{batch.path}: {error.strerror}; it cannot be made durable") from error
