"""The number of a master's term, as a trace record in every journal file that it writes.

Numbers only grow. So whoever reads the journal knows the last one, also when whatever gave it
out has forgotten; and a master finds that another came after it, by a file that it did not make.
With it goes the broker's id, by which messages tell other brokers where they have been: so whoever
comes next is the same broker. The record is a line of the flight recorder
(docs/reference/flight-recorder.md).
"""

import json
import re
from pathlib import Path

from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.records import Trace
from lockkeeper.store.base import Identity
from lockkeeper.store.kahadb.appender import JournalAppender
from lockkeeper.store.kahadb.commit import GroupCommit
from lockkeeper.store.kahadb.files import JournalFiles
from lockkeeper.store.kahadb.waiting import BOOKED, Booked
from lockkeeper.store.locker import LockLostError

_PREFIX = "lk1 "
_BEGINNING = _PREFIX + '{"t":"term","epoch":'
_ID = re.compile(r"ID:[\w.:\-]{1,1000}", re.ASCII)
_TERM = re.compile(re.escape(_BEGINNING).encode() + rb"(\d{1,19})[,}]")
_GLANCE_BYTES = 64 * 1024


def term_line(epoch: int, at: int, broker: Identity, replica: str) -> str:
    """Return the line for a term that began *at* (ms since the epoch)."""
    told = {"at": at, "broker": broker.name, "replica": replica, "brokerId": broker.broker_id}
    return f"{_BEGINNING}{epoch},{json.dumps(told, separators=(',', ':'))[1:]}"


def epoch_of(text: str) -> int:
    """Return the epoch that a trace record tells, 0 if it is about something else."""
    if not text.startswith(_BEGINNING):
        return 0
    found = _TERM.match(text.encode())
    return int(found[1]) if found else 0


def identity_of(text: str) -> Identity | None:
    """Return whose term a trace record tells of, None if it does not say, or is about others."""
    if not epoch_of(text):
        return None
    try:
        told = json.loads(text.removeprefix(_PREFIX))
    except ValueError:
        return None
    name, broker_id = told.get("broker"), told.get("brokerId")
    if not (isinstance(name, str) and isinstance(broker_id, str) and _ID.fullmatch(broker_id)):
        return None
    return Identity(name, broker_id)


class Term:
    """Keeps the line of one master in the file that it writes to, and looks out for another's."""

    def __init__(self, files: JournalFiles, commit: GroupCommit, appender: JournalAppender) -> None:
        self._files = files
        self._commit = commit
        self._appender = appender
        self._record = b""
        self._file_id = -1
        self._epoch = 0

    def begin(self, epoch: int, line: str, at_once: bool) -> None:
        """Note the term with the next write, or soon without one if *at once*."""
        self._epoch = epoch
        self._record = encode_record(Trace(line))
        self._put()
        self._commit.is_lazy |= at_once

    def repeat_in_new_file(self) -> None:
        """Repeat the line in a new file.

        To be called before old files are deleted: what is in them of terms is in the new one.
        """
        if self._record and self._file_id >= 0 and self._file_id != self._files.file_id:
            self._put()
            self._commit.is_lazy = True

    def require_last(self) -> None:
        """Raise LockLostError when the file behind the last one of ours is there already."""
        path = self._files.path(self._files.file_id + 1)
        if path.exists():
            raise superseded(path, self._epoch)

    def _put(self) -> None:
        self._file_id = -1
        self._appender.put(Booked(self._record, self._is_in), BOOKED)

    def _is_in(self, file_id: int) -> None:
        self._file_id = file_id


def superseded(path: Path, epoch: int) -> LockLostError:
    """Return the error for a journal file that another master has made; *epoch* is ours."""
    try:
        with path.open("rb") as file:
            found = [int(each) for each in _TERM.findall(file.read(_GLANCE_BYTES))]
    except OSError:
        found = []
    whose = f"a master of epoch {max(found)}" if found else "another master"
    return LockLostError(f"{path} was written by {whose}; this one is of epoch {epoch}")
