"""ActiveMQ's index beside the journal: getting rid of it before anything is written.

A stale index makes ActiveMQ hang, lose the order or refuse to start when it takes the directory
back (kahadb.md section 5.1). Not even the index of a clean stop can be relied on: after XA
transactions under load ActiveMQ 5.17.2 was seen to lose the last messages of a queue over its own
restart, which the journal held. The journal alone is enough for it, but for what its own ack
compaction has put out of order (docs/compatibility.md).
"""

from pathlib import Path
from typing import Final

from lockkeeper.store.base import StoreError
from lockkeeper.store.kahadb.placing import sync_directory

INDEX_NAME: Final = "db.data"
INDEX_NAMES = (INDEX_NAME, "db.redo", "db.free")
STORE_VERSION_MIN: Final = 10
"""From OpenWire 10 on, the stored frames are laid out as today's."""

_METADATA_PAGE_AT: Final = 4096
_PAGE_BYTES: Final = 4096


class IndexFiles:
    """The index files of one directory. All methods raise StoreError when the disk fails."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def exist(self) -> bool:
        """Tell whether one of the files is there."""
        return any((self._directory / name).exists() for name in INDEX_NAMES)

    def require_readable_version(self) -> None:
        """Raise StoreError when the messages are stored in an OpenWire version of old.

        Or when something is in the place of a file that could not be deleted.
        """
        for path in (self._directory / name for name in INDEX_NAMES):
            if path.is_dir():
                raise StoreError(f"{path}: a directory, where ActiveMQ's index would be; move it")
        version = _store_version(self._head()[_METADATA_PAGE_AT:])
        if version is not None and version < STORE_VERSION_MIN:
            raise StoreError(
                f"{self._directory / INDEX_NAME}: messages are stored as OpenWire {version}; at "
                f"least {STORE_VERSION_MIN} is needed (ActiveMQ's storeOpenWireVersion)"
            )

    def delete(self) -> None:
        """Delete the files, and make sure that they stay deleted after a power cut."""
        try:
            for name in INDEX_NAMES:
                (self._directory / name).unlink(missing_ok=True)
            sync_directory(self._directory)
        except OSError as error:
            raise StoreError(f"{self._directory}: index not deleted: {error.strerror}") from error

    def _head(self) -> bytes:
        path = self._directory / INDEX_NAME
        try:
            with path.open("rb") as file:
                return file.read(_METADATA_PAGE_AT + _PAGE_BYTES)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}") from error


def _store_version(page: bytes) -> int | None:
    """Return the last int of the metadata page, or None when the page is not one.

    The page begins with its type (1 byte), a transaction id (8) and where its payload ends (8).
    """
    end = int.from_bytes(page[9:17], "big")
    if not 25 <= end <= len(page):
        return None
    version = int.from_bytes(page[end - 4 : end], "big")
    return version if 1 <= version <= 12 else None
