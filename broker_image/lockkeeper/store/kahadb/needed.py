"""Records of one data file that are still needed, and go into its copy.

A pure reading of the file and of those that its bookkeeping names: files with records that end
what began in it, files whose messages its records end. Read in their order, nothing else says
anything about its records; what cannot be told from them leaves the file as it is.
"""

from array import array
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from lockkeeper.journal import records
from lockkeeper.journal.decode import decode_destination, decode_record, decode_transaction
from lockkeeper.journal.walk import ADD, REMOVE, QuickRecord
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId

_CLOCK: Final = 'lk1 {"t":"clock"'
_LINE: Final = "lk1 {"
_LIFE: Final = ('"event":"start"', '"event":"takeover"', '"event":"stop"')
CLOCK, STOP = 1, 2
_IGNORED: Final = (records.ProducerAudit, records.AckFileMap, records.Prepare)

# The records of a transaction come one behind the other, those of a few transactions mixed.
_transaction = lru_cache(maxsize=1024)(decode_transaction)


Place = tuple[Destination, str]
"""A topic, and the key of a durable subscription to it."""


class UndecidedError(Exception):
    """The files do not tell what is needed; the text says why. The file stays as it is."""


class Holder(NamedTuple):
    """A durable subscription: its topic, and where the record is that keeps it alive.

    `since` is -1 for a file before the one asked about, 0 for that one, 1 for a later one.
    """

    key: str
    topic: Destination
    since: int
    retroactive: bool


class Question(NamedTuple):
    """Question about one file, with the facts that the bookkeeping knows besides the journal.

    `order` are the files to be read, in their order, the one asked about among them; `undecided`
    the transactions without an outcome.
    """

    file_id: int
    order: list[int]
    holders: list[Holder]
    undecided: frozenset[TransactionId]


class Answer(NamedTuple):
    """Records that are needed of a file, and the effects of their copy on other files.

    `end` is where the last batch of the file ends. `kept` are offset and size of its records, one
    list for each of its batches; `adds` the offsets of those that are messages, `add_bytes` their
    sizes together. `refers` and `outcomes` are those of the copy; `referring` and `ending` the
    files whose records do still end messages, or transactions, that the copy has. `destinations`
    have a message in it, `created` are the subscriptions with their creation.
    """

    end: int
    kept: list[list[tuple[int, int]]]
    adds: "array[int]"
    add_bytes: int
    refers: set[int]
    outcomes: set[int]
    referring: set[int]
    ending: set[int]
    destinations: set[Destination]
    created: set[Place]


class _Own:
    """A record of the file asked about: where it is, and why it may be needed.

    `key` is the number of the message that it adds or ends, 0 for none; `turn` when it took
    effect; `clock` is CLOCK or STOP for a line of the flight recorder that times depend on.
    """

    __slots__ = (
        "acknowledged",
        "clock",
        "endings",
        "is_kept",
        "key",
        "offset",
        "place",
        "size",
        "turn",
    )

    def __init__(self, offset: int, size: int, key: int = 0, place: Destination | None = None):
        self.offset = offset
        self.size = size
        self.is_kept = False
        self.key = key
        self.place = place
        self.turn = 0
        self.clock = 0
        self.acknowledged: set[str] | None = None
        self.endings: list[_Own | int] | None = None


class _Operation(NamedTuple):
    """An add or a removal; `own` is its record where that is in the file asked about."""

    command: int
    key: int
    place: Destination
    subscription: bytes | None
    file_id: int
    own: _Own | None


class _Transaction:
    """Operations without an outcome so far; `files` have records of it."""

    __slots__ = ("files", "operations")

    def __init__(self) -> None:
        self.files: set[int] = set()
        self.operations: list[_Operation] = []


class Sifting:
    """Reads the files of a question, record by record, and gives the answer.

    First `glance` at all records of the file asked about, then `read` all files in their order.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self._file_id = question.file_id
        self._rank = {file_id: rank for rank, file_id in enumerate(question.order)}
        self._own_rank = self._rank[question.file_id]
        self._places: dict[bytes, Destination] = {}
        self._last = b""
        self._last_place: Destination | None = None
        self._wanted: set[int] = set()
        self._targets: dict[int, set[int]] = {}
        self._present: dict[int, _Own] = {}
        self._open: dict[TransactionId, _Transaction] = {}
        self._outcomes: list[tuple[_Own | int, _Transaction]] = []
        self._adds: list[_Own] = []
        self._removals: list[_Own] = []
        self._created: dict[Place, _Own] = {}
        self._begun: dict[Place | Destination, set[int]] = {}
        self._retroactive = {one.topic for one in question.holders if one.retroactive}
        self._batches: list[list[_Own]] = []
        self._turn = 0
        self._own_end = 0

    # The first look

    def glance(self, rows: Iterable[QuickRecord]) -> None:
        """Note which messages the records of the file asked about end."""
        for row in rows:
            if row[0] == REMOVE:
                self._wanted.add(self._key(row))

    # Reading

    def read(self, rows: Iterable[QuickRecord], file_id: int, data: bytes, base: int) -> None:
        """Read records of one batch; *data* begins at offset *base* of the file."""
        is_own = file_id == self._file_id
        if is_own:
            self._own_end = base + len(data)
        for row in rows:
            command, offset, size, _, _, _, _, transaction, subscription, _ = row
            self._turn += 1
            if command not in (ADD, REMOVE):
                self._rare(decode_record(data, offset), file_id, base + offset, size)
                continue
            key = self._key(row)
            own = None
            if is_own:
                own = _Own(base + offset, size, key, self._last_place)
                self._batches[-1].append(own)
                (self._adds if command == ADD else self._removals).append(own)
            place = self._last_place
            assert place is not None
            if not is_own:
                self._begin(place, file_id, command)
            operation = _Operation(command, key, place, subscription, file_id, own)
            if transaction is None:
                self._apply(operation)
            else:
                self._enter(_transaction(transaction), operation)

    def next_batch(self) -> None:
        """Tell that what is read next is in another batch of the file asked about."""
        self._batches.append([])

    def _key(self, row: QuickRecord) -> int:
        """Return a number for a message of a destination."""
        encoded = row[3]
        if encoded is not self._last:
            self._last = encoded
            place = self._places.get(encoded)
            if place is None:
                place = self._places[encoded] = decode_destination(encoded)
            self._last_place = place
        return hash((self._last_place, row[4]))

    def _begin(self, place: Destination, file_id: int, command: int) -> None:
        """Note that a file before has messages of a destination."""
        if command == ADD and self._rank[file_id] < self._own_rank:
            self._begun.setdefault(place, set()).add(file_id)

    def _enter(self, identifier: TransactionId, operation: _Operation) -> None:
        opened = self._open.setdefault(identifier, _Transaction())
        opened.files.add(operation.file_id)
        is_needed = operation.own is not None or self._is_of_interest(operation)
        if is_needed:
            opened.operations.append(operation)
        if self._file_id in opened.files and len(opened.files) > 1:
            raise UndecidedError(f"transaction {identifier} is in several files")

    def _is_of_interest(self, operation: _Operation) -> bool:
        if operation.command == ADD:
            return operation.key in self._wanted
        return operation.key in self._present

    def _apply(self, operation: _Operation) -> None:
        """Let an operation take effect."""
        if operation.command == ADD:
            self._add(operation)
        else:
            self._remove(operation)

    def _add(self, operation: _Operation) -> None:
        key, own = operation.key, operation.own
        if own is None:
            if key in self._wanted and self._rank[operation.file_id] < self._own_rank:
                self._targets.setdefault(key, set()).add(operation.file_id)
            return
        if key in self._present:
            # A second add of a message that is there: it does nothing.
            return
        own.turn = self._turn
        own.is_kept = True
        self._present[key] = own

    def _remove(self, operation: _Operation) -> None:
        message = self._present.get(operation.key)
        if message is None:
            return
        key = operation.subscription
        if key is None or operation.place.is_queue:
            message.is_kept = False
            del self._present[operation.key]
            return
        if message.acknowledged is None or message.endings is None:
            message.acknowledged, message.endings = set(), []
        message.acknowledged.add(key.decode("utf-8", "replace"))
        message.endings.append(operation.own or operation.file_id)

    def _rare(self, record: records.Record, file_id: int, offset: int, size: int) -> None:
        """Read a record that is no add or removal."""
        own: _Own | None = None
        if file_id == self._file_id:
            own = _Own(offset, size)
            self._batches[-1].append(own)
        match record:
            case records.Commit(transaction=identifier):
                for operation in self._end(identifier, own or file_id):
                    self._apply(operation)
            case records.Rollback(transaction=identifier):
                for operation in self._end(identifier, own or file_id):
                    if operation.own is not None:
                        operation.own.key = 0
            case records.RemoveDestination(destination=destination):
                self._remove_destination(destination, own)
            case records.Subscription():
                self._subscribe(record, own, file_id)
            case records.UpdateMessage(add=add):
                key = hash((add.destination, add.message_id.encode()))
                if own is not None or key in self._present or key in self._wanted:
                    raise UndecidedError("a message in it was written anew")
            case records.Trace(message=text):
                self._trace(text, own)
            case records.RewrittenDataFile():
                if own is not None:
                    own.is_kept = True
            case _:
                if own is not None and not isinstance(record, _IGNORED):
                    raise UndecidedError(f"it has a {type(record).__name__}")

    def _end(self, identifier: TransactionId, where: _Own | int) -> list[_Operation]:
        ended = self._open.pop(identifier, None)
        if ended is None:
            return []
        if isinstance(where, _Own) or self._file_id in ended.files:
            self._outcomes.append((where, ended))
        return ended.operations

    def _remove_destination(self, destination: Destination, own: _Own | None) -> None:
        gone = [key for key, each in self._present.items() if each.place == destination]
        for key in gone:
            self._present.pop(key).is_kept = False
        for place in list(self._created):
            if place[0] == destination:
                del self._created[place]
        if own is not None and self._begun.get(destination):
            self._end_begun(own, self._begun[destination])

    def _subscribe(self, record: records.Subscription, own: _Own | None, file_id: int) -> None:
        topic = record.destination
        place = (topic, record.subscription_key)
        if record.info is None:
            self._created.pop(place, None)
            if own is not None and self._begun.get(place):
                self._end_begun(own, self._begun[place])
        elif own is not None:
            if topic in self._retroactive:
                raise UndecidedError("messages in it may be those that a subscription found")
            own.turn = self._turn
            self._created[place] = own
        elif self._rank[file_id] < self._own_rank:
            self._begun.setdefault(place, set()).add(file_id)
            self._begun.setdefault(topic, set()).add(file_id)

    def _end_begun(self, own: _Own, files: set[int]) -> None:
        """Keep the record that ends a destination, or a subscription, of files before."""
        own.key = hash((own.offset, "begun"))
        self._targets[own.key] = set(files)
        self._removals.append(own)

    def _trace(self, text: str, own: _Own | None) -> None:
        """Note what the flight recorder's clock shows from here on."""
        if own is None:
            return
        if text.startswith(_CLOCK):
            own.clock = CLOCK
        elif not text.startswith(_LINE) or any(each in text for each in _LIFE):
            own.clock = STOP

    # The answer

    def answer(self) -> Answer:
        """Return what is needed, once all files were read. Raises UndecidedError."""
        self._require_outcomes()
        referring = self._settle_topics()
        created = self._settle_creations()
        refers: set[int] = set()
        for own in self._removals:
            targets = self._targets.get(own.key) if own.key else None
            if targets:
                own.is_kept = True
                refers |= targets
        outcomes, ending = self._settle_outcomes()
        adds = [own for own in self._adds if own.is_kept]
        return Answer(
            self._own_end,
            self._kept_batches(),
            array("q", [own.offset for own in adds]),
            sum(own.size for own in adds),
            refers,
            outcomes,
            referring,
            ending,
            {own.place for own in adds if own.place is not None},
            created,
        )

    def _require_outcomes(self) -> None:
        """Raise UndecidedError for what nobody knows whether it took effect."""
        for identifier, opened in self._open.items():
            if self._file_id in opened.files:
                raise UndecidedError(f"transaction {identifier} has no outcome")
            for operation in opened.operations:
                if operation.command == ADD:
                    self._add(operation)
                elif identifier not in self._question.undecided:
                    raise UndecidedError(f"the outcome of {identifier} was not found")

    def _settle_topics(self) -> set[int]:
        """Keep what a subscription has not consumed; returns the files with parts of its end."""
        holders: dict[Destination, list[Holder]] = {}
        for holder in self._question.holders:
            holders.setdefault(holder.topic, []).append(holder)
        referring: set[int] = set()
        for own in self._adds:
            if not own.is_kept or own.place is None or own.place.is_queue:
                continue
            own.is_kept = any(
                self._is_pending(own, holder) for holder in holders.get(own.place, [])
            )
            for ending in own.endings if own.is_kept and own.endings is not None else ():
                if isinstance(ending, _Own):
                    ending.is_kept = True
                else:
                    referring.add(ending)
        return referring

    def _is_pending(self, own: _Own, holder: Holder) -> bool:
        """Tell whether a subscription that there is has not consumed a message."""
        if own.acknowledged is not None and holder.key in own.acknowledged:
            return False
        if holder.retroactive or holder.since < 0:
            return True
        created = self._created.get((holder.topic, holder.key))
        return holder.since == 0 and created is not None and created.turn < own.turn

    def _settle_creations(self) -> set[Place]:
        """Keep the creations that keep a subscription alive; returns which."""
        since = {(one.topic, one.key): one.since for one in self._question.holders}
        kept: set[Place] = set()
        for place, own in self._created.items():
            if place not in since or since[place] < 0:
                raise UndecidedError(f"the subscription {place[1]} is not known")
            if not since[place]:
                own.is_kept = True
                kept.add(place)
        return kept

    def _settle_outcomes(self) -> tuple[set[int], set[int]]:
        """Keep the outcomes of what is kept, or is in other files.

        Returns the files of the latter, and those with outcomes of what is kept.
        """
        outcomes: set[int] = set()
        ending: set[int] = set()
        for where, ended in self._outcomes:
            others = ended.files - {self._file_id}
            is_kept = any(one.own is not None and one.own.is_kept for one in ended.operations)
            if isinstance(where, _Own):
                where.is_kept = is_kept or bool(others)
                outcomes |= others
            elif is_kept:
                ending.add(where)
        return outcomes, ending

    def _kept_batches(self) -> list[list[tuple[int, int]]]:
        """Return the records that are kept, by batch, with the clock lines that tell their times.

        What the clock shows holds for its whole batch, and for those behind it without one.
        """
        batches: list[list[tuple[int, int]]] = []
        carried: list[_Own] = []
        for batch in self._batches:
            lines = [own for own in batch if own.clock]
            if any(own.is_kept for own in batch):
                if carried:
                    batches.append([(own.offset, own.size) for own in carried])
                    carried = []
                kept = [own for own in batch if own.is_kept or own.clock]
                batches.append([(own.offset, own.size) for own in kept])
                continue
            for own in lines:
                carried = [own] if own.clock == CLOCK else [*carried[-1:], own]
        if carried and batches:
            batches.append([(own.offset, own.size) for own in carried])
        return batches
