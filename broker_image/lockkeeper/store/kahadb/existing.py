"""Names of all queues, also of empty ones, which the journal's other records do not name.

A queue is more than its messages: a virtual topic copies into the queues that exist, whoever
consumes them or not. ActiveMQ keeps their names in its index. Here each file of the journal tells
them, as trace records, so that they outlive the files that their messages were in.
"""

import json

from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.records import Trace
from lockkeeper.message.destination import Destination, queue
from lockkeeper.store.kahadb.appender import JournalAppender
from lockkeeper.store.kahadb.files import JournalFiles

_BEGINNING = 'lk1 {"t":"queues",'
_PREFIX = "lk1 "
NAMES_PER_LINE = 200


def queues_lines(names: list[str], are_all: bool = False) -> list[str]:
    """Return the lines that tell *names*; each says how many there are, if these *are all*."""
    starts = range(0, len(names), NAMES_PER_LINE)
    lines = []
    for start in starts or ([0] if are_all else []):
        told: dict[str, object] = {"names": names[start : start + NAMES_PER_LINE]}
        if are_all:
            told |= {"first": start, "of": len(names)}
        lines.append(_BEGINNING + json.dumps(told)[1:])
    return lines


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
    """Keeps the names of all queues in the file that is written to."""

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
        self._are_told = are_told or bool(known)
        self._told_in = 0

    def add(self, destination: Destination) -> bool:
        """Note that a queue exists; returns whether that is news, to be written soon."""
        if destination.name in self._names:
            return False
        self._names[destination.name] = None
        self._are_told = True
        self._put(queues_lines([destination.name]))
        return True

    def forget(self, destination: Destination) -> None:
        """Note that a queue is no more; its removal has a record of its own."""
        if destination.is_queue:
            self._names.pop(destination.name, None)

    def repeat_in_new_file(self) -> bool:
        """Tell all names again in a new file; returns whether that is to be written soon.

        To be called before old files are deleted: what they tell is in the new one then. Before
        the first write of a master nothing is told.
        """
        if self._files.descriptor < 0 or self._told_in == self._files.file_id:
            return False
        if not self._are_told:
            return False
        self._told_in = self._files.file_id
        self._put(queues_lines(list(self._names), are_all=True))
        return True

    def _put(self, lines: list[str]) -> None:
        for line in lines:
            self._appender.put(encode_record(Trace(line)))
