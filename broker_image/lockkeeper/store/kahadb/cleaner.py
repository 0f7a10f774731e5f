"""Deleting data files that nothing needs any more, in two steps.

First the files are chosen. They are deleted only once everything that had been handed over by
then is durable: a removal that waits has left its file without references already, but until it
is on the disk a restart would still look for the message.
"""

from typing import Final

from lockkeeper.store.kahadb.appender import JournalAppender
from lockkeeper.store.kahadb.cleanup import collectable, movable_subscriptions
from lockkeeper.store.kahadb.commit import GroupCommit
from lockkeeper.store.kahadb.compaction import Compaction
from lockkeeper.store.kahadb.file_references import FileReferences
from lockkeeper.store.kahadb.files import JournalFiles

FILES_AT_ONCE: Final = 2
"""A file takes the disk up to tens of milliseconds, and the event loop waits: two in each look."""


class JournalCleaner:
    """Looks after the data files every *interval* ms. Raises StoreError like the files do."""

    def __init__(
        self,
        file_references: FileReferences,
        files: JournalFiles,
        commit: GroupCommit,
        appender: JournalAppender,
        interval: int,
        compaction: Compaction,
    ) -> None:
        self._file_references = file_references
        self._files = files
        self._commit = commit
        self._appender = appender
        self._interval = interval
        self._compaction = compaction
        self._due = 0
        self._chosen: set[int] = set()
        self._position = 0

    def run(self, now: int, in_haste: bool = False) -> None:
        """Do what is due at *now* (ms, by any clock that only grows), or all of it *in haste*."""
        if self._file_references.superseded and self._files.descriptor >= 0:
            self._delete(self._file_references.superseded)
            self._file_references.superseded = set()
        if self._chosen and self._commit.is_durable(self._position):
            self._chosen.intersection_update(self._collectable())
            self._delete_some(self._chosen)
            if not self._chosen:
                self._compaction.begin(now, in_haste)
        if self._compaction.finish(now):
            self._due = 0
        if (in_haste or now >= self._due) and self._files.descriptor >= 0 and not self._chosen:
            self._due = now + self._interval
            for entry in movable_subscriptions(self._file_references, self._files.file_id):
                self._appender.repeat(entry)
                self._commit.is_lazy = True
            self._chosen = set(self._collectable())
            self._position = self._commit.position
            self._compaction.note_round(bool(self._chosen))
            if not self._chosen:
                self._compaction.begin(now, in_haste)
            else:
                # On an idle broker nothing else would have what waits written.
                self._commit.is_lazy = True

    def _collectable(self) -> list[int]:
        file_references = self._file_references
        pinned = file_references.pinned() | self._compaction.busy
        return collectable(file_references.files, pinned, self._files.file_id)

    def _delete_some(self, chosen: set[int]) -> None:
        """Delete some of the files that were *chosen*, and drop them there.

        Never one whose records end what is in a file that still is there: a restart in between
        would bring that back. Those that end each other's go together.
        """
        gone: set[int] = set()
        for file_id in sorted(chosen):
            if len(gone) < FILES_AT_ONCE and self._is_alone(file_id, gone):
                gone.add(file_id)
        gone = gone or set(chosen)
        self._delete(gone)
        chosen -= gone

    def _is_alone(self, file_id: int, gone: set[int]) -> bool:
        """Tell whether a file's records end nothing in another one, but for those *gone*."""
        files = self._file_references.files
        needed = files[file_id].needs() - gone - {file_id}
        return not any(other in files for other in needed)

    def _delete(self, file_ids: set[int]) -> None:
        if not file_ids:
            return
        self._files.delete(sorted(file_ids))
        self._file_references.forget_files(file_ids)
        self._compaction.forget(file_ids)
