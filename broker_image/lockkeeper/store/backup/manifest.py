"""The manifest of a backup: which files it has, and which moment of the journal they are.

It is written last: what has none is no whole backup. docs/reference/backup.md is its format.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

from lockkeeper.journal.files import data_file_id
from lockkeeper.store.base import StoreError

MANIFEST_NAME = "manifest.json"
FORMAT = "lockkeeper-backup/1"


class CopiedFile(NamedTuple):
    """A file of a backup: its name, its length in bytes, its SHA-256 in hexadecimal."""

    name: str
    size: int
    sha256: str

    def require(self, content: bytes, where: str) -> None:
        """Raise StoreError unless *content* is that of the file; *where* names the backup."""
        if len(content) != self.size or sha256(content).hexdigest() != self.sha256:
            reason = f"{where}/{self.name}: not the {self.size} bytes that the manifest tells of"
            raise StoreError(f"{reason}; restore another backup")


def describe_file(name: str, content: bytes) -> CopiedFile:
    """Return what the manifest tells of a file."""
    return CopiedFile(name, len(content), sha256(content).hexdigest())


@dataclass(frozen=True, slots=True)
class Manifest:
    """A backup: `at` is its moment in ms since the epoch, its mark the end of the last file.

    `epoch` is the number of the last master's term, 0 if none is told; `pending` counts the
    messages that a broker finds in it, on a topic once for each durable subscription.
    """

    at: int
    epoch: int
    pending: int
    files: list[CopiedFile]

    @property
    def size(self) -> int:
        """Size of all files together, in bytes."""
        return sum(file.size for file in self.files)

    @property
    def mark(self) -> str:
        """End of the journal, as `FILE:OFFSET`; empty for an empty journal."""
        return f"{self.files[-1].name}:{self.files[-1].size}" if self.files else ""

    def as_object(self) -> dict[str, Any]:
        """Return the manifest as JSON has it."""
        return {
            "format": FORMAT,
            "takenAt": rfc3339(self.at),
            "at": self.at,
            "mark": self.mark,
            "epoch": self.epoch,
            "pending": self.pending,
            "size": self.size,
            "files": [file._asdict() for file in self.files],
        }

    def encoded(self) -> bytes:
        """Return the bytes of the manifest's file."""
        return json.dumps(self.as_object(), indent=2).encode() + b"\n"


def read_manifest(content: bytes, where: str) -> Manifest:
    """Return the manifest in *content*; raises StoreError, which names the backup *where*."""
    try:
        told = json.loads(content)
        if told["format"] != FORMAT:
            raise StoreError(f"{where}/{MANIFEST_NAME}: format {told['format']}, not {FORMAT}")
        files = [CopiedFile(**file) for file in told["files"]]
        manifest = Manifest(told["at"], told["epoch"], told["pending"], files)
        if any(data_file_id(file.name) is None for file in files):
            raise ValueError("a file is no db-N.log")
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{where}/{MANIFEST_NAME}: no manifest of a backup: {error}") from error
    return manifest


def rfc3339(at: int) -> str:
    """Return a time, given in ms since the epoch, as RFC 3339 writes it."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
