"""Clients of streams: producers, and members of groups; each is a process of its own."""

import random
from typing import TYPE_CHECKING, Any

from simulation.hub import MILLISECOND, SECOND
from simulation.stream_links import Command, Link, LinkLostError

from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.groups import Member, Subscribed, allocate
from lockkeeper.broker.streams.outputs import Appended, CheckTransaction, ReadResult
from lockkeeper.broker.streams.streams import RETRY_PREFIX
from lockkeeper.broker.streams.transactions import Outcome
from lockkeeper.broker.streams.waiting import Read

if TYPE_CHECKING:
    from simulation.stream_life import StreamLife

LOG = "log"
PARTITIONS = 3
PRODUCERS = "producers"
LOCK_MS = 4_000
LEVELS_MS = (200, 1_000, 2_000)
BEAT = SECOND // 2
RENEWAL = SECOND
COMMIT = SECOND // 2
DUE = "due"


class Actor:
    """A client that begins anew whenever it has lost its link."""

    def __init__(self, life: "StreamLife", name: str) -> None:
        self.life = life
        self.name = name
        self.books = life.books
        self.hub = life.world.hub
        self.chance = random.Random(f"{life.seed} {name}")
        self.is_stopping = False
        self.process = life.world.start(name)
        self.hub.spawn(self.process, self._run)

    def _run(self) -> None:
        while not self.is_stopping:
            try:
                self.work(Link(self.life, self.name))
            except LinkLostError:
                self.books.counts["lost"] += 1
            except BrokerError as error:
                self.books.counts[f"refused: {type(error).__name__}"] += 1
                self.life.pair.note(f"{self.name}: {error}")
            self.hub.sleep(self.chance.randint(50, 500) * MILLISECOND)
        self.hub.kill(self.process)

    def work(self, link: Link) -> None:
        """Do something until it is time to stop. Raises LinkLostError."""
        raise NotImplementedError

    def pause(self) -> None:
        """Let a moment pass."""
        self.hub.sleep(self.chance.randint(1, 60) * MILLISECOND)


class Producer(Actor):
    """Sends messages, some of them delayed, some in transactions; answers questions."""

    _numbers = 0

    def work(self, link: Link) -> None:
        link.ask(self._introduce)
        while not self.is_stopping:
            kind = self.chance.random() if self.life.is_producing else 1.0
            if kind < 0.5:
                self._send(link)
            elif kind < 0.65:
                self._send_later(link)
            elif kind < 0.8:
                self._send_in_transaction(link)
            elif kind == 1.0:
                link.ask(self._introduce)
            self._answer(link)
            self.pause()

    def _introduce(self, broker: Any, connection: Any, _: int) -> bool:
        broker.streams.producer_heartbeat(connection, PRODUCERS, self.name)
        return True

    def _name(self) -> str:
        self._numbers += 1
        return f"{self.name}-{self._numbers}"

    def _draft(self, name: str, due: int = 0) -> Draft:
        # Some segments and files go by.
        body = name.encode() + b" " * self.chance.choice((0, 50, 3_000))
        return Draft(body, {DUE: str(due)} if due else {})

    def _send(self, link: Link) -> None:
        names = [self._name() for _ in range(self.chance.randint(1, 3))]
        drafts, partition = [self._draft(name) for name in names], self._partition()
        answer: Appended = link.ask(
            lambda broker, connection, tag: broker.streams.append(
                connection, tag, LOG, partition, drafts
            )
        )
        for at, name in enumerate(names):
            self.books.stored(LOG, partition, answer.offset + at, name)
            self.books.confirm(name)

    def _partition(self) -> int:
        return self.chance.randrange(PARTITIONS)

    def _send_later(self, link: Link) -> None:
        name, partition, level = self._name(), self._partition(), self.chance.randint(1, 3)
        draft = self._draft(name, self.hub.now + LEVELS_MS[level - 1] * MILLISECOND)
        link.ask(
            lambda broker, connection, tag: broker.streams.append(
                connection, tag, LOG, partition, [draft], delay_level=level
            )
        )
        self.books.confirm(name)

    def _send_in_transaction(self, link: Link) -> None:
        name, partition = self._name(), self._partition()
        draft, is_commit = self._draft(name), self.chance.random() < 0.6
        self.books.decide(name, is_commit)
        half = link.ask(
            lambda broker, connection, tag: broker.streams.begin_transaction(
                connection, tag, PRODUCERS, LOG, partition, draft
            )
        )
        if is_commit:
            self.books.confirm(name)
        if self.chance.random() < 0.7:
            self._end(link, half.number, is_commit)

    def _end(self, link: Link, number: int, is_commit: bool) -> None:
        outcome = Outcome.COMMIT if is_commit else Outcome.ROLLBACK
        link.ask(
            lambda broker, connection, tag: broker.streams.end_transaction(
                connection, tag, number, outcome
            )
        )

    def _answer(self, link: Link) -> None:
        """Answer questions about transactions, whoever of the group began them."""
        notices, link.notices = link.notices, []
        for each in notices:
            if isinstance(each, CheckTransaction):
                self.books.counts["questions"] += 1
                name = each.draft.body.split()[0].decode()
                try:
                    self._end(link, each.number, self.books.outcomes[name])
                except BrokerError:
                    # It has its outcome: another one was asked as well.
                    continue


class GroupMember(Actor):
    """A member of a group: reads its share of the partitions, and says how far it is."""

    def __init__(self, life: "StreamLife", group: str, name: str) -> None:
        self.group = group
        self.in_order = group == life.ordered
        super().__init__(life, name)

    def work(self, link: Link) -> None:
        self._link = link
        self._places: dict[tuple[str, int], int] = {}
        self._told: dict[tuple[str, int], int] = {}
        self._until: dict[tuple[str, int], int] = {}
        self._beaten_at = self._renewed_at = self._committed_at = -SECOND * 9
        while not self.is_stopping:
            if self.hub.now - self._beaten_at > BEAT:
                self._balance()
            if self.in_order and self.hub.now - self._renewed_at > RENEWAL:
                self._lock()
            self.pause()
            for place in list(self._places):
                self._consume(place)
            if self.hub.now - self._committed_at > COMMIT:
                self._commit(list(self._places))
        self._give_back(list(self._places))
        link.ask(self._leave)
        self.books.counts["left"] += 1

    def _leave(self, broker: Any, _: Any, __: int) -> bool:
        broker.streams.groups.leave(self.group, self.name)
        return True

    # Who reads what

    def _balance(self) -> None:
        self._beaten_at = self.hub.now
        members: list[str] = self._link.ask(self._beat)
        wanted = {(LOG, each) for each in allocate(members, PARTITIONS)[self.name]}
        wanted |= {(RETRY_PREFIX + self.group, each) for each in allocate(members, 1)[self.name]}
        self._give_back([place for place in self._places if place not in wanted])
        new = [place for place in wanted if place not in self._places]
        for place in sorted(new):
            self._places[place] = -1
            if not self.in_order:
                self._places[place] = self._offset(place)

    def _beat(self, broker: Any, connection: Any, _: int) -> list[str]:
        subscriptions = {LOG: Subscribed()}
        broker.streams.groups.heartbeat(self.group, Member(self.name, connection, subscriptions))
        return list(broker.streams.groups.find(self.group).members)

    def _offset(self, place: tuple[str, int]) -> int:
        def ask(broker: Any, _: Any, __: int) -> int:
            group = broker.streams.groups.find(self.group)
            return int(group.offsets.get(place, 0))

        found: int = self._link.ask(ask)
        return found

    def _give_back(self, places: list[tuple[str, int]]) -> None:
        if not places:
            return
        self._commit(places)
        for place in places:
            del self._places[place]
            self._told.pop(place, None)
            if self._until.pop(place, None) is not None:
                self.books.disown((self.group, *place), self.name)
        if self.in_order:
            self._link.ask(self._unlocking(places))

    def _unlocking(self, places: list[tuple[str, int]]) -> Command:
        def unlock(broker: Any, _: Any, __: int) -> bool:
            broker.streams.groups.unlock(self.group, self.name, places)
            return True

        return unlock

    def _lock(self) -> None:
        """Ask for the locks of all partitions; each is held from when it was asked for."""
        self._renewed_at = asked_at = self.hub.now
        places = [place for place in self._places if place[0] == LOG]
        if not places:
            return
        answer = self._link.ask(
            lambda broker, connection, tag: broker.streams.groups.lock(
                connection, tag, self.group, self.name, places
            )
        )
        until = asked_at + LOCK_MS * MILLISECOND
        for place in answer.partitions if until > self.hub.now else ():
            self.books.own((self.group, *place), self.name, until)
            was_mine = self._until.get(place, 0) > self.hub.now
            self._until[place] = until
            if not was_mine or self._places[place] < 0:
                self._places[place] = self._offset(place)
                self.books.begin_tenure((self.group, *place))
        for place in places:
            if place not in answer.partitions and self._until.pop(place, None) is not None:
                self.books.disown((self.group, *place), self.name)

    def _may_consume(self, place: tuple[str, int]) -> bool:
        if not self.in_order or place[0] != LOG:
            return True
        return self._until.get(place, 0) > self.hub.now

    # Messages

    def _consume(self, place: tuple[str, int]) -> None:
        stream, number = place
        if self._places[place] < 0:
            if stream == LOG:
                self.pause()
                return
            self._places[place] = self._offset(place)
        wait = self.chance.choice((0, 0, 100))
        read = Read(stream, number, self._places[place], self.chance.randint(1, 8), wait_ms=wait)
        try:
            result: ReadResult = self._link.ask(
                lambda broker, connection, tag: broker.streams.read(connection, tag, read)
            )
        except BrokerError:
            # Nobody has sent there yet, or given anything back.
            self.pause()
            return
        for record in result.records:
            name = record.draft.body.split()[0].decode()
            self.books.stored(stream, number, record.offset, name)
            if not self._may_consume(place):
                return
            if not self._take(place, record, name):
                return
            self._places[place] = record.offset + 1
        if not result.records:
            self._places[place] = max(self._places[place], result.next_offset)
            self.pause()

    def _take(self, place: tuple[str, int], record: Any, name: str) -> bool:
        """Consume a message, or give it back; tells whether to go on behind it."""
        if self.in_order and place[0] == LOG:
            self.books.consume_in_order((self.group, *place), self.name, record.offset)
            if self.chance.random() < 0.02:
                # The queue is suspended for a moment; the message comes again.
                self.pause()
                return False
        elif self.life.is_producing and self.chance.random() < 0.05:
            self._send_back(place, record.offset)
            return True
        self.books.consume(self.group, name, int(record.draft.properties.get(DUE, 0)))
        return True

    def _send_back(self, place: tuple[str, int], offset: int) -> None:
        level = self.chance.randint(0, 3)
        self.books.counts["given back"] += 1
        self._link.ask(
            lambda broker, connection, tag: broker.streams.send_back(
                connection, tag, self.group, *place, offset, level, 1_000
            )
        )

    def _commit(self, places: list[tuple[str, int]]) -> None:
        """Say how far it is."""
        self._committed_at = self.hub.now
        reached = {
            place: self._places[place]
            for place in places
            if self._places[place] > 0 and self._told.get(place) != self._places[place]
        }
        process = self._link.process
        if self.in_order:
            reached = {place: each for place, each in reached.items() if self._may_consume(place)}

        def say(broker: Any, _: Any, __: int) -> bool:
            for place, offset in reached.items():
                broker.streams.commit_offset(self.group, *place, offset)
                self.books.commit((self.group, *place), offset, process)
            return True

        if reached:
            self._link.ask(say)
            self._told.update(reached)
