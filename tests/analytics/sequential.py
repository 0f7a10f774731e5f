"""Replay of one directory's records in order (kahadb.md section 4).

Memory holds live messages, open transactions, subscriptions, the last messages that ended, and all
records that hold messages: which of these are dead letters is told from the whole journal.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Set

import sequential_lives as lives
from sequential_entries import Entry, Place
from sequential_letters import RecordPlace, record_place
from sequential_lives import (
    DestinationLife,
    End,
    FileLife,
    Message,
    Moment,
    Subscription,
    Transaction,
)

ENDED_KEPT_MAX = 10_000
"""A dead letter is told from an acknowledged message when its copy in the dead letter queue comes
no more than so many ended messages later; brokers write the two together."""


class History:
    """Replays records; what is complete can be taken out after each.

    *keeps* says what is collected in `messages`, `acks` and `transactions`. `held` are the records
    that hold messages, as they take effect; those in *letters* hold dead letters.
    """

    def __init__(self, *keeps: str, letters: Set[RecordPlace] = frozenset()) -> None:
        self.keeps = frozenset(keeps)
        self.letters = letters
        self.held: list[Entry] = []
        self.messages: deque[Message] = deque()
        self.acks: deque[tuple[Message | None, End]] = deque()
        self.transactions: deque[tuple[str, Transaction]] = deque()
        self.destinations: dict[Place, DestinationLife] = {}
        self.files: dict[int, FileLife] = {}
        self.open: dict[str, Transaction] = {}
        self.subscriptions: dict[tuple[Place, str], Subscription] = {}
        self.ended_subscriptions: list[Subscription] = []
        self._recent: OrderedDict[tuple[Place, str], Message] = OrderedDict()
        self._copies: dict[tuple[Place, str], str] = {}
        self._recent_acks: deque[tuple[Message | None, End]] = deque()

    def replay(self, entries: Iterable[Entry]) -> Iterator[None]:
        """Apply *entries*; yields after each one."""
        for entry in entries:
            file = self.files.get(entry.file_id)
            if file is None:
                file = self.files[entry.file_id] = FileLife(entry.file_id)
            file.note(entry)
            self._apply(entry, file)
            yield
        self._finish()
        yield

    def _apply(self, entry: Entry, file: FileLife) -> None:
        match entry.kind:
            case "add" | "remove":
                if entry.transaction is not None:
                    opened = self.open.get(entry.transaction)
                    if opened is None:
                        opened = self.open[entry.transaction] = Transaction(entry)
                    opened.operations.append(entry)
                    opened.files.add(entry.file_id)
                elif entry.kind == "add":
                    self._add(entry, _moment(entry))
                else:
                    self._remove(entry, _moment(entry))
            case "commit" | "rollback":
                self._settle(entry, file)
            case "prepare":
                if entry.transaction in self.open:
                    opened = self.open[entry.transaction]
                    opened.prepared = entry
                    opened.files.add(entry.file_id)
            case "update":
                self._update(entry)
            case "subscribe":
                self._subscribe(entry)
            case "unsubscribe":
                self._unsubscribe(entry)
            case "remove_destination":
                self._remove_destination(entry, file)

    # Messages

    def destination(self, place: Place) -> DestinationLife:
        """Return the life of a destination, which begins when it is first named."""
        life = self.destinations.get(place)
        if life is None:
            life = self.destinations[place] = DestinationLife(place)
        return life

    def _add(self, entry: Entry, at: Moment) -> None:
        self.held.append(entry)
        life = self.destination(entry.place)
        life.is_removed = False
        life.files.add(entry.file_id)
        identifier = entry.message_id or ""
        if entry.copy_of is not None:
            self._copies[entry.place, entry.copy_of] = identifier
        known = life.live.get(identifier)
        if known is not None:
            known.copies += (entry.file_id,)
            self._emit(Message(entry, at, lives.DUPLICATE), life)
            return
        message = Message(entry, at)
        life.stored += 1
        life.stored_bytes += entry.message_bytes or 0
        if entry.stored_at is not None:
            life.first = entry.stored_at if life.first is None else life.first
            life.last = entry.stored_at
        if entry.original_destination is not None and record_place(entry) in self.letters:
            self._note_dead_letter(entry)
        if _is_topic(entry.place):
            message.waiting = dict.fromkeys(life.subscriptions)
            if not message.waiting:
                message.state, message.over = lives.UNWANTED, at
                self._emit(message, life)
                return
        life.live[identifier] = message

    def _note_dead_letter(self, entry: Entry) -> None:
        """Let the message that died know; its end may come before this or after."""
        kind, _, name = (entry.original_destination or "").partition("://")
        shown = entry.copy_of or entry.message_id or ""
        identifier = self._copies.get(((kind, name), shown), shown)
        target = f"{entry.destination_kind}://{entry.destination}"
        origin = self.destinations.get((kind, name))
        message = origin.live.get(identifier) if origin is not None else None
        if message is not None:
            message.moves += ((target, entry.dead_letter_cause),)
            return
        message = self._recent.get(((kind, name), identifier))
        last = message.last if message is not None else None
        if last is not None and last.dead_letter is None:
            last.moved(target, entry.dead_letter_cause)

    def _remove(self, entry: Entry, at: Moment) -> None:
        life = self.destination(entry.place)
        identifier = entry.message_id or ""
        message = life.live.get(identifier)
        end = End(entry, at)
        self._note_subscription(entry, end)
        if message is not None and not self._concerns(message, entry):
            message = None
        if "acks" in self.keeps:
            self._recent_acks.append((message, end))
            if len(self._recent_acks) > ENDED_KEPT_MAX:
                self.acks.append(self._recent_acks.popleft())
        if message is None:
            return
        message.ends += (end,)
        if message.moves:
            end.moved(*message.moves[0])
            message.moves = message.moves[1:]
        self._refer(entry.file_id, message)
        if entry.subscription is not None:
            message.waiting.pop(entry.subscription, None)
        if entry.subscription is None or not message.waiting:
            self._end(life, identifier, lives.ACKNOWLEDGED, at)

    @staticmethod
    def _concerns(message: Message, entry: Entry) -> bool:
        key = entry.subscription
        return key is None or not _is_topic(entry.place) or key in message.waiting

    def _note_subscription(self, entry: Entry, end: End) -> None:
        known = self.subscriptions.get((entry.place, entry.subscription or ""))
        if known is not None:
            is_unmatched = entry.ack_type == lives.UNMATCHED
            known.last = known.last if is_unmatched else end
            known.acknowledged += not is_unmatched
            known.unmatched += is_unmatched

    def _end(self, life: DestinationLife, identifier: str, state: str, at: Moment) -> None:
        message = life.live.pop(identifier)
        message.state, message.over = state, at
        message.waiting.clear()
        earlier = self._recent.pop((life.place, identifier), None)
        if earlier is not None:
            self._emit(earlier, life)
        self._recent[life.place, identifier] = message
        if len(self._recent) > ENDED_KEPT_MAX:
            (place, _), oldest = self._recent.popitem(last=False)
            self._emit(oldest, self.destination(place))

    def _emit(self, message: Message, life: DestinationLife | None = None) -> None:
        if life is not None:
            life.note_end(message.outcome)
        if "messages" in self.keeps:
            self.messages.append(message)

    def _refer(self, file_id: int, message: Message) -> None:
        """Note that a record in a file ends a message, wherever its adds are."""
        refers = self.files[file_id].refers
        refers.add(message.located.file_id)
        refers.update(message.copies)

    def _update(self, entry: Entry) -> None:
        message = self.destination(entry.place).live.get(entry.message_id or "")
        if message is None:
            self._add(entry, _moment(entry))
            return
        self.held.append(entry)
        self.files[entry.file_id].refers.add(message.located.file_id)
        self.destination(entry.place).files.add(entry.file_id)
        message.located, message.facts = entry, entry.facts

    # Transactions

    def _settle(self, entry: Entry, file: FileLife) -> None:
        opened = self.open.pop(entry.transaction or "", None)
        if opened is None:
            return
        is_commit = entry.kind == "commit"
        opened.settled = entry
        opened.outcome = lives.COMMITTED if is_commit else lives.ROLLED_BACK
        file.refers |= opened.files
        at = _moment(entry)
        for operation in opened.operations:
            if not is_commit:
                if operation.kind == "add":
                    self._emit(Message(operation, at, lives.ROLLED_BACK))
            elif operation.kind == "add":
                self._add(operation, at)
            else:
                self._remove(operation, at)
        if "transactions" in self.keeps:
            self.transactions.append((entry.transaction or "", opened))

    # Subscriptions and destinations

    def _subscribe(self, entry: Entry) -> None:
        life, key = self.destination(entry.place), entry.subscription or ""
        before = self.subscriptions.get((entry.place, key))
        forgotten: dict[str, Message] = {}
        subscription = Subscription(entry)
        if before is not None:
            subscription.create_files |= before.create_files
            if entry.retroactive:
                forgotten = {
                    identifier: message
                    for identifier, message in life.live.items()
                    if key in message.waiting
                }
            self._forget(before, entry, "replaced", forgotten)
        self.subscriptions[entry.place, key] = life.subscriptions[key] = subscription
        subscription.needs |= life.creations if entry.retroactive else set()
        life.creations.add(entry.file_id)
        if entry.retroactive and _is_topic(entry.place):
            for message in life.live.values():
                message.waiting[key] = None

    def _unsubscribe(self, entry: Entry) -> None:
        known = self.subscriptions.get((entry.place, entry.subscription or ""))
        if known is not None:
            self.files[entry.file_id].refers |= known.create_files
            self._forget(known, entry, "deleted", {})

    def _forget(
        self, known: Subscription, entry: Entry, state: str, kept: dict[str, Message]
    ) -> None:
        """End a subscription with what waits for it, but for the messages *kept*."""
        key, life = known.entry.subscription or "", self.destination(known.entry.place)
        del self.subscriptions[known.entry.place, key]
        life.subscriptions.pop(key, None)
        known.state, known.end = state, entry
        self.ended_subscriptions.append(known)
        for identifier, message in list(life.live.items()):
            wanted = key in message.waiting
            if wanted:
                del message.waiting[key]
            if wanted and not message.waiting and identifier not in kept:
                self._end(life, identifier, lives.ACKNOWLEDGED, _moment(entry))

    def _remove_destination(self, entry: Entry, file: FileLife) -> None:
        life = self.destination(entry.place)
        file.refers |= life.files
        life.is_removed = True
        for known in list(life.subscriptions.values()):
            file.refers |= known.create_files
            del self.subscriptions[entry.place, known.entry.subscription or ""]
            known.state, known.end = "dropped", entry
            self.ended_subscriptions.append(known)
        life.subscriptions.clear()
        life.creations.clear()
        life.files.clear()
        for identifier in list(life.live):
            self._end(life, identifier, lives.DROPPED, _moment(entry))

    # The end of the journal

    def _finish(self) -> None:
        """Let go of what was kept for later records, and tell what has no end."""
        while self._recent:
            (place, _), message = self._recent.popitem(last=False)
            self._emit(message, self.destination(place))
        self.acks.extend(self._recent_acks)
        self._recent_acks.clear()
        late: list[Message] = []
        for opened in self.open.values():
            late += self._undecided(opened)
        for life in self.destinations.values():
            for message in life.live.values():
                self._emit(message)
        for message in late:
            self._emit(message)
        if "transactions" in self.keeps:
            self.transactions.extend(self.open.items())

    def _undecided(self, opened: Transaction) -> list[Message]:
        """Return the messages that a transaction without outcome adds; hide what it removes."""
        is_prepared = opened.prepared is not None
        opened.outcome = lives.PREPARED if is_prepared else lives.OPEN
        added = []
        for operation in opened.operations:
            if operation.kind == "add":
                state = lives.IN_DOUBT if is_prepared else lives.OPEN
                added.append(Message(operation, _moment(operation), state))
            elif is_prepared:
                life = self.destination(operation.place)
                message = life.live.get(operation.message_id or "")
                if message is not None and operation.subscription is None:
                    message.state = lives.IN_DOUBT
                elif message is not None:
                    message.waiting.pop(operation.subscription or "", None)
                    message.state = message.state if message.waiting else lives.IN_DOUBT
        return added


def _moment(entry: Entry) -> Moment:
    return Moment(entry.written_after, entry.written_before)


def _is_topic(place: Place) -> bool:
    return place[0] in ("topic", "temp-topic")
