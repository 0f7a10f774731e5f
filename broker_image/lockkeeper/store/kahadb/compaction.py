"""Compaction of a data file: the choice of one, the moment, and the bookkeeping after that.

A file goes only whole. One message that stays keeps its file; the records of later files that end
messages in it keep those, their messages keep the next ones, and so on. A copy of the first one
with nothing in it that was ended keeps no other file. Order, numbers and locations stay: the copy
has its file's number, and where its messages are now is looked up when they are read.
"""

import logging
from typing import Final, NamedTuple

from lockkeeper.store.base import StoreFullError
from lockkeeper.store.kahadb.commit import GroupCommit
from lockkeeper.store.kahadb.file_references import (
    OFFSET_BITS,
    OFFSET_MASK,
    FileEntry,
    FileReferences,
)
from lockkeeper.store.kahadb.files import JournalFiles
from lockkeeper.store.kahadb.paging import BodyReader
from lockkeeper.store.kahadb.rewriting import Copy, Moves, Rewriting
from lockkeeper.store.kahadb.sifting import Subscribed, Task
from lockkeeper.store.kahadb.waiting import BOOKED

logger = logging.getLogger(__name__)

LIVE_FACTOR: Final = 3
FILES_FREE: Final = 4
"""A journal of up to 3 times the bytes of its live messages, and 4 files, is in order."""
GAIN_MIN: Final = 0.4
"""What part of a file must be in vain before it is copied."""
HASTE_FACTOR: Final = 4
"""In a journal of so many times what is in order copies do not rest any more."""
RETRY_MS: Final = 30_000
"""How long nothing is copied after the system refused something, above all room for a copy."""


class Settings(NamedTuple):
    """ActiveMQ's settings, see the reference of the Broker resource, and where files are read."""

    is_enabled: bool = True
    after_no_gc: int = 10
    ignores_store_growth: bool = False
    in_own_process: bool = False


class _Work:
    """A copy being made, and what the books were when it began."""

    def __init__(
        self, file_references: FileReferences, file_id: int, rewriting: Rewriting, position: int
    ) -> None:
        self.file_id = file_id
        self.rewriting = rewriting
        self.position = position
        self.files = rewriting.task.related | {file_id}
        self.live = file_references.files[file_id].live
        self.entered = [
            (each.destination, each.files)
            for each in file_references.destinations.values()
            if file_id in each.files
        ]
        self.created = [
            (key, each.create_files)
            for key, each in file_references.subscriptions.items()
            if file_id in each.create_files
        ]
        self.consumed = [
            reference
            for prepared in file_references.prepared.values()
            for _, reference in prepared.consumed
            if reference.location >> OFFSET_BITS == file_id
        ]


class Compaction:
    """Copies one file at a time. Raises StoreError like the files do."""

    def __init__(
        self,
        file_references: FileReferences,
        files: JournalFiles,
        commit: GroupCommit,
        bodies: BodyReader,
        settings: Settings,
    ) -> None:
        self._file_references = file_references
        self._files = files
        self._commit = commit
        self._bodies = bodies
        self._settings = settings
        self._work: _Work | None = None
        self._rounds = 0
        self._seen_file = 0
        self._refused: set[int] = set()
        self._rests_until = 0

    @property
    def busy(self) -> frozenset[int]:
        """The files that must stay as they are meanwhile."""
        work = self._work
        return frozenset() if work is None else work.files

    def note_round(self, is_freed: bool) -> None:
        """Count a clean-up that deletes files, or none."""
        self._rounds = 0 if is_freed else self._rounds + 1

    def forget(self, file_ids: set[int]) -> None:
        """Forget files that were deleted."""
        self._refused -= file_ids
        for file_id in file_ids:
            self._bodies.moved.pop(file_id, None)

    def wait(self) -> None:
        """Wait until the copy that is being made is ready to take its place."""
        if self._work is not None:
            self._work.rewriting.wait()

    def close(self) -> None:
        """Give up what is under way."""
        work, self._work = self._work, None
        if work is not None:
            work.rewriting.stop()

    def begin(self, now: int, in_haste: bool) -> None:
        """Begin a copy, if one is worth it *now* (ms); after everything that can be deleted was.

        One that is being made hurries when it is *in haste*, or when the journal grows faster.
        """
        if not self._settings.is_enabled:
            return
        if self._work is not None:
            self._work.rewriting.hurry(in_haste or self._is_too_long(HASTE_FACTOR))
            return
        is_quiet = self._seen_file == self._files.file_id
        self._seen_file = self._files.file_id
        is_due = self._rounds >= self._settings.after_no_gc and (
            is_quiet or self._settings.ignores_store_growth
        )
        if not (is_due or in_haste or self._is_too_long()) or BOOKED in self._commit.kinds:
            return
        if now < self._rests_until:
            return
        file_id = self._choose()
        if file_id:
            self._start(file_id, in_haste or self._is_too_long(HASTE_FACTOR))

    def _is_too_long(self, times: int = 1) -> bool:
        """Tell whether the journal has so many *times* what its live messages account for."""
        files = self._file_references.files.values()
        live = sum(file.live for file in files)
        allowed = LIVE_FACTOR * live + FILES_FREE * self._files.file_bytes_max
        return sum(file.size for file in files) > times * allowed

    def _choose(self) -> int:
        """Return the oldest of the files with much in vain, 0 for none."""
        file_references = self._file_references
        held = set().union(*(entry.files for entry in file_references.prepared.values()))
        gains = {
            file_id: file.in_vain()
            for file_id, file in file_references.files.items()
            if file_id < min(self._files.file_id, self._files.kept_from)
            and file_id not in held
            and file_id not in file_references.superseded
            and file.in_vain() >= GAIN_MIN * file.size
        }
        # Those whose copy was refused come after all others, and then anew.
        if gains.keys() <= self._refused:
            self._refused.clear()
        for file_id in self._refused & gains.keys():
            del gains[file_id]
        most = max(gains.values(), default=0)
        return min((file_id for file_id, gain in gains.items() if 2 * gain >= most), default=0)

    def _start(self, file_id: int, in_haste: bool) -> None:
        file_references, files = self._file_references, self._files
        everything = file_references.files
        ending = {each for each, file in everything.items() if file_id in file.refers}
        concerned = ending | {file_id}
        deciding = {
            each for each, file in everything.items() if not file.outcomes.isdisjoint(concerned)
        }
        own = everything[file_id]
        related = ending | deciding | own.refers | own.outcomes
        task = Task(
            files.directory,
            file_id,
            frozenset(related & everything.keys() - {file_id}),
            {files.file_id: files.end},
            [
                Subscribed(key, topic, each.last_create, each.is_retroactive)
                for (topic, key), each in file_references.subscriptions.items()
            ],
            frozenset(file_references.prepared),
        )
        rewriting = Rewriting(task, files.check, self._settings.in_own_process)
        rewriting.hurry(in_haste)
        self._work = _Work(file_references, file_id, rewriting, self._commit.position)
        for each in ending:
            everything[each].refers.discard(file_id)
            everything[each].awaiting.add(file_id)
        file_references.copied, file_references.unsure = file_id, []
        # What is only handed over must be durable before the copy, which is made without it.
        self._commit.is_lazy = True
        rewriting.start()

    def finish(self, now: int) -> bool:
        """Put the copy in place, once it is made; returns whether that was done."""
        work = self._work
        if work is None or not work.rewriting.is_done:
            return False
        if not self._commit.is_durable(work.position):
            return False
        work.rewriting.wait()
        copy, refusal, is_placed = work.rewriting.copy, work.rewriting.refusal, False
        try:
            is_placed = copy is not None and self._is_worth(work, copy) and self._place(work, copy)
        except StoreFullError as error:
            refusal = error
        self._work, self._file_references.copied = None, 0
        if copy is not None and is_placed:
            self._book(work, copy)
            return True
        self._give_up(work)
        if refusal is None:
            self._leave_alone(work)
        else:
            self._rest(work, refusal, now)
        return False

    def _is_worth(self, work: _Work, copy: Copy) -> bool:
        """Tell whether a copy is as it has to be, and short enough to take the file's place."""
        if copy.answer.add_bytes < work.live:
            logger.error(
                "compaction of db-%d.log: %d bytes of messages found, %d are live; left as it is",
                work.file_id,
                copy.answer.add_bytes,
                work.live,
            )
            return False
        size = self._file_references.files[work.file_id].size
        return size - copy.size >= GAIN_MIN * size / 2

    def _place(self, work: _Work, copy: Copy) -> bool:
        """Let the copy take the place of its file, durably."""
        files = self._files
        try:
            return files.replace(copy.path, work.file_id)
        except OSError as error:
            raise files.failure(error, copy.path) from error

    def _give_up(self, work: _Work) -> None:
        """Have the books say what they would without the copy."""
        work.rewriting.discard()
        for file in self._file_references.files.values():
            if work.file_id in file.awaiting:
                file.awaiting.discard(work.file_id)
                file.refers.add(work.file_id)

    def _leave_alone(self, work: _Work) -> None:
        """Leave the file as it is until something else is needed of it."""
        if work.rewriting.reason is not None:
            logger.info("db-%d.log is not compacted: %s", work.file_id, work.rewriting.reason)
        file = self._file_references.files[work.file_id]
        file.leave_as_is(file.size - file.live)

    def _rest(self, work: _Work, refusal: Exception, now: int) -> None:
        """Copy nothing for a while: what was refused has nothing to do with what is in the file."""
        logger.info("db-%d.log is compacted later: %s", work.file_id, refusal)
        self._refused.add(work.file_id)
        self._rests_until = now + RETRY_MS

    def _book(self, work: _Work, copy: Copy) -> None:
        """Enter what the copy has, and has no more, into the books."""
        file_references, file_id, answer = self._file_references, work.file_id, copy.answer
        for each, file in file_references.files.items():
            file.awaiting.discard(file_id)
            if each in answer.referring:
                file.refers.add(file_id)
            if file_id in file.outcomes and each not in answer.ending:
                file.outcomes.discard(file_id)
        own: FileEntry = file_references.files[file_id]
        own.refers &= answer.refers
        own.outcomes &= answer.outcomes
        own.size = copy.size
        own.leave_as_is(copy.size - answer.add_bytes)
        for destination, entered in work.entered:
            if destination not in answer.destinations:
                entered.discard(file_id)
        for key, created in work.created:
            if key not in answer.created:
                created.discard(file_id)
        for each, sets in file_references.unsure:
            if each in file_references.files and any(file_id in one for one in sets):
                file_references.files[each].refers.add(file_id)
        before = self._bodies.moved.get(file_id)
        moves: Moves = copy.moves if before is None else before.after(copy.moves)
        self._bodies.moved[file_id] = moves
        for reference in work.consumed:
            if moves.find(reference.location & OFFSET_MASK) < 0:
                # It ended with its subscription; what consumes it ends nothing any more.
                reference.location = 0
        logger.info("db-%d.log compacted to %d bytes", file_id, copy.size)
