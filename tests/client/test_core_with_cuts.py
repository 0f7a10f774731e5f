"""The core on a played broker, cut at any moment: nothing is lost, nothing comes twice unsaid."""

import contextlib
import random
from collections import Counter
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from played_broker import PlayedBroker

from lockkeeper.client import Acknowledge, RedeliveryPolicy, RedeliveryPolicyMap
from lockkeeper.client.core.connection import ConnectionCore
from lockkeeper.client.core.consumer import ConsumerCore
from lockkeeper.client.core.delivery import Delivery
from lockkeeper.client.core.options import ConnectionOptions
from lockkeeper.client.core.producer import Draft
from lockkeeper.client.core.waiting import Moment, Procedure
from lockkeeper.client.errors import TransactionInDoubtError, TransactionRolledBackError
from lockkeeper.message.destination import queue
from lockkeeper.message.openwire import ConnectionId, ConnectionInfo, ConsumerInfo, ProducerInfo

T = TypeVar("T")
QUEUE = queue("Q")
AT_ONCE = RedeliveryPolicyMap(RedeliveryPolicy(-1, initial_redelivery_delay=0, redelivery_delay=0))
MODES = (
    Acknowledge.AUTO,
    Acknowledge.CLIENT,
    Acknowledge.DUPS_OK,
    Acknowledge.INDIVIDUAL,
    Acknowledge.TRANSACTED,
)
STEPS = 60


class World:
    """A client's core, its broker, and what befalls the link between them."""

    def __init__(
        self, seed: int, options: ConnectionOptions, version: int = 12, counts: bool = True
    ) -> None:
        self.random = random.Random(seed)
        info = ConnectionInfo(connection_id=ConnectionId("ID:c:1"), fault_tolerant=True)
        self.core = ConnectionCore(info, None, options, self.random.random)
        self.broker = PlayedBroker(self.core, version, counts)
        self.now = 100.0
        self.cuts = 0.05
        opening = self.core.introduce()
        self.run(self.core.answer(opening, self.moment()))

    def moment(self) -> Moment:
        return Moment(self.now, self.now)

    def step(self) -> None:
        """Let something happen: the link is made, cut, or carries a part of what is said."""
        self.now += 0.01
        broker, chance = self.broker, self.random.random()
        if not broker.is_linked:
            if chance < 0.5:
                broker.link()
        elif chance < self.cuts:
            broker.take_frames(self.random.randint(0, 4))
            broker.tell(self.random.randint(0, 4))
            broker.cut()
        elif chance < 0.6:
            broker.take_frames(self.random.randint(0, 5))
            broker.tell(self.random.randint(0, 5))
        else:
            broker.serve()
        self.core.tick(self.now)

    def run(self, procedure: Procedure[T]) -> T:
        """Carry a procedure out, whatever happens meanwhile."""
        try:
            next(procedure)
            for _ in range(10_000):
                self.step()
                procedure.send(self.moment())
        except StopIteration as stop:
            result: T = stop.value
            return result
        raise AssertionError("a call does not end")


class Application:
    """Sends and receives, and keeps books of it."""

    def __init__(self, world: World, mode: Acknowledge, prefetch: int) -> None:
        self.world = world
        self.mode = mode
        self.prefetch = prefetch
        core = world.core
        self.session = core.open_session(mode)
        self.consumer = self.open_consumer()
        sending = core.open_session(Acknowledge.AUTO)
        self.producer = world.run(sending.open_producer(ProducerInfo(), world.moment()))
        self.sent: list[str] = []
        self.handed: Counter[str] = Counter()
        self.kept: list[Delivery] = []
        self.committed: set[str] = set()

    def open_consumer(self) -> ConsumerCore:
        info = ConsumerInfo(
            destination=QUEUE,
            prefetch_size=self.prefetch,
            optimized_acknowledge=self.world.core.options.optimize_acknowledge,
        )
        opening = self.session.open_consumer(info, AT_ONCE, self.world.moment())
        return self.world.run(opening)

    def begin_again(self) -> None:
        """Go on with another consumer, once nothing is in hand."""
        self.finish_settling()
        self.session.close_consumer(self.consumer)
        self.consumer = self.open_consumer()

    def send(self) -> None:
        draft = Draft(28, QUEUE, True, 4, 0, 0, b"\x00\x00\x00\x01x", None)
        self.sent.append(self.world.run(self.producer.send(draft, self.world.moment())))

    def receive(self, seconds: float = 0.05) -> bool:
        world = self.world
        found = world.run(self.session.receive(self.consumer, seconds, world.moment()))
        if found is None:
            return False
        key = str(found.message_id)
        assert found.redelivery_counter or not self.handed[key], "it came twice, and nobody said so"
        assert key not in self.committed, "it is committed, and came again"
        self.handed[key] += 1
        self.kept.append(found)
        return True

    def settle(self) -> None:
        """Acknowledge or commit, or let it come again, as the mode allows."""
        world, session = self.world, self.session
        if self.mode is Acknowledge.TRANSACTED:
            try:
                if world.random.random() < 0.3:
                    world.run(session.rollback(None, world.moment()))
                else:
                    self.commit()
            except (TransactionInDoubtError, TransactionRolledBackError):
                pass
        elif self.mode in (Acknowledge.CLIENT, Acknowledge.INDIVIDUAL):
            if world.random.random() < 0.3:
                session.recover(world.moment())
            else:
                for delivery in self.kept:
                    session.acknowledge_message(self.consumer, delivery)
        self.kept.clear()

    def commit(self) -> None:
        self.world.run(self.session.commit(self.world.moment()))
        self.committed.update(str(each.message_id) for each in self.kept)

    def finish(self) -> None:
        """Take all that is left, over a link that holds."""
        world = self.world
        world.cuts = 0
        empty = 0
        while empty < 3:
            empty = 0 if self.receive(1.0) else empty + 1
            self.finish_settling()
        world.broker.serve()

    def finish_settling(self) -> None:
        if self.mode is Acknowledge.TRANSACTED:
            with contextlib.suppress(TransactionRolledBackError):
                self.commit()
        else:
            for delivery in self.kept:
                self.session.acknowledge_message(self.consumer, delivery)
        self.kept.clear()


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32),
    prefetch=st.sampled_from([0, 1, 2, 5, 20]),
    is_optimized=st.booleans(),
    version=st.sampled_from([12, 10, 9, 6]),
    counts=st.booleans(),
)
def test_nothing_is_lost_and_what_comes_twice_says_so(
    mode: Acknowledge, seed: int, prefetch: int, is_optimized: bool, version: int, counts: bool
) -> None:
    options = ConnectionOptions(optimize_acknowledge=is_optimized)
    world = World(seed, options, version, counts)
    application = Application(world, mode, prefetch)
    for _ in range(STEPS):
        chance = world.random.random()
        if chance < 0.4:
            application.send()
        elif chance < 0.8:
            application.receive()
        elif chance < 0.85 and counts:
            # What was lost with a link, a second consumer knows only from the broker.
            application.begin_again()
        else:
            application.settle()
    application.finish()
    assert set(application.sent) <= set(world.broker.stored)
    assert not world.broker.queue
    assert set(application.handed) == set(application.sent)
    assert world.broker.dead == []
    if mode in (Acknowledge.AUTO, Acknowledge.DUPS_OK):
        assert set(application.handed.values()) <= {1}, "what was acknowledged came again"


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_transactions_of_sends_happen_as_a_whole(seed: int) -> None:
    world = World(seed, ConnectionOptions())
    session = world.core.open_session(Acknowledge.TRANSACTED)
    producer = world.run(session.open_producer(ProducerInfo(), world.moment()))
    committed: list[str] = []
    doubtful: list[set[str]] = []
    for _ in range(12):
        unit = []
        for _ in range(world.random.randint(1, 4)):
            draft = Draft(28, QUEUE, True, 4, 0, 0, None, None)
            unit.append(world.run(producer.send(draft, world.moment())))
            world.step()
        if world.random.random() < 0.2:
            world.run(session.rollback(None, world.moment()))
            continue
        try:
            world.run(session.commit(world.moment()))
            committed += unit
        except TransactionInDoubtError:
            doubtful.append(set(unit))
    world.cuts = 0
    for _ in range(20):
        world.step()
    stored = world.broker.stored
    assert [key for key in stored if key in set(committed)] == committed
    for each in doubtful:
        assert each & set(stored) in (each, set())
    assert set(stored) <= set(committed).union(*doubtful)
