"""A clock that is set changes no timer; what has a date goes by the new time."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.policies.dispatch import DispatchPolicy
from lockkeeper.broker.policies.expiry import ExpiryPolicy
from lockkeeper.broker.policies.flow import FlowPolicy
from lockkeeper.broker.policies.inactivity import InactivityPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.redelivery import RedeliveryPolicy
from lockkeeper.broker.policies.slow_consumers import SlowConsumerPolicy, SlowConsumerStrategy
from lockkeeper.broker.policies.subscription_recovery import (
    RecoveryStrategy,
    SubscriptionRecoveryPolicy,
)
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SchedulerSettings, SystemUsage
from lockkeeper.message.destination import parse_destination

if TYPE_CHECKING:
    from conftest import Bench

HOUR = 3_600_000
STEPS = [HOUR, -HOUR]
LONGEST, LOOK = 12_000, 100
CLOSING = "closing"
IsOver = Callable[[], bool]


def slow(strategy: SlowConsumerStrategy, **fields: Any) -> DestinationPolicy:
    limits = {"check_period": 1_000, "max_slow_duration": 3_000} | fields
    return DestinationPolicy(slow_consumers=SlowConsumerPolicy(strategy, **limits))


POLICIES: dict[str, Any] = {
    "AGAIN": DestinationPolicy(redelivery=RedeliveryPolicy(maximum_redeliveries=2)),
    "FULL": DestinationPolicy(
        memory_limit=1, flow=FlowPolicy(send_fail_if_no_space_after_timeout=3_000)
    ),
    "GC_>": DestinationPolicy(inactivity=InactivityPolicy(True, 2_000)),
    "SLOW": slow(SlowConsumerStrategy.ABORT_SLOW),
    "ACK": slow(SlowConsumerStrategy.ABORT_SLOW_ACK, max_time_since_last_ack=2_000),
    "LATER": DestinationPolicy(dispatch=DispatchPolicy(time_before_dispatch_starts=1_500)),
    "KEPT": DestinationPolicy(
        subscription_recovery=SubscriptionRecoveryPolicy(
            RecoveryStrategy.TIMED, recover_duration=4_000
        )
    ),
    "DATED": DestinationPolicy(expiry=ExpiryPolicy(expire_messages_period=500)),
}
SETTINGS = BrokerSettings(
    schedule_period_for_destination_purge=500,
    offline_durable_subscriber_timeout=2_000,
    offline_durable_subscriber_task_schedule=500,
    scheduler=SchedulerSettings(enabled=True),
    system_usage=SystemUsage(MemoryUsage(1 << 26)),
)


def pulls(bench: "Bench") -> IsOver:
    client = bench.client()
    consumer = client.consume("EMPTY", prefetch=0)
    bench.broker.pull(consumer, 2_000)
    return lambda: client.ends() > 0


def is_redelivered(bench: "Bench") -> IsOver:
    client = bench.client()
    consumer = client.consume("AGAIN")
    client.send("AGAIN", "x")
    (delivery,) = client.deliveries(consumer)
    bench.broker.poison(consumer, delivery.message.sequence, 1, "broken", None)
    bench.tick()
    return lambda: len(client.deliveries()) > 0


def waits_for_room(bench: "Bench") -> IsOver:
    client = bench.client()
    client.send("FULL", "x", persistent=False)
    client.send("FULL", "x", persistent=False)
    assert bench.broker.flow.lines
    return lambda: not bench.broker.flow.lines


def is_unused(bench: "Bench") -> IsOver:
    unused = parse_destination("GC.Q")
    bench.broker.route(unused)
    return lambda: bench.broker.registry.find(unused) is None


def is_slow(bench: "Bench", name: str) -> IsOver:
    client = bench.client()
    consumer = client.consume(name, prefetch=1)
    client.send(name, "x")
    client.send(name, "y")
    return lambda: consumer.closed


def starts_later(bench: "Bench") -> IsOver:
    client = bench.client()
    client.send("LATER", "x")
    client.consume("LATER")
    return lambda: len(client.deliveries()) > 0


def stays_offline(bench: "Bench") -> IsOver:
    client = bench.client("app")
    client.consume("topic://T", subscription_name="s")
    client.leave()
    return lambda: not bench.broker.subscriptions.durables


def is_kept(bench: "Bench") -> IsOver:
    bench.client().send("topic://KEPT", "x")
    topic: Any = bench.broker.registry.find(parse_destination("topic://KEPT"))
    return lambda: not topic.kept.entries


def is_scheduled(bench: "Bench", **schedule: int) -> IsOver:
    client = bench.client()
    name = f"DELAY.{schedule['delay']}"
    client.consume(name)
    properties = {f"AMQ_SCHEDULED_{name.upper()}": value for name, value in schedule.items()}
    client.send(name, "x", properties=properties)
    wanted, found = schedule.get("repeat", 0) + 1, 0

    def is_over() -> bool:
        nonlocal found
        found += len(client.deliveries())
        return found == wanted

    return is_over


TIMERS: dict[str, tuple[Callable[["Bench"], IsOver], int]] = {
    "a pull": (pulls, 2_000),
    "a redelivery": (is_redelivered, 1_000),
    "a send without room": (waits_for_room, 3_000),
    "a destination that nobody uses": (is_unused, 2_500),
    "a slow consumer": (partial(is_slow, name="SLOW"), 5_000),
    "a consumer that does not acknowledge": (partial(is_slow, name="ACK"), 7_000),
    "the start of dispatch": (starts_later, 1_500),
    "an abandoned durable subscription": (stays_offline, 2_000),
    "what a topic keeps": (is_kept, 4_100),
    "a delay": (partial(is_scheduled, delay=5_000), 5_000),
    "a period": (partial(is_scheduled, delay=1_000, period=2_000, repeat=2), 5_000),
}


def armed(make_bench: "type[Bench]") -> "Bench":
    return make_bench(settings=SETTINGS, **POLICIES)


def duration(bench: "Bench", is_over: IsOver) -> int:
    """Return how long something takes, in ms, to the next 100."""
    for passed in range(LOOK, LONGEST, LOOK):
        bench.tick(LOOK)
        if is_over():
            return passed
    return LONGEST


@pytest.mark.parametrize("step", [0, *STEPS])
@pytest.mark.parametrize("timer", TIMERS)
def test_a_clock_that_is_set_changes_no_timer(
    timer: str, step: int, make_bench: "type[Bench]"
) -> None:
    bench = armed(make_bench)
    arm, expected = TIMERS[timer]
    is_over = arm(bench)
    bench.set_clock(step)
    assert duration(bench, is_over) == expected


@pytest.mark.parametrize("step", STEPS)
def test_all_timers_of_a_broker_go_on_when_its_clock_is_set(
    step: int, make_bench: "type[Bench]"
) -> None:
    bench = armed(make_bench)
    waiting = {timer: arm(bench) for timer, (arm, _) in TIMERS.items()}
    began, found = bench.steady, {}
    bench.set_clock(step)
    while waiting and bench.steady - began < LONGEST:
        bench.tick(LOOK)
        for timer in [timer for timer, is_over in waiting.items() if is_over()]:
            found[timer] = bench.steady - began
            del waiting[timer]
    # They stand beside each other on shared rhythms: the next check of some comes sooner.
    assert waiting == {}
    assert all(found[timer] <= TIMERS[timer][1] for timer in TIMERS)
    assert all(found[timer] >= TIMERS[timer][1] - 1_000 for timer in TIMERS)


@pytest.mark.parametrize(("step", "expected"), [(0, 2_500), (HOUR, LOOK), (-HOUR, LONGEST)])
def test_a_message_expires_by_the_clock_that_dated_it(
    step: int, expected: int, make_bench: "type[Bench]"
) -> None:
    bench = armed(make_bench)
    bench.client().send("DATED", "x", expiration=bench.now + 2_000)
    bench.set_clock(step)
    assert duration(bench, lambda: bench.depth("DATED") == 0) == expected


def test_a_job_that_was_read_from_the_journal_goes_by_the_clock(make_bench: "type[Bench]") -> None:
    bench = armed(make_bench)
    bench.client().send("Q", "x", properties={"AMQ_SCHEDULED_DELAY": HOUR})
    later = make_bench(bench.store, settings=SETTINGS)
    later.now = later.steady = bench.now
    client = later.client()
    client.consume("Q")
    later.set_clock(HOUR)
    later.tick()
    assert len(client.deliveries()) == 1


def test_the_next_deadline_is_the_nearest_of_both_clocks(make_bench: "type[Bench]") -> None:
    bench = make_bench(**POLICIES)
    assert bench.broker.next_deadline() is None
    bench.client().send("DATED", "x", expiration=bench.now + 1_900)
    bench.set_clock(-400)
    bench.tick()
    assert bench.broker.next_deadline() == bench.steady + 2_400
    bench.broker.pull(bench.client().consume("EMPTY", prefetch=0), 2_000)
    assert bench.broker.next_deadline() == bench.steady + 2_000
