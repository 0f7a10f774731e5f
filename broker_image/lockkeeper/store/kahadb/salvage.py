"""Going on without what is damaged: in place when told to accept the loss, or as a sound copy.

The damaged bytes are set aside first. Then each damaged file is replaced, in one step, by one
with its sound batches only; a crash leaves the old one or the new one. Whoever does it to the
same file makes the same bytes: a superseded master that wakes here changes nothing.
"""

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from lockkeeper.journal.damage import Inspection, sound_pieces
from lockkeeper.store.base import StoreError
from lockkeeper.store.kahadb.index import IndexFiles
from lockkeeper.store.kahadb.losses import DAMAGED_NAME, Loss, inspect_directory, losses_of
from lockkeeper.store.kahadb.placing import make_file, sync_directory, unique_path

MENDED_PREFIX, MENDED_SUFFIX = "mended-", ".part"
REPORT_NAME = "salvage"


def accept_loss(directory: Path, check: Callable[[], None]) -> list[Loss]:
    """Take the damaged bytes out of a directory's journal; returns what that costs.

    *check* raises LockLostError when this process may not change the directory. Raises
    StoreError.
    """
    try:
        losses = losses_of(directory)
        if not losses:
            return []
        check()
        aside = directory / DAMAGED_NAME
        aside.mkdir(exist_ok=True)
        sync_directory(directory)
        report = unique_path(aside, "report-", ".json")
        _write(report, [json.dumps([asdict(loss) for loss in losses], indent=2).encode()])
        for file, data, inspection in inspect_directory(directory):
            if inspection.damages:
                _set_aside(data, inspection, aside)
                sync_directory(aside)
                check()
                IndexFiles(directory).delete()
                _replace(file.path, sound_pieces(data, inspection), check)
    except OSError as error:
        raise StoreError(f"{error.filename or directory}: {error.strerror}") from error
    return losses


def salvage(directory: Path, target: Path) -> list[Loss]:
    """Write a sound copy of a directory's journal into *target*, which is empty or not there.

    Beside it: the damaged bytes in `damaged`, and the report as `salvage.json` and `salvage.txt`.
    Nothing in *directory* changes. Raises StoreError.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise StoreError(f"{target}: not empty; give a directory that is not there yet")
        losses = losses_of(directory)
        for file, data, inspection in inspect_directory(directory):
            _write(target / file.path.name, sound_pieces(data, inspection))
            if inspection.damages:
                (target / DAMAGED_NAME).mkdir(exist_ok=True)
                _set_aside(data, inspection, target / DAMAGED_NAME)
        text = json.dumps([asdict(loss) for loss in losses], indent=2)
        _write(target / f"{REPORT_NAME}.json", [text.encode()])
        lines = [f"{loss}\n".encode() for loss in losses] or [b"nothing is damaged\n"]
        _write(target / f"{REPORT_NAME}.txt", lines)
        sync_directory(target)
    except OSError as error:
        raise StoreError(f"{error.filename or target}: {error.strerror}") from error
    return losses


def _set_aside(data: bytes, inspection: Inspection, aside: Path) -> None:
    """Copy the damaged bytes of a file into the directory *aside*, a file each."""
    for damage in inspection.damages:
        name = f"{damage.file_name}.{damage.offset}-{damage.length}"
        path, content = aside / name, data[damage.offset : damage.end]
        if path.exists() and path.read_bytes() != content:
            path = unique_path(aside, f"{name}.", "")
        if not path.exists():
            _write(path, [content])


def _replace(path: Path, pieces: Iterable[bytes], check: Callable[[], None]) -> None:
    """Put a file with the bytes of *pieces* in the place of the one at *path*, durably."""
    mended = unique_path(path.parent, MENDED_PREFIX, MENDED_SUFFIX)
    try:
        _write(mended, pieces)
        check()
        mended.replace(path)
    finally:
        mended.unlink(missing_ok=True)
    sync_directory(path.parent)


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a new file, durably."""
    descriptor = make_file(path)
    try:
        for piece in pieces:
            view = memoryview(piece)
            while view:
                view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
