"""Losses of a damaged journal: messages that are lost, and those that may be.

What the damaged bytes still tell is held against the rest of the journal: a message that was
consumed later is not lost, and the numbers that a producer's messages lack were there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lockkeeper.journal.batch import CONTROL_SIZE
from lockkeeper.journal.damage import Damage, Inspection, fragments, inspect_file
from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.files import DataFile, list_data_files
from lockkeeper.journal.records import (
    AddMessage,
    Commit,
    Prepare,
    Record,
    RemoveDestination,
    RemoveMessage,
    Rollback,
    Subscription,
    UpdateMessage,
)
from lockkeeper.journal.scan import record_offsets
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import TransactionId
from lockkeeper.message.layout import read_lead
from lockkeeper.message.text import decode_text
from lockkeeper.store.kahadb.frames import read_subscription

DAMAGED_NAME = "damaged"
UNNAMED = (
    "the first and the last messages of producers, and copies of messages that are in other "
    "destinations, too, may have been there"
)
ALTERED = "an id or a destination may be read there that the damage has changed"
_SHOWN_MAX = 5
_LISTED_MAX = 1000
# A message in the journal has its size in front.
_MESSAGE_AT = 4

Message = tuple[str, str]
"""The URL of a destination, and a message's id as the journal has it."""

Removal = tuple[str, str, str | None]
"""A message, and the key of the durable subscription that has consumed it, None for a queue."""


@dataclass(slots=True)
class Loss:
    """A damage, and what became of the messages there.

    `lost` are messages whose records are in the damage, by JMSMessageID; `unsure` says of others
    what may have been there, or may come back. `destinations` are those which the damage is known
    to concern.
    """

    file_name: str
    offset: int
    length: int
    reason: str
    destinations: list[str] = field(default_factory=list)
    lost: list[dict[str, str]] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lost = [f"{one['message']} of {one['destination']}" for one in self.lost]
        return (
            f"{self.file_name}: {self.length} bytes at offset {self.offset} are damaged "
            f"({self.reason}). Destinations: {_some(self.destinations)}. "
            f"Lost: {_some(lost)}. Unsure: {_some(self.unsure)}"
        )


def inspect_directory(directory: Path) -> Iterator[tuple[DataFile, bytes, Inspection]]:
    """Yield every data file with what is sound and what is damaged in it. Raises OSError."""
    files = list_data_files(directory)
    last = _last_written(files)
    for file in files:
        data = file.path.read_bytes()
        yield file, data, inspect_file(data, file.path.name, file.file_id >= last, _check_record)


def _last_written(files: list[DataFile]) -> int:
    """Return the number of the last file that has a batch, or what is left of one."""
    for file in reversed(files):
        found = inspect_file(file.path.read_bytes(), file.path.name, False, _check_record)
        if found.batches or found.damages:
            return file.file_id
    return 0


def _check_record(record: Record) -> None:
    """Raise BadRecordError for a record that a replay would refuse."""
    if isinstance(record, Subscription) and record.info is not None:
        read_subscription(record, record.destination)


def losses_of(directory: Path) -> list[Loss]:
    """Return every damage of a directory's journal with what it has cost. Raises OSError."""
    journal = _Journal()
    for file, data, inspection in inspect_directory(directory):
        journal.take_file(file.path.name, data, inspection)
    return journal.losses()


@dataclass(slots=True)
class _Opened:
    """What sound records say of a transaction that has no outcome so far.

    `since` is how many damages were found before it; `sent` are messages with their JMSMessageIDs.
    """

    since: int
    is_prepared: bool = False
    sent: list[tuple[Message, str]] = field(default_factory=list)
    consumed: list[Removal] = field(default_factory=list)


class _Journal:
    """All that the sound records tell of messages, and all that the damaged ones do."""

    def __init__(self) -> None:
        self._found: list[tuple[Loss, list[Record]]] = []
        self._added: set[Message] = set()
        self._shown: set[str] = set()
        self._removed: set[Removal] = set()
        self._opened: dict[TransactionId, _Opened] = {}
        # Of topics for which nobody had subscribed: the damages found before, and messages.
        self._orphans: dict[str, tuple[int, list[str]]] = {}
        self._subscribed: dict[str, dict[str, int]] = {}
        self._ended: dict[str, int] = {}
        self._last: dict[str, tuple[int, int, str]] = {}
        self._illegible: list[int] = []
        self._gaps: list[tuple[int, str, int, int, set[str]]] = []

    def take_file(self, file_name: str, data: bytes, inspection: Inspection) -> None:
        """Read a file, its damages where they stand among the sound records."""
        damages = list(inspection.damages)
        for batch in inspection.batches:
            while damages and damages[0].offset < batch.offset:
                self._damaged(data, damages.pop(0))
            bad = [one for one in inspection.damages if batch.start <= one.offset < batch.end]
            end = bad[-1].offset if bad and bad[-1].end == batch.end else batch.end
            skipped = {one.offset for one in bad}
            whole = batch._replace(end=end)
            for offset, size in record_offsets(data, whole, file_name):
                if offset not in skipped:
                    self._sound(decode_record(data[offset : offset + size]))
        for damage in damages:
            self._damaged(data, damage)

    def _damaged(self, data: bytes, damage: Damage) -> None:
        found = list(fragments(data, damage))
        legible = sum(size for _offset, size, _record in found)
        if legible + CONTROL_SIZE < damage.length or not found:
            self._illegible.append(len(self._found))
        self._found.append((Loss(*damage), [record for _offset, _size, record in found]))

    def _sound(self, record: Record) -> None:
        match record:
            case AddMessage(transaction=transaction):
                self._add(record)
                if transaction is not None:
                    sent = self._opened_as(transaction).sent
                    sent.append((_message(record), _shown_id(record)))
            case UpdateMessage(add=add):
                self._add(add)
            case RemoveMessage(transaction=None):
                self._removed.add(_removal(record))
            case RemoveMessage(transaction=transaction) if transaction is not None:
                self._opened_as(transaction).consumed.append(_removal(record))
            case RemoveDestination(destination=destination):
                self._ended[str(destination)] = len(self._found)
                self._subscribed.pop(str(destination), None)
                self._orphans.pop(str(destination), None)
            case Subscription(destination=destination, subscription_key=key, info=info):
                keys = self._subscribed.setdefault(str(destination), {})
                if info is None:
                    keys.pop(key, None)
                    self._orphans.pop(str(destination), None)
                else:
                    keys[key] = len(self._found)
            case Prepare(transaction=transaction):
                opened = self._opened_as(transaction)
                opened.is_prepared, opened.since = True, len(self._found)
            case Commit(transaction=transaction):
                if transaction in self._opened:
                    self._removed.update(self._opened.pop(transaction).consumed)
            case Rollback(transaction=transaction):
                self._opened.pop(transaction, None)
            case _:
                return

    def _add(self, record: AddMessage) -> None:
        """Note a message, and the numbers that its producer lacks across a damage."""
        name = str(record.destination)
        self._added.add((name, record.message_id))
        if record.destination.is_topic and not self._subscribed.get(name):
            orphans = self._orphans.setdefault(name, (len(self._found), []))[1]
            orphans.append(_shown_id(record))
        shown = _shown_id(record)
        self._shown.add(shown)
        # A copy has a number of the broker's in the journal, and another one that clients know.
        for identifier in dict.fromkeys((record.message_id, shown)):
            self._note_number(identifier, name)

    def _note_number(self, identifier: str, name: str) -> None:
        producer, _, digits = identifier.rpartition(":")
        if not digits.isdigit():
            return
        number, now = int(digits), len(self._found)
        before, then, where = self._last.get(producer, (number, now, name))
        illegible = self._illegible[-1:]
        if number > before + 1 and illegible and illegible[0] >= then:
            self._gaps.append((illegible[0], producer, before + 1, number - 1, {where, name}))
        self._last[producer] = (number, now, name)

    def losses(self) -> list[Loss]:
        """Return what was found, once all files have been taken."""
        told = {message_id for _name, message_id in self._added}
        told |= {message_id for _name, message_id, _key in self._removed}
        told |= self._shown
        for index, (loss, records) in enumerate(self._found):
            for record in records:
                self._tell_loss(index, loss, record)
            adds = [one for one in map(_plain, records) if isinstance(one, AddMessage)]
            told |= {one.message_id for one in adds} | {_shown_id(one) for one in adds}
        for index, producer, first, last, names in self._gaps:
            self._found[index][0].unsure += self._missing(producer, first, last, names, told)
        for transaction, opened in self._opened.items():
            self._tell_undecided(transaction, opened)
        for name, (before, identifiers) in self._orphans.items():
            self._tell_orphans(name, before, identifiers)
        for index, (loss, records) in enumerate(self._found):
            # Of a producer's first and last message no gap tells, nor of one whose number is known
            # from elsewhere. And where all can be read something has changed nevertheless.
            loss.unsure.append(UNNAMED if index in self._illegible else ALTERED)
            if not records:
                loss.unsure.append("nothing can be read there")
            loss.destinations = sorted(set(loss.destinations))
        return [loss for loss, _records in self._found]

    def _is_wanted(self, index: int, message: Message) -> bool:
        """Tell whether somebody was still to get a message of the damage *index*."""
        name, _ = message
        if self._ended.get(name, 0) > index:
            return False
        since = self._subscribed.get(name, {})
        keys: list[str | None] = [key for key in since if since[key] <= index]
        return any((*message, key) not in self._removed for key in keys or [None])

    def _tell_loss(self, index: int, loss: Loss, record: Record) -> None:
        """Add to *loss* what a record in the damage *index* means."""
        record = _plain(record)
        match record:
            case AddMessage():
                message = _message(record)
                loss.destinations.append(message[0])
                if message not in self._added and self._is_wanted(index, message):
                    loss.lost.append({"destination": message[0], "message": _shown_id(record)})
            case RemoveMessage():
                message = _message(record)
                loss.destinations.append(message[0])
                if message in self._added and _removal(record) not in self._removed:
                    loss.unsure.append(f"{message[1]} of {message[0]} was consumed, and comes back")
            case Commit() | Rollback() | Prepare():
                what = type(record).__name__.lower()
                loss.unsure.append(f"the {what} of {record.transaction} does not take effect")
            case RemoveDestination() | Subscription():
                loss.destinations.append(str(record.destination))
                loss.unsure.append(f"a change of {record.destination} does not take effect")
            case _:
                return

    def _tell_undecided(self, transaction: TransactionId, opened: _Opened) -> None:
        """Tell of a transaction without an outcome, which a damage may have held."""
        committed = [
            index
            for index, (_, records) in enumerate(self._found)
            if Commit(transaction) in records
        ]
        if committed and not opened.is_prepared:
            loss, _ = self._found[committed[0]]
            for message, shown in opened.sent:
                if self._is_wanted(committed[0], message):
                    loss.lost.append({"destination": message[0], "message": shown})
            loss.unsure += (
                f"{identifier} of {name} was consumed, and comes back"
                for name, identifier, _ in opened.consumed
            )
        elif self._illegible and self._illegible[-1] >= opened.since:
            loss, _ = self._found[self._illegible[-1]]
            if opened.is_prepared:
                loss.unsure.append(f"{transaction} may have ended there: it is prepared again")
                return
            condition = f"if {transaction} was committed there"
            loss.unsure += (
                f"{shown} of {one[0]} is lost {condition}" for one, shown in opened.sent
            )
            loss.unsure += (
                f"{one[1]} of {one[0]} comes back {condition}" for one in opened.consumed
            )

    def _tell_orphans(self, name: str, before: int, identifiers: list[str]) -> None:
        """Tell of messages of a topic whose subscription began in a damage, it seems."""
        for index in reversed(range(before)):
            loss, records = self._found[index]
            begun = {str(one.destination) for one in records if isinstance(one, Subscription)}
            if name in begun or index in self._illegible:
                end = "is lost with its subscription, which began there"
                loss.unsure += (f"{each} of {name} {end}" for each in identifiers)
                return

    def _opened_as(self, transaction: TransactionId) -> _Opened:
        opened = self._opened.get(transaction)
        if opened is None:
            opened = self._opened[transaction] = _Opened(len(self._found))
        return opened

    def _missing(
        self, producer: str, first: int, last: int, names: set[str], told: set[str]
    ) -> Iterator[str]:
        """Yield the ids of a producer, as many as may have been in the damage."""
        where = " or ".join(sorted(names))
        if last - first >= _LISTED_MAX:
            yield f"{producer}:{first} to {producer}:{last} of {where} may have been there"
            return
        for number in range(first, last + 1):
            if f"{producer}:{number}" not in told:
                yield f"{producer}:{number} of {where} may have been there"


def _plain(record: Record) -> Record:
    """Return the message of a record that writes one anew, or the record."""
    return record.add if isinstance(record, UpdateMessage) else record


def _message(record: AddMessage | RemoveMessage) -> Message:
    return str(record.destination), record.message_id


def _shown_id(record: AddMessage) -> str:
    """Return the JMSMessageID, by which others know the message: copies have ids of their own."""
    try:
        lead = read_lead(record.message, _MESSAGE_AT, len(record.message))
    except MalformedMessageError:
        return record.message_id
    return record.message_id if lead.text_view is None else decode_text(lead.text_view)


def _removal(record: RemoveMessage) -> Removal:
    return *_message(record), record.subscription_key


def _some(texts: list[str]) -> str:
    """Return the first of *texts* and how many there are besides."""
    rest = len(texts) - _SHOWN_MAX
    shown = ", ".join(texts[:_SHOWN_MAX]) or "none known"
    return f"{shown}, and {rest} more" if rest > 0 else shown
