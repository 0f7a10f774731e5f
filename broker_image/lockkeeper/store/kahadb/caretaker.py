"""Deleting data files that nothing needs any more, in two steps.

First the files are chosen. They are deleted only once everything that had been handed over by
then is durable: a removal that waits has emptied its file in the ledger already, but until it is
on the disk a restart would still look for the message.
"""

from lockkeeper.store.kahadb.cleanup import collectable, movable_subscriptions
from lockkeeper.store.kahadb.commit import GroupCommit
from lockkeeper.store.kahadb.files import JournalFiles
from lockkeeper.store.kahadb.intake import Intake
from lockkeeper.store.kahadb.ledger import Ledger


class Caretaker:
    """Looks after the data files every *interval* ms. Raises StoreError like the files do."""

    def __init__(
        self,
        ledger: Ledger,
        files: JournalFiles,
        commit: GroupCommit,
        intake: Intake,
        interval: int,
    ) -> None:
        self._ledger = ledger
        self._files = files
        self._commit = commit
        self._intake = intake
        self._interval = interval
        self._due = 0
        self._chosen: set[int] = set()
        self._position = 0

    def run(self, now: int, in_haste: bool = False) -> None:
        """Do what is due at *now* (ms), or all of it *in haste*."""
        if self._chosen and self._commit.is_durable(self._position):
            self._delete(self._chosen.intersection(self._collectable()))
            self._chosen = set()
        if (in_haste or now >= self._due) and self._files.descriptor >= 0 and not self._chosen:
            self._due = now + self._interval
            for entry in movable_subscriptions(self._ledger, self._files.file_id):
                self._intake.repeat(entry)
                self._commit.is_lazy = True
            self._chosen = set(self._collectable())
            self._position = self._commit.position

    def _collectable(self) -> list[int]:
        ledger = self._ledger
        return collectable(ledger.files, ledger.pinned(), self._files.file_id)

    def _delete(self, file_ids: set[int]) -> None:
        if not file_ids:
            return
        self._files.delete(sorted(file_ids))
        self._ledger.forget_files(file_ids)
