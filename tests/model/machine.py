"""Everything that may happen to one queue, as rules of a state machine."""

import shutil
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from oracle import Eater, Sent, State, Work
from watched import CONNECTIONS, WatchedQueue
from world import QUEUE, number_of

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.policies.dispatch import DispatchPolicy
from lockkeeper.broker.policies.flow import FlowPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.subscriptions.request import ConsumeRequest
from lockkeeper.message.ids import LocalTransactionId
from lockkeeper.message.openwire import AckType

SMALL_MEMORY = 3000
COLOURS = st.sampled_from([None, "red", "blue"])
CHOICE = st.integers(0, 11)
LEVELS = st.sampled_from([4, 4, 9, 0])
SOME = st.integers(1, 4)
NOTHING_SEEN, UNKNOWN = -1, -2


class QueueMachine(WatchedQueue):
    """Commands to the broker and, at each step, what the oracle says to what it did."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0
        self.works = 0
        self.unwritten = 0

    @initialize(
        prioritized=st.booleans(),
        all_exclusive=st.sampled_from([False, False, False, True]),
        strict=st.booleans(),
        lazy=st.booleans(),
        memory=st.sampled_from([0, SMALL_MEMORY]),
    )
    def open(
        self, prioritized: bool, all_exclusive: bool, strict: bool, lazy: bool, memory: int
    ) -> None:
        policy = DestinationPolicy(
            prioritized_messages=prioritized,
            memory_limit=memory,
            # What does not fit leaves the memory, persistent or not, instead of waiting for room.
            flow=FlowPolicy(producer_flow_control=False),
            dispatch=DispatchPolicy(
                strict_order_dispatch=strict,
                all_consumers_exclusive_by_default=all_exclusive,
                lazy_dispatch=lazy,
            ),
        )
        self.begin(policy)

    # Producers

    def _new(self, persistent: bool, fields: dict[str, Any], lifetime: int) -> Sent:
        self.numbers += 1
        sent = Sent(
            number=self.numbers,
            persistent=persistent,
            group=fields.get("group_id"),
            group_sequence=fields.get("group_sequence", 0),
            level=fields.get("priority", 4),
            colour=fields.get("colour"),
            expiration=self.world.now + lifetime if lifetime else 0,
        )
        self.oracle.sent[sent.number] = sent
        return sent

    def _send(
        self,
        connection: Connection,
        fields: dict[str, Any],
        persistent: bool,
        lifetime: int = 0,
        work: Work | None = None,
    ) -> None:
        sent = self._new(persistent, fields, lifetime)
        transaction = None if work is None else work.core.identifier
        message = self.world.message(
            sent.number,
            fields.pop("colour", None),
            persistent=sent.persistent,
            expiration=sent.expiration,
            transaction_id=transaction,
            **{"priority": 4, **fields},
        )
        if work is None:
            receipt = self.world.noting(lambda: _mark_stored(sent))
            self.world.broker.send(connection, message, receipt)
            self.oracle.appear(sent)
            sent.journal_place = sent.place
        else:
            sent.state = State.PENDING
            work.sent.append(sent)
            self.world.broker.send(connection, message, None)

    @rule(
        at=CHOICE,
        count=SOME,
        persistent=st.booleans(),
        priority=LEVELS,
        colour=COLOURS,
        lifetime=st.sampled_from([0, 0, 0, 50]),
        tick=st.booleans(),
    )
    def send(
        self,
        at: int,
        count: int,
        persistent: bool,
        priority: int,
        colour: str | None,
        lifetime: int,
        tick: bool,
    ) -> None:
        for _ in range(count):
            fields = {"priority": priority, "colour": colour}
            self._send(self.connection(at), fields, persistent, lifetime)
        self.turn(tick)

    @rule(
        at=CHOICE,
        group=st.sampled_from(["a", "b", "c"]),
        sequence=st.sampled_from([0, 0, 2, 1, -1]),
        colour=COLOURS,
        persistent=st.booleans(),
        tick=st.booleans(),
    )
    def send_of_group(
        self,
        at: int,
        group: str,
        sequence: int,
        colour: str | None,
        persistent: bool,
        tick: bool,
    ) -> None:
        fields = {"group_id": group, "group_sequence": sequence, "colour": colour}
        self._send(self.connection(at), fields, persistent)
        self.turn(tick)

    # Consumers

    @rule(
        at=CHOICE,
        prefetch=st.sampled_from([0, 1, 2, 3, 5, 100]),
        colour=COLOURS,
        priority=st.sampled_from([0, 0, 0, 5]),
        exclusive=st.sampled_from([False, False, True]),
    )
    def subscribe(
        self, at: int, prefetch: int, colour: str | None, priority: int, exclusive: bool
    ) -> None:
        connection = self.connection(at)
        self.works += 1
        request = ConsumeRequest(
            self.works,
            QUEUE,
            prefetch,
            selector=f"colour = '{colour}'" if colour else None,
            priority=priority,
            exclusive=exclusive,
            tag=self.works,
        )
        consumer = self.world.broker.subscriptions.subscribe(connection, request, None)
        eater = Eater(consumer, connection, prefetch, colour, priority, exclusive)
        self.oracle.join(eater)
        self.turn()

    def _held(self) -> list[Eater]:
        return [eater for eater in self.oracle.eaters if eater.held]

    def _some_held(self, at: int, upto: int) -> tuple[Eater, list[Sent], int]:
        """Return a consumer that holds messages, the first of these, the last one's sequence."""
        eaters = self._held()
        eater = eaters[at % len(eaters)]
        chosen = eater.held[: upto % len(eater.held) + 1]
        sequences = {number_of(r.loaded): s for s, r in eater.consumer.dispatched.items()}
        return eater, chosen, sequences[chosen[-1].number]

    @precondition(lambda self: self._held())
    @rule(at=CHOICE, upto=CHOICE, alone=st.booleans(), tick=st.booleans())
    def acknowledge(self, at: int, upto: int, alone: bool, tick: bool) -> None:
        eater, chosen, last = self._some_held(at, upto)
        if alone:
            chosen = chosen[-1:]
        kind = AckType.INDIVIDUAL if alone else AckType.STANDARD
        self.oracle.take(eater, chosen)
        for sent in chosen:
            sent.state = State.CONSUMED
        receipt = self.world.noting(lambda: _mark_ended(chosen))
        self.world.broker.acknowledge(eater.consumer, kind, last, len(chosen), receipt)
        self.turn(tick)

    @precondition(lambda self: self._held())
    @rule(at=CHOICE, upto=CHOICE, alone=st.booleans(), work=CHOICE, commits=st.booleans())
    def acknowledge_in_transaction(
        self, at: int, upto: int, alone: bool, work: int, commits: bool
    ) -> None:
        eater, chosen, last = self._some_held(at, upto)
        if alone:
            chosen = chosen[-1:]
        kind = AckType.INDIVIDUAL if alone else AckType.STANDARD
        entered = self._work(eater.connection, work)
        self.oracle.take(eater, chosen)
        for sent in chosen:
            sent.state = State.ACKED
            entered.acked.append((sent, eater))
        self.world.broker.transactions.acknowledge(
            eater.connection,
            eater.consumer,
            entered.core.identifier,
            last,
            len(chosen),
            kind,
        )
        if commits:
            self._commit(entered)
        self.turn()

    @precondition(lambda self: self._held())
    @rule(at=CHOICE, upto=CHOICE)
    def report_delivered(self, at: int, upto: int) -> None:
        eater, chosen, last = self._some_held(at, upto)
        eater.extension = min(eater.extension + len(chosen), len(eater.held))
        self.world.broker.acknowledge(eater.consumer, AckType.DELIVERED, last, len(chosen), None)
        self.turn()

    @precondition(lambda self: self._held())
    @rule(at=CHOICE, upto=CHOICE, expired=st.booleans())
    def refuse(self, at: int, upto: int, expired: bool) -> None:
        """The client found messages expired, or could not process them."""
        eater, chosen, last = self._some_held(at, upto)
        self.oracle.take(eater, chosen)
        for sent in chosen:
            sent.state = State.DEAD
        receipt = self.world.noting(lambda: _mark_ended(chosen))
        broker, consumer = self.world.broker, eater.consumer
        if expired:
            broker.acknowledge(consumer, AckType.EXPIRED, last, len(chosen), None)
        else:
            broker.poison(consumer, last, len(chosen), "refused", receipt)
        self.turn()

    @precondition(lambda self: any(eater.prefetch == 0 for eater in self.oracle.eaters))
    @rule(at=CHOICE, timeout=st.sampled_from([-1, 0, 30]))
    def pull(self, at: int, timeout: int) -> None:
        pulling = [eater for eater in self.oracle.eaters if eater.prefetch == 0]
        eater = pulling[at % len(pulling)]
        eater.pulls += 1
        self.world.broker.pull(eater.consumer, timeout)
        self.listen()
        self.turn()

    @precondition(lambda self: self.oracle.eaters)
    @rule(at=CHOICE, prefetch=st.sampled_from([1, 2, 10]))
    def resize(self, at: int, prefetch: int) -> None:
        eater = self.eater(at)
        eater.prefetch = prefetch
        self.world.broker.resize(eater.consumer, prefetch)
        self.turn()

    @precondition(lambda self: self.oracle.eaters)
    @rule(at=CHOICE, seen=st.integers(-2, 3))
    def close_consumer(self, at: int, seen: int) -> None:
        eater = self.eater(at)
        last, count = seen, len(eater.held) if seen == UNKNOWN else 0
        if seen >= 0:
            sequences = list(eater.consumer.dispatched)
            last = sequences[min(seen, len(sequences) - 1)] if sequences else 0
            count = min(seen + 1, len(sequences))
        self.oracle.leave(eater, count)
        self.world.broker.subscriptions.unsubscribe(eater.consumer, last)
        self.turn()

    @rule(at=CHOICE)
    def disconnect(self, at: int) -> None:
        """A connection breaks, and its client comes back as another one."""
        connection = self.connection(at)
        for work in [work for work in self.oracle.works if work.connection is connection]:
            if not work.commanded:
                self.oracle.works.remove(work)
                self.oracle.roll_back(work)
        for eater in [each for each in self.oracle.eaters if each.connection is connection]:
            self.oracle.leave(eater, len(eater.held))
        self.world.broker.disconnect(connection)
        self.connections[at % CONNECTIONS] = self.world.connect()
        self.turn()

    @rule(at=CHOICE, congested=st.sampled_from([False, False, True]))
    def congest(self, at: int, congested: bool) -> None:
        """A peer stops to take what it is sent, or takes it again."""
        connection = self.connection(at)
        connection.congested = congested
        self.world.region().activate()
        self.turn()

    # Transactions

    def _open_works(self) -> list[Work]:
        return [work for work in self.oracle.works if not work.commanded]

    def _work(self, connection: Connection, at: int) -> Work:
        """Return one of the connection's two transactions, begun if need be."""
        number = at % 2
        for work in self._open_works():
            if work.connection is connection and work.parity == number:
                return work
        self.works += 1
        identifier = LocalTransactionId(connection.identifier, self.works)
        core = self.world.broker.transactions.begin(connection, identifier)
        work = Work(connection, self.works, number, core)
        self.oracle.works.append(work)
        return work

    @rule(at=CHOICE, work=CHOICE, count=SOME, persistent=st.booleans(), priority=LEVELS)
    def send_in_transaction(
        self, at: int, work: int, count: int, persistent: bool, priority: int
    ) -> None:
        connection = self.connection(at)
        entered = self._work(connection, work)
        for _ in range(count):
            self._send(connection, {"priority": priority}, persistent, work=entered)
        self.turn()

    @precondition(lambda self: self._open_works())
    @rule(at=CHOICE, tick=st.booleans())
    def commit(self, at: int, tick: bool) -> None:
        works = self._open_works()
        self._commit(works[at % len(works)])
        self.turn(tick)

    def _commit(self, work: Work) -> None:
        work.commanded = True
        for sent in work.sent:
            sent.journal_place = self.oracle.next_place()

        def done() -> None:
            self.oracle.works.remove(work)
            self.oracle.commit(work)

        self.world.broker.transactions.commit(
            work.connection, work.core.identifier, self.world.noting(done)
        )

    @precondition(lambda self: self._open_works())
    @rule(at=CHOICE)
    def roll_back(self, at: int) -> None:
        works = self._open_works()
        work = works[at % len(works)]
        self.oracle.works.remove(work)
        self.oracle.roll_back(work)
        self.world.broker.transactions.rollback(work.connection, work.core.identifier, None)
        self.turn()

    # Time, the disk, the operator

    @rule(later=st.sampled_from([1, 20, 60]))
    def pass_time(self, later: int) -> None:
        self.turn(later=later)

    @rule()
    def write(self) -> None:
        stored = [sent for sent in self.oracle.sent.values() if sent.state is not State.PENDING]
        ended = [sent for sent in stored if sent.is_over]

        def done() -> None:
            self.unwritten -= 1
            for sent in stored:
                _mark_stored(sent)
            _mark_ended(ended)

        self.unwritten += 1
        self.world.write(done)
        self.turn()

    @rule()
    def sync(self) -> None:
        self.world.sync()
        self.turn()

    @rule(paused=st.sampled_from([False, False, True]))
    def pause(self, paused: bool) -> None:
        gate = self.world.region().gate
        if paused:
            gate.pause()
        else:
            gate.resume()
        self.oracle.paused = paused
        self.turn()

    @rule(end=st.sampled_from([None, None, None, "close", "kill"]))
    def restart(self, end: str | None) -> None:
        if end is None:
            return
        kill = end == "kill"
        self.world.restart(kill)
        self.unwritten = 0
        queue, dead = self.world.waiting(), self.world.dead()
        if kill:
            self.oracle.crash(queue, dead)
        else:
            self.oracle.close(queue, dead)
        self.connect_all()

    def teardown(self) -> None:
        """Have one consumer take everything, and find nothing left behind."""
        try:
            if hasattr(self, "oracle"):
                self._drain()
        finally:
            if hasattr(self, "world"):
                self.world.end()
            shutil.rmtree(self.directory)

    def _drain(self) -> None:
        self.pause(False)
        for at in range(CONNECTIONS):
            self.disconnect(at)
        self.write()
        while self.unwritten:
            self.sync()
        self.subscribe(0, 1000, None, 0, False)
        while self._held():
            self.acknowledge(0, len(self._held()[0].held) - 1, False, True)
        self.the_core_holds_what_it_should()
        assert self.world.waiting() == []
        dead = len(self.world.dead())
        assert dead or self.world.memory_used() == 0
        self.world.restart(kill=False)
        assert self.world.waiting() == []
        assert len(self.world.dead()) == dead


def _mark_stored(sent: Sent) -> None:
    sent.stored = sent.persistent


def _mark_ended(ended: list[Sent]) -> None:
    for sent in ended:
        sent.ended = True
