"""Names of all queues, also of empty ones, which the journal's other records do not name.

A queue is more than its messages: a virtual topic copies into the queues that exist, whoever
consumes them or not. ActiveMQ keeps their names in its index. Here the journal tells them again,
as trace records, so that they outlive the files that their messages were in: in each new file, or
less often where they would be much of what is written. What told them last stays meanwhile.
"""

import json
from itertools import islice
from typing import Final

from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.records import Trace
from lockkeeper.message.destination import Destination, queue
from lockkeeper.store.kahadb.appender import JournalAppender
from lockkeeper.store.kahadb.files import JournalFiles

_BEGINNING = 'lk1 {"t":"queues",'
_PREFIX = "lk1 "
NAMES_PER_LINE = 200
SHARE: Final = 4
"""Of so many bytes of the journal no more than one tells all names again."""
PART_BYTES: Final = 1 << 20
"""About so much is told at once: making it takes about ten milliseconds."""
NEVER: Final = -1


def queues_lines(names: list[str], are_all: bool = False) -> list[str]:
    """Return the lines that tell *names*; each says how many there are, if these *are all*."""
    starts = range(0, len(names), NAMES_PER_LINE)
    lines = []
    for start in starts or ([0] if are_all else []):
        part = names[start : start + NAMES_PER_LINE]
        lines.append(_all_line(part, start, len(names)) if are_all else _line({"names": part}))
    return lines


def _all_line(names: list[str], first: int, count: int) -> str:
    """Return a line of all names, *count* in number: those from the *first* one of it on."""
    return _line({"names": names, "first": first, "of": count})


def _line(told: dict[str, object]) -> str:
    return _BEGINNING + json.dumps(told)[1:]


class ToldQueues:
    """Queues that exist, as the records of a journal tell: `names`, in order, if they `are_told`.

    Once all names were told, what was told before counts no more: the record of a queue's end
    may be gone, with its file, where that of its name is not.
    """

    def __init__(self) -> None:
        self.names: dict[Destination, None] = {}
        self.are_told = False
        self._all: list[str] = []

    def note(self, text: str) -> None:
        """Note what a trace record tells, if it is about queues."""
        if not text.startswith(_BEGINNING):
            return
        try:
            told = json.loads(text[len(_PREFIX) :])
        except ValueError:
            return
        listed = told.get("names")
        if not isinstance(listed, list):
            return
        self.are_told = True
        names = [each for each in listed if isinstance(each, str)]
        self.names |= dict.fromkeys(map(queue, names))
        if "of" in told:
            self._note_part(told.get("first"), told["of"], names)

    def _note_part(self, first: object, count: object, names: list[str]) -> None:
        """Note a part of all names, behind those before it; what is cut short is no end."""
        if first == 0:
            self._all = []
        if first != len(self._all):
            return
        self._all += names
        if len(self._all) == count:
            self.names = dict.fromkeys(map(queue, self._all))


class ExistingQueues:
    """Keeps the names of all queues in files that stay; see `JournalFiles.kept_from`.

    They are told in parts: `_told` of them have been since that began, in the file `_begun_in`.
    What becomes known meanwhile is told with the last part.
    """

    def __init__(
        self,
        files: JournalFiles,
        appender: JournalAppender,
        known: list[Destination],
        are_told: bool,
    ) -> None:
        """*known* queues are there; names *are told* in the journal, if only of others."""
        self._files = files
        self._appender = appender
        self._names = dict.fromkeys(destination.name for destination in known)
        self._are_told = False
        self._told = NEVER
        self._told_bytes = self._begun_in = self._due_in = 0
        if are_told or known:
            self._keep_all()

    def _keep_all(self) -> None:
        """Have all files stay until all names were told again."""
        self._are_told = True
        self._files.kept_from = 0

    def add(self, destination: Destination) -> bool:
        """Note that a queue exists; returns whether that is news, to be written soon."""
        if destination.name in self._names:
            return False
        self._names[destination.name] = None
        if not self._are_told:
            self._keep_all()
        for line in queues_lines([destination.name]):
            self._put(line)
        return True

    def forget(self, destination: Destination) -> None:
        """Note that a queue is no more; its removal has a record of its own, behind this."""
        if destination.is_queue and destination.name in self._names:
            while self._told != NEVER:
                self._tell_line()
            del self._names[destination.name]

    def repeat(self) -> bool:
        """Tell all names again, or a part, if that is due; returns whether to write it soon.

        To be called before old files are deleted: what they tell is handed over then. Before the
        first write of a master nothing is told.
        """
        if self._files.descriptor < 0 or not self._are_told:
            return False
        if self._told == NEVER:
            if self._files.file_id < self._due_in:
                return False
            self._told, self._told_bytes, self._begun_in = 0, 0, self._files.file_id
        enough = self._told_bytes + PART_BYTES
        while self._told != NEVER and self._told_bytes < enough:
            self._tell_line()
        return True

    def _tell_line(self) -> None:
        """Tell the next names; with the last ones, all are told."""
        names = [*islice(self._names, self._told, self._told + NAMES_PER_LINE)]
        self._told_bytes += self._put(_all_line(names, self._told, len(self._names)))
        self._told += len(names)
        if self._told == len(self._names):
            self._told = NEVER
            self._files.kept_from = self._begun_in
            files = -(-SHARE * self._told_bytes // self._files.file_bytes_max)
            self._due_in = self._begun_in + max(1, files)

    def _put(self, line: str) -> int:
        """Hand a line over; returns the bytes of its record."""
        record = encode_record(Trace(line))
        self._appender.put(record)
        return len(record)
