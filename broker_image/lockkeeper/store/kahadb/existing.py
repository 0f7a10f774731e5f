"""Names of all queues, also of empty ones, which the journal's other records do not name.

A queue is more than its messages: a virtual topic copies into the queues that exist, whoever
consumes them or not. ActiveMQ keeps their names in its index. Here each file of the journal tells
them, as trace records, so that they outlive the files that their messages were in.
"""

import json

from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.records import Trace
from lockkeeper.message.destination import Destination
from lockkeeper.store.kahadb.appender import JournalAppender
from lockkeeper.store.kahadb.files import JournalFiles

_BEGINNING = 'lk1 {"t":"queues",'
_PREFIX = "lk1 "
NAMES_PER_LINE = 200


def queues_of(text: str) -> list[str]:
    """Return the names that a trace record tells, none if it is about something else."""
    if not text.startswith(_BEGINNING):
        return []
    try:
        told = json.loads(text[len(_PREFIX) :])
    except ValueError:
        return []
    names = told.get("names")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def queues_lines(names: list[str]) -> list[str]:
    """Return the lines that tell *names*."""
    return [
        _BEGINNING + json.dumps({"names": names[start : start + NAMES_PER_LINE]})[1:]
        for start in range(0, len(names), NAMES_PER_LINE)
    ]


class ExistingQueues:
    """Keeps the names of all queues in the file that is written to."""

    def __init__(
        self, files: JournalFiles, appender: JournalAppender, known: list[Destination]
    ) -> None:
        self._files = files
        self._appender = appender
        self._names = dict.fromkeys(destination.name for destination in known)
        self._told_in = 0

    def add(self, destination: Destination) -> bool:
        """Note that a queue exists; returns whether that is news, to be written soon."""
        if destination.name in self._names:
            return False
        self._names[destination.name] = None
        self._put([destination.name])
        return True

    def forget(self, destination: Destination) -> None:
        """Note that a queue is no more; its removal has a record of its own."""
        if destination.is_queue:
            self._names.pop(destination.name, None)

    def repeat_in_new_file(self) -> bool:
        """Tell all names again in a new file; returns whether there was something to tell.

        To be called before old files are deleted: what they tell is in the new one then. Before
        the first write of a master nothing is told.
        """
        if self._files.descriptor < 0 or self._told_in == self._files.file_id:
            return False
        self._told_in = self._files.file_id
        self._put(list(self._names))
        return bool(self._names)

    def _put(self, names: list[str]) -> None:
        for line in queues_lines(names):
            self._appender.put(encode_record(Trace(line)))
