"""What a queue promises, told from what went in and what came out alone.

It knows nothing of how the broker chooses: each delivery must be allowed when it happens, and
after each turn nothing may be left that somebody should have had.
"""

from dataclasses import dataclass, field
from enum import Enum, auto

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.transactions import Transaction


class State(Enum):
    PENDING = auto()
    """Sent in a transaction that is not committed."""
    WAITING = auto()
    HELD = auto()
    ACKED = auto()
    """Acknowledged in a transaction that is not committed."""
    CONSUMED = auto()
    DEAD = auto()
    """Expired or refused: a dead letter, if persistent."""


@dataclass(eq=False)
class Sent:
    """A message. `place` orders those that were never given back, by when they became visible."""

    number: int
    persistent: bool
    group: str | None
    group_sequence: int
    level: int
    colour: str | None
    expiration: int
    state: State = State.WAITING
    place: int = 0
    journal_place: int = 0
    returned: bool = False
    holder: "Eater | None" = field(default=None, repr=False)
    delivery: int = 0
    redeliveries: int = 0
    stored: bool = False
    """Durable: it outlives a kill."""
    ended: bool = False
    """Its end is durable: it does not come back after a kill."""

    @property
    def is_over(self) -> bool:
        return self.state in (State.CONSUMED, State.DEAD)


@dataclass(eq=False)
class Eater:
    """A consumer. `held` are in the order of delivery."""

    consumer: Consumer = field(repr=False)
    connection: Connection = field(repr=False)
    prefetch: int
    colour: str | None
    priority: int
    exclusive: bool
    extension: int = 0
    pulls: int = 0
    held: list[Sent] = field(default_factory=list, repr=False)
    closed: bool = False

    def credit(self) -> int:
        if self.connection.congested:
            return 0
        if self.prefetch == 0:
            return self.pulls
        return self.prefetch + self.extension - len(self.held)

    def wants(self, sent: Sent) -> bool:
        return self.colour is None or self.colour == sent.colour


@dataclass(eq=False)
class Work:
    """A local transaction; `commanded` from its commit on, until that is durable."""

    connection: Connection
    number: int
    parity: int
    core: Transaction
    sent: list[Sent] = field(default_factory=list)
    acked: list[tuple[Sent, Eater]] = field(default_factory=list)
    commanded: bool = False


class Oracle:
    """The queue as it must be."""

    def __init__(self, prioritized: bool, all_exclusive: bool) -> None:
        self.prioritized = prioritized
        self.all_exclusive = all_exclusive
        self.paused = False
        self.now = 0
        self.sent: dict[int, Sent] = {}
        self.eaters: list[Eater] = []
        self.works: list[Work] = []
        self.exclusive: Eater | None = None
        self.owners: dict[str, Eater] = {}
        self.maybe_dead: set[int] = set()
        self._places = 0
        self._deliveries = 0

    # Messages come

    def next_place(self) -> int:
        self._places += 1
        return self._places

    def appear(self, sent: Sent) -> None:
        """Let consumers have a message from now on."""
        sent.state = State.WAITING
        sent.place = self.next_place()

    # Consumers come and go

    def join(self, eater: Eater) -> None:
        eater.exclusive = eater.exclusive or self.all_exclusive
        self.eaters.append(eater)
        owner = self.exclusive
        if eater.exclusive and (owner is None or eater.priority > owner.priority):
            self.exclusive = eater
        self._release_groups()

    def leave(self, eater: Eater, seen: int) -> None:
        """End a consumer; the first *seen* messages that it holds were seen by its user."""
        eater.closed = True
        self.eaters.remove(eater)
        if self.exclusive is eater:
            willing = [each for each in self.eaters if each.exclusive]
            self.exclusive = max(willing, key=lambda each: each.priority, default=None)
        self._release_groups()
        for sent in eater.held[:seen]:
            sent.redeliveries += 1
        for sent in eater.held:
            self._return(sent)
        eater.held = []

    def _release_groups(self) -> None:
        """End the ownership of those who take part no more."""
        taking = self.eaters if self.exclusive is None else [self.exclusive]
        self.owners = {key: owner for key, owner in self.owners.items() if owner in taking}

    def _return(self, sent: Sent) -> None:
        sent.state = State.WAITING
        sent.returned = True

    # Messages go

    def take(self, eater: Eater, sent: list[Sent]) -> None:
        """Let a consumer be done with messages that it holds, whatever becomes of them."""
        eater.extension = max(0, eater.extension - len(sent))
        eater.held = [each for each in eater.held if each not in sent]

    def roll_back(self, work: Work) -> None:
        """Undo what a transaction did: its messages are as if never acknowledged."""
        for sent, eater in work.acked:
            if eater.closed:
                sent.redeliveries += 1
                self._return(sent)
            else:
                sent.state = State.HELD
                eater.held.append(sent)
                eater.held.sort(key=lambda each: each.delivery)
        for sent in work.sent:
            sent.state = State.CONSUMED
            sent.ended = True

    def commit(self, work: Work) -> None:
        """Carry out what is durable now."""
        for sent in work.sent:
            sent.stored = sent.persistent
            self.appear(sent)
        for sent, _ in work.acked:
            sent.state = State.CONSUMED
            sent.ended = True

    # What is promised

    def may_have(self, eater: Eater, sent: Sent) -> bool:
        """Tell whether a message that waits is for this consumer, with room for it or not."""
        if self.paused or not eater.wants(sent) or self.is_expired(sent):
            return False
        if self.exclusive is not None and eater is not self.exclusive:
            return False
        if self.owner_of(sent) not in (None, eater):
            return False
        alike = (other for other in self._of_group(sent) if other.colour == sent.colour)
        return not any(self.precedes(other, sent) for other in alike)

    def must_have(self, eater: Eater, sent: Sent) -> bool:
        """Tell whether nothing but room keeps a consumer from having a message."""
        if not self.may_have(eater, sent):
            return False
        return all(self.precedes(sent, other) for other in self._of_group(sent))

    def _of_group(self, sent: Sent) -> list[Sent]:
        """Return what else waits of its group: in order, as far as the same consumers want it."""
        if sent.group is None:
            return []
        return [each for each in self.waiting() if each.group == sent.group and each is not sent]

    def owner_of(self, sent: Sent) -> Eater | None:
        if sent.group is None or sent.group_sequence == 1:
            return None
        return self.owners.get(sent.group)

    def is_expired(self, sent: Sent) -> bool:
        return 0 < sent.expiration < self.now

    def precedes(self, first: Sent, second: Sent) -> bool:
        """Tell whether it is promised that *first* comes before *second*, to whom may have both."""
        if self.prioritized and first.level != second.level:
            return first.level > second.level
        if first.returned and second.returned:
            return first.holder is second.holder and first.delivery < second.delivery
        if first.returned or second.returned:
            return first.returned
        return first.place < second.place

    def turn_of(self, sent: Sent) -> tuple[int, bool, int]:
        """Return what sorts messages by the queue's order: what came back is first."""
        level = -sent.level if self.prioritized else 0
        return level, not sent.returned, sent.delivery if sent.returned else sent.place

    def waiting(self) -> list[Sent]:
        return [sent for sent in self.sent.values() if sent.state is State.WAITING]

    def objection(self, eater: Eater, sent: Sent) -> str | None:
        """Return why a message must not go to a consumer now; None when it may."""
        if sent.state is not State.WAITING:
            return f"{sent} does not wait"
        if eater not in self.eaters:
            return "the consumer is gone"
        if eater.credit() <= 0:
            return "the consumer has no room"
        if not self.may_have(eater, sent):
            return f"{sent} is not for this consumer"
        for other in self.waiting():
            if self.precedes(other, sent) and self.must_have(eater, other):
                return f"{other} comes before {sent}"
        for each in self.eaters:
            if each.priority > eater.priority and each.credit() > 0 and self.may_have(each, sent):
                return f"{each} has a higher priority"
        return None

    def deliver(self, eater: Eater, sent: Sent, redeliveries: int, first: bool) -> None:
        """Note a delivery to which there is no objection, and check what comes with it."""
        assert redeliveries == sent.redeliveries, f"{sent} came with counter {redeliveries}"
        assert first == (sent.group is not None and self.owner_of(sent) is None), sent
        if sent.group is not None:
            if sent.group_sequence < 0:
                self.owners.pop(sent.group, None)
            else:
                self.owners[sent.group] = eater
        self._deliveries += 1
        sent.state, sent.holder, sent.delivery = State.HELD, eater, self._deliveries
        sent.returned = False
        eater.held.append(sent)
        eater.pulls = max(0, eater.pulls - 1)

    def undelivered(self) -> str | None:
        """Return a message that somebody should have by now; None if all is well."""
        for sent in self.waiting():
            for eater in self.eaters:
                if eater.credit() > 0 and self.must_have(eater, sent):
                    return f"{sent} should be with {eater}"
        return None

    # The end of a broker

    def crash(self, queue: list[int], dead: list[int]) -> None:
        """Compare what outlived a kill with what had to, and go on with that."""
        found, buried = set(queue), set(dead)
        assert len(queue) == len(found), "a message is twice in the queue"
        for work in self.works:
            if work.commanded:
                self._settle_work(work, found)
            else:
                self._forget_work(work)
        for sent in self.sent.values():
            if sent.number in found:
                assert sent.persistent, f"{sent} was not persistent"
                assert not sent.ended, f"{sent} had come to its end"
            elif sent.state is State.DEAD and sent.persistent:
                assert sent.number in buried or not sent.stored, f"{sent}: no dead letter"
                sent.state = State.DEAD if sent.number in buried else State.CONSUMED
            else:
                assert not sent.stored or sent.is_over, f"{sent} is lost"
        # A kill between two records leaves a dead letter and the message itself.
        self.maybe_dead |= buried
        self._begin_again(queue)

    def _settle_work(self, work: Work, found: set[int]) -> None:
        """Find out whether a commit is there: as a whole, or not at all."""
        sent = [each for each in work.sent if each.persistent]
        arrived = [each for each in sent if each.number in found]
        # An acknowledged message that never was durable may be gone, whatever the outcome.
        acked = [each for each, _ in work.acked if each.stored]
        gone = [each for each in acked if each.number not in found]
        assert len(arrived) in (0, len(sent)), "half of what a transaction sent is there"
        assert len(gone) in (0, len(acked)), "half of what a transaction took is there"
        assert not sent or not acked or bool(arrived) == bool(gone), "half of a transaction"
        if arrived or gone:
            self.commit(work)

    def _forget_work(self, work: Work) -> None:
        for sent in work.sent:
            sent.state, sent.ended = State.CONSUMED, True

    def close(self, queue: list[int], dead: list[int]) -> None:
        """Compare what outlived a clean stop with what must have, and go on with that."""
        for work in self.works:
            if work.commanded:
                self.commit(work)
            else:
                self._forget_work(work)
        kept = [each for each in self.sent.values() if each.persistent and not each.is_over]
        assert sorted(queue) == sorted(each.number for each in kept)
        self.check_dead(dead)
        self._begin_again(queue)

    def check_dead(self, dead: list[int]) -> None:
        """Check that the dead letters are what expired or was refused."""
        expected = {s.number for s in self.sent.values() if s.state is State.DEAD and s.persistent}
        assert expected <= set(dead) <= expected | self.maybe_dead
        if not self.maybe_dead:
            assert len(dead) == len(expected)

    def _begin_again(self, queue: list[int]) -> None:
        """Go on with what is there now, in the order of the journal."""
        places = {number: place for place, number in enumerate(queue)}
        in_order = sorted(queue, key=lambda number: self.sent[number].journal_place)
        if not self.prioritized:
            assert queue == in_order, f"{queue} in the order of the journal: {in_order}"
        for sent in self.sent.values():
            sent.returned, sent.holder, sent.redeliveries = False, None, 0
            if sent.number in places:
                sent.state, sent.place = State.WAITING, sent.journal_place
                sent.stored = True
            elif not sent.is_over:
                sent.state, sent.ended = State.CONSUMED, True
        self.eaters, self.works, self.owners = [], [], {}
        self.exclusive, self.paused = None, False
