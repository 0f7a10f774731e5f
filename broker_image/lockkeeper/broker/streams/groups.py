"""Consumer groups: who is in them, how far they are, who holds which partition."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

from lockkeeper.broker.chores import Chore
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import BrokerError, ResourceAllocationError
from lockkeeper.broker.streams.answering import AnswerReceipt
from lockkeeper.broker.streams.errors import NoSuchPartitionError
from lockkeeper.broker.streams.names import NAME_CHARACTERS_MAX, check_group_name
from lockkeeper.broker.streams.outputs import Locked, MembersChanged
from lockkeeper.broker.streams.progress import Progress
from lockkeeper.broker.streams.settings import StreamsSettings
from lockkeeper.broker.streams.states import StateBook
from lockkeeper.message.ids import TransactionId
from lockkeeper.message.segments import GROUP_PREFIX
from lockkeeper.store.base import Operation, Receipt, StoreError

Place = tuple[str, int]
"""A stream and the number of a partition."""

WRITTEN_AT_ONCE: Final = 512
"""So many offsets and locks are written in a turn; a group weighs as much as GROUP_WEIGHT."""
GROUP_WEIGHT: Final = 8
LOOKED_AT_ONCE: Final = 4_096
"""At so many members is looked in a turn."""
_PARTITION_DIGITS: Final = 9


class Model(Enum):
    """CLUSTERING: each message to one member. BROADCASTING: each to all, offsets with them."""

    CLUSTERING = "clustering"
    BROADCASTING = "broadcasting"


class Subscribed(NamedTuple):
    """A member's subscription to a stream, as the client words it: tags or an SQL condition."""

    expression: str = "*"
    is_sql: bool = False


@dataclass(slots=True)
class Member:
    """A member of a group: its client id, its connection, what it subscribes to.

    `seen_at` is when it was last heard of, in ms of the steady clock. `is_push` tells how it
    consumes, `begins` where a group without an offset does, in its client's words.
    """

    client_id: str
    connection: Connection
    subscriptions: dict[str, Subscribed]
    seen_at: int = 0
    is_push: bool = True
    model: Model = Model.CLUSTERING
    begins: str = "last"


@dataclass(slots=True)
class Lock:
    """A lock on a partition: its owner's client id, and until when (ms of the steady clock)."""

    owner: str
    until: int


@dataclass(slots=True)
class Group:
    """A consumer group; `offsets` are the next ones to be consumed.

    `pending_locks` counts requests whose locks are not durable yet.
    """

    name: str
    members: dict[str, Member] = field(default_factory=dict)
    offsets: dict[Place, int] = field(default_factory=dict)
    locks: dict[Place, Lock] = field(default_factory=dict)
    progress: dict[Place, Progress] = field(default_factory=dict)
    pending_locks: int = 0

    def state(self) -> dict[str, Any]:
        """Return what is to outlive the broker."""
        offsets: dict[str, dict[str, int]] = {}
        for (stream, number), offset in self.offsets.items():
            offsets.setdefault(stream, {})[str(number)] = offset
        locks: dict[str, dict[str, str]] = {}
        for (stream, number), lock in self.locks.items():
            locks.setdefault(stream, {})[str(number)] = lock.owner
        return {"offsets": offsets, "locks": locks}


class LockReceipt(AnswerReceipt):
    """Answers a request for locks of a group once who holds them is durable."""

    def __init__(self, group: Group, connection: Connection, answer: Locked) -> None:
        super().__init__(connection, answer)
        self._group = group
        group.pending_locks += 1

    def settle(self) -> None:
        """Send the answer."""
        self._group.pending_locks -= 1
        super().settle()


class Groups:
    """All consumer groups; *is_there* tells whether there is a partition."""

    def __init__(
        self,
        context: Context,
        settings: StreamsSettings,
        book: StateBook,
        is_there: Callable[[Place], bool],
    ) -> None:
        self._context = context
        self._settings = settings
        self._book = book
        self._is_there = is_there
        # Set by whoever moves messages for groups of the broker's own.
        self.streams_fed_by: Callable[[str], Sequence[str]] = _none
        self._groups: dict[str, Group] = {}
        self._members: dict[Connection, dict[tuple[str, str], None]] = {}
        # Names of groups whose state is to be written.
        self._changed: dict[str, None] = {}
        self._is_writing_due = self._is_sweep_due = False
        self._writing = Chore(context, self._write_some, WRITTEN_AT_ONCE)
        self._sweeping = Chore(context, self._find_silent_ones, LOOKED_AT_ONCE)

    def __iter__(self) -> Iterator[Group]:
        """Iterate over all groups."""
        return iter(self._groups.values())

    def find(self, name: str) -> Group | None:
        """Return a group, if somebody has used it."""
        return self._groups.get(name)

    def open(self, name: str) -> Group:
        """Return a group, a new one at its first use. Raises BrokerError."""
        group = self._groups.get(name)
        if group is None:
            check_group_name(name)
            if len(self._groups) >= self._settings.limits.groups:
                raise ResourceAllocationError(
                    f"there are {len(self._groups)} groups already (streams.limits.groups)"
                )
            group = self._groups[name] = Group(name)
        return group

    def recover(self, name: str, state: Mapping[str, Any]) -> None:
        """Take a group back; its locks hold until their owners had time to renew them."""
        group = self._groups[name] = Group(name)
        for place, offset in _places(state.get("offsets")):
            if isinstance(offset, int):
                group.offsets[place] = offset
        until = self._context.steady + self._settings.lock_timeout
        for place, owner in _places(state.get("locks")):
            if isinstance(owner, str):
                group.locks[place] = Lock(owner, until)

    def delete(self, name: str) -> bool:
        """Forget a group without members; tells whether it was there. Raises BrokerError.

        A feed is a member of its group: without offsets it would move everything again.
        """
        group = self._groups.get(name)
        if group is None:
            return False
        if streams := self.streams_fed_by(name):
            raise BrokerError(
                f"group {name} feeds a queue from {', '.join(streams)}: reset it to feed "
                "everything again, or take the queue out of toQueues first"
            )
        if group.members:
            raise BrokerError(f"group {name} has {len(group.members)} members; stop them first")
        del self._groups[name]
        self._changed.pop(name, None)
        self._book.remove(GROUP_PREFIX + name)
        return True

    def forget_stream(self, stream: str) -> None:
        """Forget what groups know of a stream that is deleted, and write that."""
        for group in self._groups.values():
            for kept in (group.offsets, group.locks):
                for place in [place for place in kept if place[0] == stream]:
                    del kept[place]
                    self._changed[group.name] = None
            for place in [place for place in group.progress if place[0] == stream]:
                del group.progress[place]
        self.write()

    # Members

    def heartbeat(self, name: str, member: Member) -> None:
        """Hear of a member, new or not; the others are told when anything changed.

        Raises BrokerError.
        """
        group = self.open(name)
        known = group.members.get(member.client_id)
        limit = self._settings.limits.members
        if known is None and len(group.members) >= limit:
            raise ResourceAllocationError(
                f"group {name} has {limit} members already (streams.limits.members)"
            )
        member.seen_at = self._context.steady
        if known is not None and known.connection is not member.connection:
            self._members.get(known.connection, {}).pop((name, member.client_id), None)
        group.members[member.client_id] = member
        self._members.setdefault(member.connection, {})[name, member.client_id] = None
        if known is None or known.subscriptions != member.subscriptions:
            self._tell(group)
        self._have_silent_ones_found()

    def leave(self, name: str, client_id: str) -> None:
        """Let a member go, if it is there; its locks are free."""
        group = self._groups.get(name)
        if group is not None and client_id in group.members:
            self.unlock(name, client_id, list(group.locks))
            self._let_go(group, client_id)

    def _let_go(self, group: Group, client_id: str) -> None:
        """Let a member go; its locks stay until they expire."""
        member = group.members.pop(client_id)
        mine = self._members.get(member.connection, {})
        mine.pop((group.name, client_id), None)
        if not mine:
            self._members.pop(member.connection, None)
        self._tell(group)

    def forget(self, connection: Connection) -> None:
        """Let all members go whose connection has ended; their locks stay until they expire.

        A client whose connection broke may still work on what it holds.
        """
        for name, client_id in list(self._members.pop(connection, ())):
            group = self._groups[name]
            member = group.members.get(client_id)
            if member is not None and member.connection is connection:
                del group.members[client_id]
                self._tell(group)

    def _tell(self, group: Group) -> None:
        for connection in {id(m.connection): m.connection for m in group.members.values()}.values():
            connection.put(MembersChanged(group.name))

    def _have_silent_ones_found(self) -> None:
        if not self._is_sweep_due:
            self._is_sweep_due = True
            every = max(1, self._settings.member_timeout // 12)
            self._context.timers.call_at(self._context.steady + every, self._sweep)

    def _sweep(self) -> None:
        self._is_sweep_due = False
        if self._members:
            self._have_silent_ones_found()
        self._sweeping.begin()

    def _find_silent_ones(self) -> Iterator[int]:
        """Let members go that nobody has heard of for too long; they may still hold locks."""
        for group in list(self._groups.values()):
            earliest = self._context.steady - self._settings.member_timeout
            members = list(group.members.values())
            for member in members:
                if member.seen_at < earliest:
                    self._let_go(group, member.client_id)
            yield 1 + len(members)

    # Offsets

    def commit(self, name: str, place: Place, offset: int) -> None:
        """Note how far a group is; on the disk within `offsets_interval`. Raises BrokerError."""
        group = self.open(name)
        if group.offsets.get(place) != offset:
            group.offsets[place] = offset
            group.progress.setdefault(place, Progress()).moved_at = self._context.steady
            self._note(group)

    def note_read(self, name: str, place: Place, reader: str, offset: int) -> None:
        """Note that somebody reads a partition for a group, from an offset on."""
        group = self._groups.get(name)
        if group is not None:
            progress = group.progress.setdefault(place, Progress())
            if progress.reader != reader or offset < progress.began:
                progress.began = offset
            progress.reader, progress.asked_for = reader, offset
            progress.read_at = self._context.steady

    def commit_with(
        self,
        transaction: TransactionId,
        name: str,
        offsets: Mapping[Place, int],
        others: Sequence[Operation],
        receipt: Receipt,
    ) -> None:
        """Note how far a group is, in one batch of the journal with what came of it.

        Raises BrokerError, or StoreError with the offsets as they were.
        """
        group = self.open(name)
        before = dict(group.offsets)
        group.offsets.update(offsets)
        try:
            self._book.commit(transaction, GROUP_PREFIX + name, group.state(), others, receipt)
        except StoreError:
            group.offsets = before
            raise
        self._changed.pop(name, None)

    def _note(self, group: Group) -> None:
        self._changed[group.name] = None
        self._have_written()

    def _have_written(self) -> None:
        if not self._is_writing_due:
            self._is_writing_due = True
            # The rest of the interval is for those whose turn is later, and for the disk.
            due = self._context.steady + self._settings.offsets_interval * 4 // 5
            self._context.timers.call_at(due, self._begin_writing)

    def _begin_writing(self) -> None:
        self._is_writing_due = False
        self._writing.begin()

    def _write_some(self) -> Iterator[int]:
        """Write what has changed so far."""
        for name in list(self._changed):
            if name in self._changed:
                group = self._groups[name]
                self._write(group)
                yield GROUP_WEIGHT + len(group.offsets) + len(group.locks)
        if self._changed:
            self._have_written()

    def _write(self, group: Group, receipt: LockReceipt | None = None) -> None:
        self._changed.pop(group.name, None)
        self._book.put(GROUP_PREFIX + group.name, group.state(), receipt)

    def write(self, name: str | None = None) -> None:
        """Write at once what has changed of one group, or of all."""
        for each in list(self._changed) if name is None else [name]:
            if each in self._changed:
                self._write(self._groups[each])

    # Locks

    def lock(
        self, connection: Connection, tag: Any, name: str, client_id: str, places: Iterable[Place]
    ) -> None:
        """Give a member the locks that are free or its own, and answer which it holds.

        Who gets one is durable before it is told. Nobody holds a partition that there is not;
        raises BrokerError if there is none of them.
        """
        asked = dict.fromkeys(places)
        there = [place for place in asked if self._is_there(place)]
        if asked and not there:
            stream, number = next(iter(asked))
            raise NoSuchPartitionError(
                f"there is no partition {number} of a stream {stream[:NAME_CHARACTERS_MAX]!r}: "
                "declare the stream, or send to it, before its partitions are locked"
            )
        group, now = self.open(name), self._context.steady
        member = group.members.get(client_id)
        if member is not None:
            member.seen_at = now
        held: list[Place] = []
        is_news = False
        for place in there:
            lock = group.locks.get(place)
            if lock is not None and lock.owner != client_id and lock.until > now:
                continue
            is_news |= lock is None or lock.owner != client_id
            group.locks[place] = Lock(client_id, now + self._settings.lock_timeout)
            held.append(place)
        answer = Locked(tag, tuple(held))
        if is_news:
            self._write(group, LockReceipt(group, connection, answer))
        elif group.pending_locks:
            # What an earlier request got is not durable yet.
            self._context.settle_behind(AnswerReceipt(connection, answer))
        else:
            connection.put(answer)

    def unlock(self, name: str, client_id: str, places: Iterable[Place]) -> None:
        """Take a member's locks back, those it does hold."""
        group = self._groups.get(name)
        if group is None:
            return
        for place in list(places):
            lock = group.locks.get(place)
            if lock is not None and lock.owner == client_id:
                del group.locks[place]
                self._note(group)

    def holder(self, name: str, place: Place) -> str | None:
        """Return the client id of whoever holds a partition now."""
        group = self._groups.get(name)
        lock = None if group is None else group.locks.get(place)
        return None if lock is None or lock.until <= self._context.steady else lock.owner


def _none(group: str) -> Sequence[str]:
    """Tell that a group is no feed's."""
    return ()


def allocate(members: Iterable[str], partitions: int) -> dict[str, list[int]]:
    """Return which member reads which partitions: evenly, in order of their client ids.

    As RocketMQ's AllocateMessageQueueAveragely does.
    """
    ordered = sorted(members)
    found: dict[str, list[int]] = {}
    start = 0
    for index, member in enumerate(ordered):
        share = partitions // len(ordered) + (index < partitions % len(ordered))
        found[member] = list(range(start, start + share))
        start += share
    return found


def _places(kept: object) -> list[tuple[Place, Any]]:
    """Return the values of a state by stream and partition."""
    if not isinstance(kept, dict):
        return []
    return [
        ((str(stream), int(number)), value)
        for stream, numbers in kept.items()
        if isinstance(numbers, dict)
        for number, value in numbers.items()
        if str(number).isdecimal() and len(str(number)) <= _PARTITION_DIGITS
    ]
