"""One bad thing harms only itself: an error is injected at every function of the core in turn.

Which functions there are is found out by watching a broad scenario; there is no list to keep.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, cast

import pytest

from lockkeeper.broker import containment, core
from lockkeeper.broker.diagnostics.queues import why_queue
from lockkeeper.broker.outputs import Delivery, Reply
from lockkeeper.broker.policies.expiry import ExpiryPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.redelivery import RedeliveryPolicy
from lockkeeper.broker.regions.body_cache import BodyCache
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.destination import parse_destination
from lockkeeper.store.base import StoreError

if TYPE_CHECKING:
    from conftest import Bench, Client

ROOM = core.__file__.removesuffix("core.py")
OWN = containment.__file__
NEIGHBOURS = [f"NEIGHBOUR.{number}" for number in range(4)]
REDELIVERED = DestinationPolicy(redelivery=RedeliveryPolicy(initial_redelivery_delay=1000))
EXPIRING = DestinationPolicy(expiry=ExpiryPolicy(expire_messages_period=500))


class InjectedError(Exception):
    """What no code of ours raises."""


def make(make_bench: "type[Bench]") -> "Bench":
    settings = BrokerSettings(scheduler=SchedulerSettings(enabled=True))
    return make_bench(settings=settings, REDELIVERED=REDELIVERED, EXPIRING=EXPIRING)


class Scenario:
    """What happens in a broker, all kinds of things; `ticks` are watched or made to fail."""

    def __init__(self, bench: "Bench") -> None:
        self.bench = bench
        self.client, self.other = bench.client("a"), bench.client("b")
        self.quiet = bench.client("quiet")
        self.neighbours = {name: self.quiet.consume(name) for name in NEIGHBOURS}
        self.sent: set[str] = set()
        self.taken: list[str] = []
        self.rung = 0

    def send(self, to: str, text: str, **fields: Any) -> None:
        self.sent.add(text)
        self.client.send(to, text, wait=False, **fields)

    def take(self, client: "Client", consumer: Any) -> None:
        """Acknowledge what a consumer was sent."""
        for delivery in client.deliveries(consumer):
            self.bench.broker.acknowledge(consumer, 2, delivery.message.sequence, 1, None)
            self.taken.append(delivery.message.identifier.decode())

    def begin(self) -> list[tuple["Client", Any]]:
        """Do everything that the core has ways for, up to the tick that carries it out."""
        bench, client, other = self.bench, self.client, self.other
        pairs = [
            (other, other.consume("PLAIN", prefetch=2)),
            (other, other.consume("SELECTED", selector="colour = 'red'")),
            (other, other.consume("GROUPED", prefetch=5)),
            (other, other.consume("topic://NEWS", selector="colour = 'red'")),
            (other, other.consume("topic://NEWS")),
            (other, other.consume("topic://NEWS", subscription_name="s")),
            (client, client.consume("Consumer.A.VirtualTopic.X")),
            (client, client.consume("topic://ActiveMQ.Advisory.>")),
            (other, other.consume("PULLED", prefetch=0)),
        ]
        bench.broker.pull(pairs[-1][1], 1000)
        for number in range(4):
            self.send("PLAIN", f"plain {number}")
            colour = {"colour": "red" if number % 2 else "blue"}
            self.send("SELECTED", f"selected {number}", properties=colour)
            self.send("GROUPED", f"grouped {number}", group_id="ab"[number % 2])
            self.send("topic://NEWS", f"news {number}", properties=colour, persistent=False)
        self.send("PLAIN,GROUPED", "composite")
        self.send("topic://VirtualTopic.X", "virtual")
        self.send("LATER", "later", properties={"AMQ_SCHEDULED_DELAY": 2000})
        self.send("EXPIRING", "expired", expiration=bench.now + 700)
        self.send("REDELIVERED", "redelivered")
        failing = other.consume("REDELIVERED")
        for delivery in other.deliveries(failing):
            bench.broker.poison(failing, delivery.message.sequence, 1, "broken", None)
        transaction = client.begin(7)
        self.send("PLAIN", "in transaction", transaction_id=transaction)
        bench.broker.transactions.commit(client.connection, transaction, None)
        for name in NEIGHBOURS:
            self.quiet.send(name, f"first to {name}", wait=False)
        bench.broker.context.timers.call_at(bench.broker.steady + 1, self._ring)
        return pairs

    def _ring(self) -> None:
        self.rung += 1

    def go_on(self, pairs: list[tuple["Client", Any]]) -> None:
        """Consume, let time pass, let everybody go."""
        bench = self.bench
        bench.tick(10)
        for client, consumer in pairs:
            self.take(client, consumer)
        bench.tick(10)
        for _ in range(6):
            bench.tick(600)
        for client, consumer in pairs:
            self.take(client, consumer)
        bench.tick(10)
        for client in (self.client, self.other):
            bench.broker.disconnect(client.connection)
        bench.tick(10)

    def rest(self) -> None:
        """Let pass what failed things may take to be tried again."""
        for _ in range(20):
            self.bench.tick(10_000)


@contextmanager
def inside(counted: dict[str, int]) -> Iterator[None]:
    """Count how deep a tick, a settlement or a disconnection is under way."""
    names = ("tick", "settle", "disconnect")
    before = {name: getattr(core.Broker, name) for name in names}

    def within(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            counted["depth"] += 1
            try:
                return function(*arguments)
            finally:
                counted["depth"] -= 1

        return call

    for name, function in before.items():
        setattr(core.Broker, name, within(function))
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(core.Broker, name, function)


# What is compiled has no code that could be watched.
ENTRIES = {
    getattr(getattr(core.Broker, name), "__code__", None)
    for name in ("tick", "settle", "disconnect")
}


def is_ours(code: CodeType) -> bool:
    return (
        code.co_filename.startswith(ROOM)
        and code.co_filename != OWN
        and code not in ENTRIES
        and not code.co_name.startswith("<")
    )


def functions_of(make_bench: "type[Bench]") -> list[CodeType]:
    """Return every function of the core that a tick, a settlement or a disconnection reaches."""
    found: dict[CodeType, None] = {}
    counted = {"depth": 0}

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and counted["depth"] and is_ours(frame.f_code):
            found.setdefault(frame.f_code)

    scenario = Scenario(make(make_bench))
    with inside(counted):
        sys.setprofile(watch)
        try:
            scenario.go_on(scenario.begin())
        finally:
            sys.setprofile(None)
    return list(found)


def fail_at(make_bench: "type[Bench]", target: CodeType) -> tuple[Scenario, bool]:
    """Run the scenario with an error at the first call of *target* within a tick."""
    counted = {"depth": 0}
    failed: list[bool] = []

    def inject(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is target and counted["depth"] and not failed:
            failed.append(True)
            raise InjectedError(target.co_qualname)

    scenario = Scenario(make(make_bench))
    with inside(counted):
        sys.setprofile(inject)
        try:
            scenario.go_on(scenario.begin())
        finally:
            sys.setprofile(None)
    return scenario, bool(failed)


def problems_of(scenario: Scenario) -> list[str]:
    """Return what is wrong with neighbours, timers and messages after an error."""
    bench, broker = scenario.bench, scenario.bench.broker
    found = []
    if scenario.rung != 1:
        found.append(f"the timer of somebody else rang {scenario.rung} times")
    scenario.rest()
    for name in NEIGHBOURS:
        scenario.quiet.send(name, f"again to {name}", wait=False)
    bench.tick()
    texts = [delivery.message for delivery in scenario.quiet.deliveries()]
    for name in NEIGHBOURS:
        count = sum(message.destination.name == name for message in texts)
        if count != 2:
            found.append(f"{name} delivered {count} of 2")
    scenario.rest()
    if broker.context.active:
        found.append("something is active for ever")
    stored: Any = bench.store
    for destination, references in stored._queues.items():
        region = broker.registry.find_queue(destination)
        waiting = {} if region is None else {id(each) for each in region.waiting()}
        held = {
            id(each)
            for connection in broker.connections.values()
            for consumer in connection.consumers.values()
            for each in consumer.dispatched.values()
        }
        lost = [each for each in references if each not in waiting and each not in held]
        if lost:
            found.append(f"{len(lost)} of {destination} are stored, and nobody has them")
    return found


@pytest.mark.replaces
def test_an_error_anywhere_in_the_core_harms_only_what_it_came_from(
    make_bench: "type[Bench]",
) -> None:
    functions = functions_of(make_bench)
    assert len(functions) > 150
    wrong = []
    missed = 0
    for target in functions:
        name = f"{target.co_filename.removeprefix(ROOM)}:{target.co_qualname}"
        try:
            scenario, has_failed = fail_at(make_bench, target)
        except Exception as error:
            wrong.append(f"{name}: escaped: {error!r}")
            continue
        missed += not has_failed
        wrong += [f"{name}: {problem}" for problem in problems_of(scenario)]
    assert not wrong, "\n".join(wrong)
    assert not missed


def always(error: Exception) -> Any:
    """Return a function that only fails."""

    def fails(*_: Any) -> Any:
        raise error

    return fails


@pytest.mark.replaces
def test_a_queue_that_always_fails_is_tried_less_and_less_often_and_says_why(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    client = bench.client()
    bad, good = (client.consume(name, prefetch=10_000) for name in ("BAD", "GOOD"))
    queue: Any = bench.broker.registry.find(parse_destination("BAD"))
    real, calls = Queue.hand_over, []

    def hand_over(self: Queue, *arguments: Any) -> None:
        if self is queue:
            calls.append(bench.now)
            raise InjectedError("a defect")
        real(self, *arguments)

    reported: list[str] = []
    bench.broker.containment.report = lambda record, _: reported.append(record.error)
    with monkeypatch.context() as defect:
        defect.setattr(Queue, "hand_over", hand_over)
        for number in range(3600):
            client.send("BAD", f"bad {number}", wait=False)
            client.send("GOOD", f"good {number}", wait=False)
            bench.tick(1000)
        assert len(client.texts(good)) == 3600
        assert 3600 // 64 <= len(calls) <= 3600 // 64 + 10
        assert reported == ["InjectedError: a defect"]
        (reason,) = why_queue(queue)
        assert (reason.code, reason.facts["count"]) == ("set-aside", len(calls))
        assert bench.broker.containment.counts["backlog"] == len(calls)
    bench.tick(64_000)
    assert sorted(client.texts(bad)) == sorted(f"bad {number}" for number in range(3600))
    assert why_queue(queue) == []


def test_a_timer_that_always_fails_is_tried_again_later(bench: "Bench") -> None:
    context = bench.broker.context
    tried: list[int] = []

    def fails() -> None:
        tried.append(context.steady)
        raise InjectedError("a defect")

    timer = context.timers.call_at(context.steady, fails)
    began = context.steady
    for _ in range(300):
        bench.tick(1000)
    assert [at - began for at in tried] == [1000, 2000, 4000, 8000, 16000, 32000, 64000,
                                            128000, 192000, 256000]  # fmt: skip
    timer.cancel()
    bench.tick(1_000_000)
    assert len(tried) == 10


def test_who_only_listens_keeps_nothing_from_happening(bench: "Bench") -> None:
    class Deaf:
        def __getattr__(self, name: str) -> Any:
            return always(InjectedError(name))

    bench.broker.listen(Deaf())
    client = bench.client()
    consumer = client.consume("Q")
    client.send("Q", "heard")
    assert client.texts(consumer) == ["heard"]
    client.leave()
    assert bench.broker.containment.counts["telling"] == 4
    assert not bench.broker.connections


def test_a_store_that_fails_is_not_contained(bench: "Bench") -> None:
    bench.broker.context.timers.call_at(bench.now, always(StoreError("the disk is gone")))
    with pytest.raises(StoreError, match="the disk is gone"):
        bench.tick()


@pytest.mark.replaces
def test_of_one_transaction_what_fails_comes_later_and_the_rest_at_once(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    client = bench.client()
    consumers = [client.consume(name) for name in "ABC"]
    transaction = client.begin()
    for name in "ABC":
        client.send(name, name, transaction_id=transaction)
    real = BodyCache.charge_run

    def charge_run(self: BodyCache, *arguments: Any) -> None:
        if self.destination.name == "B":
            raise InjectedError("a defect")
        real(self, *arguments)

    with monkeypatch.context() as defect:
        defect.setattr(BodyCache, "charge_run", charge_run)
        receipt = Reply(client.connection, 5)
        bench.broker.transactions.commit(client.connection, transaction, receipt)
        bench.tick()
    bench.tick(1000)
    told = client.outputs()
    sent = [cast("Delivery", each) for each in told if type(each) is tuple]
    texts = [each.loaded.destination.name for _, references in sent for each in references]
    assert sorted(texts) == ["A", "B", "C"]
    assert receipt in told
    assert len(consumers) == 3


@pytest.mark.replaces
def test_a_job_whose_arrival_failed_waits_for_its_time_all_the_same(
    make_bench: "type[Bench]", monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench(settings=BrokerSettings(scheduler=SchedulerSettings(enabled=True)))
    client = bench.client()
    real = BodyCache.charge

    def charge(self: BodyCache, *arguments: Any) -> None:
        if self.destination == JOBS:
            raise InjectedError("a defect")
        real(self, *arguments)

    with monkeypatch.context() as defect:
        defect.setattr(BodyCache, "charge", charge)
        client.send("Q", "later", properties={"AMQ_SCHEDULED_DELAY": 2_000})
    bench.tick()
    assert bench.depth("Q") == 0
    bench.tick(2_000)
    bench.tick()
    assert bench.depth("Q") == 1
