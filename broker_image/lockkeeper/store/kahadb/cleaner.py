"""Deleting data files that nothing needs any more, in two steps.

First the files are chosen. They are deleted only once everything that had been handed over by
then is durable: a removal that waits has left its file without references already, but until it
is on the disk a restart would still look for the message.
"""

import logging
from typing import Final

from lockkeeper.store.base import StoreFullError
from lockkeeper.store.kahadb.appender import JournalAppender
from lockkeeper.store.kahadb.cleanup import collectable, movable_subscriptions
from lockkeeper.store.kahadb.commit import GroupCommit
from lockkeeper.store.kahadb.compaction import Compaction
from lockkeeper.store.kahadb.file_references import FileReferences
from lockkeeper.store.kahadb.files import JournalFiles

logger = logging.getLogger(__name__)

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
        self._lacks_room = False

    def run(self, now: int, in_haste: bool = False) -> None:
        """Do what is due at *now* (ms, by any clock that only grows), or all of it *in haste*."""
        if self._file_references.superseded and self._files.descriptor >= 0:
            if not self._delete(self._file_references.superseded):
                return
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
        staying_from = min(self._files.file_id, self._files.kept_from)
        return collectable(file_references.files, pinned, staying_from)

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
        if self._delete(gone):
            chosen -= gone

    def _is_alone(self, file_id: int, gone: set[int]) -> bool:
        """Tell whether a file's records end nothing in another one, but for those *gone*."""
        files = self._file_references.files
        needed = files[file_id].needs() - gone - {file_id}
        return not any(other in files for other in needed)

    def _delete(self, file_ids: set[int]) -> bool:
        """Delete files; False where the archive has no room for them: they stay until it has."""
        if not file_ids:
            return True
        try:
            self._files.delete(sorted(file_ids))
        except StoreFullError as error:
            if not self._lacks_room:
                logger.warning("data files that nothing needs stay for now: %s", error)
            self._lacks_room = True
            return False
        self._lacks_room = False
        self._file_references.forget_files(file_ids)
        self._compaction.forget(file_ids)
        return True
