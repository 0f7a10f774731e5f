"""A backup being made: copied, read back, opened as a broker would, and then given its manifest."""

import errno
import os
import tempfile
from pathlib import Path

from lockkeeper.journal.errors import JournalError
from lockkeeper.store.backup.manifest import MANIFEST_NAME, CopiedFile, Manifest, describe_file
from lockkeeper.store.backup.moment import HeldFile, Identity, Moment, ReadAt, hold_moment
from lockkeeper.store.backup.opening import count_pending, open_journal
from lockkeeper.store.backup.places import LocalPlace, Place
from lockkeeper.store.base import StoreError

TRIES = 20


def back_up(directory: Path, place: Place, read_at: ReadAt = os.pread) -> Manifest:
    """Copy the journal in *directory* to *place*, which is empty, while a broker may write it.

    Returns the manifest of the copy, which was read back, compared and opened. Memory is needed
    for two data files, and for what a broker knows of all messages. Raises StoreError, OSError.
    """
    if place.names():
        raise StoreError(f"{place}: not empty; give a place that is not there yet")
    try:
        at, files = _Copy(directory, place, read_at).made()
        return _checked(place, at, files)
    except JournalError as error:
        hint = f"`lockkeeper journal salvage {directory} OUT` writes a sound copy"
        raise StoreError(f"{directory}/{error}; {hint}") from error


class _Copy:
    """Files being copied. A file copied once is not copied again when another try is needed."""

    def __init__(self, directory: Path, place: Place, read_at: ReadAt) -> None:
        self._directory = directory
        self._place = place
        self._read_at = read_at
        self._copied: dict[Identity, CopiedFile] = {}

    def made(self) -> tuple[int, list[CopiedFile]]:
        """Return the moment that was copied (ms since the epoch), and its files, oldest first.

        Where a file system forgets deleted files that others have open, as NFS does, another
        moment is taken.
        """
        for left in reversed(range(TRIES)):
            moment = hold_moment(self._directory, TRIES, self._read_at)
            try:
                return moment.at, self._copy(moment)
            except OSError as error:
                if error.errno != errno.ESTALE:
                    raise
                if not left:
                    reason = f"files were deleted {TRIES} times before they were copied"
                    raise StoreError(f"{self._directory}: {reason}; try again") from error
            finally:
                moment.close()
        raise AssertionError("the last try returns or raises")

    def _copy(self, moment: Moment) -> list[CopiedFile]:
        """Copy what is not there yet, newest last, and delete what is not of this moment."""
        files = {file.identity: file for file in moment.files}
        for identity in self._copied.keys() - files.keys():
            self._place.delete(self._copied.pop(identity).name)
        last = moment.files[-1] if moment.files else None
        for identity, file in files.items():
            if identity not in self._copied or file is last:
                self._copied[identity] = self._write(moment, file)
        return [self._copied[identity] for identity in files]

    def _write(self, moment: Moment, file: HeldFile) -> CopiedFile:
        content = moment.content(file)
        self._place.write(file.name, content)
        return describe_file(file.name, content)


def _checked(place: Place, at: int, files: list[CopiedFile]) -> Manifest:
    """Read the copy back and open it; returns its manifest, now written. Raises StoreError."""
    if isinstance(place, LocalPlace):
        for file in files:
            file.require(place.read(file.name), str(place))
        recovered = open_journal(place.directory)
    else:
        with tempfile.TemporaryDirectory(prefix="lockkeeper-backup-") as folder:
            opened = LocalPlace(Path(folder))
            for file in files:
                content = place.read(file.name)
                file.require(content, str(place))
                opened.write(file.name, content)
            recovered = open_journal(opened.directory)
    manifest = Manifest(at, recovered.epoch, count_pending(recovered), files)
    place.write(MANIFEST_NAME, manifest.encoded())
    return manifest
