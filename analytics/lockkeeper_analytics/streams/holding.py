"""Files that a stream has yet to read, held open: what a broker removes can still be read.

An open file keeps its bytes after its removal, also when a compacted one takes its place, and
neither writes nor locks anything. The bytes take room on the disk until then, so there are limits.
Works where the file system is one of this machine's, and for readers on this machine. A thread
looks for files that come and go between two triggers.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lockkeeper.journal.compacted import compaction_in
from lockkeeper_analytics.errors import NoJournalError
from lockkeeper_analytics.reading.compacted import head_of
from lockkeeper_analytics.reading.storage import DataFile

FILES_MAX = 256
"""So many files are held at most: each takes a descriptor."""

LOOK_SECONDS = 0.2


@dataclass(slots=True)
class _Held:
    descriptor: int
    removed_at: float = 0.0

    def is_at(self, path: str) -> bool:
        """Tell whether the file is the one at *path*, or nothing is there any more."""
        with suppress(OSError):
            return os.path.samestat(os.fstat(self.descriptor), Path(path).stat())
        return True


class Holder:
    """Holds the files of one journal; removed ones up to *bytes_max* and *seconds_max*.

    *look* returns the files that are there. The thread lives from the first `hold` to `close`.
    """

    def __init__(
        self, look: Callable[[], Mapping[int, DataFile]], bytes_max: int, seconds_max: int
    ) -> None:
        self._look = look
        self._bytes_max = bytes_max
        self._seconds_max = seconds_max
        self._first = 0
        self._held: dict[int, _Held] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._watcher: threading.Thread | None = None

    def hold(self, first: int) -> dict[int, DataFile]:
        """Hold the files from number *first* on; return what is there, removed ones among them.

        Of a file that was compacted meanwhile, what is held is returned.

        Raises NoJournalError.
        """
        if self._watcher is None and self._bytes_max and self._seconds_max:
            self._watcher = threading.Thread(target=self._watch, name="journal-hold", daemon=True)
            self._watcher.start()
        with self._lock:
            self._first = first
            # Within the lock: an older list than the watcher's would let go of its newer files.
            files = dict(self._look())
            return files | self._update(files)

    def _watch(self) -> None:
        while not self._closing.wait(LOOK_SECONDS):
            with self._lock, suppress(NoJournalError):
                self._update(self._look())

    def _update(self, files: Mapping[int, DataFile]) -> dict[int, DataFile]:
        """Open what is new in *files*; return what is held but not there any more."""
        if not self._first:
            return {}
        for number in sorted(files):
            if number >= self._first and number not in self._held and len(self._held) < FILES_MAX:
                self._open(files[number])
        now = time.monotonic()
        removed: dict[int, DataFile] = {}
        room = self._bytes_max
        # The newest stay the longest: what is lost then is one range from the beginning on.
        for number in sorted(self._held, reverse=True):
            if number in files and self._is_in_place(files[number]):
                continue
            held = self._held[number]
            held.removed_at = held.removed_at or now
            state = os.fstat(held.descriptor)
            room -= state.st_size
            if room < 0 or now - held.removed_at > self._seconds_max:
                self._close(number)
                continue
            changed = state.st_mtime * 1000
            removed[number] = DataFile(number, self.place_of(number), state.st_size, changed)
        return removed

    def _is_in_place(self, file: DataFile) -> bool:
        """Tell whether no compacted copy is in the place of a held file.

        When the number was given to another file, that one is held.
        """
        if self._held[file.file_id].is_at(file.path):
            return True
        head = head_of(file.path)
        if compaction_in(head) is not None:
            return False
        if head:
            self._close(file.file_id)
            self._open(file)
        return True

    def place_of(self, number: int) -> str:
        """Return the path by which file *number* can be opened, removed or not; empty: none."""
        held = self._held.get(number)
        return f"/proc/{os.getpid()}/fd/{held.descriptor}" if held else ""

    def release_before(self, first: int) -> None:
        """Let go of all files before number *first*."""
        with self._lock:
            self._first = max(self._first, first)
            for number in [number for number in self._held if number < first]:
                self._close(number)

    def close(self) -> None:
        """Let go of everything."""
        self._closing.set()
        if self._watcher is not None:
            self._watcher.join()
        for number in list(self._held):
            self._close(number)

    def _open(self, file: DataFile) -> None:
        if self._bytes_max and self._seconds_max and "://" not in file.path:
            try:
                self._held[file.file_id] = _Held(os.open(file.path, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                # It is gone already, and the next look says so.
                return

    def _close(self, number: int) -> None:
        os.close(self._held.pop(number).descriptor)
