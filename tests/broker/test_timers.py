"""Timers: what is due rings in order, what is cancelled never, and none of many costs a pause."""

import gc
from collections.abc import Iterator
from functools import partial
from random import Random
from time import thread_time

import pytest

from lockkeeper.broker.containment import Containment
from lockkeeper.broker.timers import AT_ONCE_MAX, NEVER, Timer, Timers

MANY = 100_000


@pytest.fixture
def timers() -> Timers:
    """Return timers without any yet."""
    return Timers(Containment(lambda: 0))


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Keep the garbage collector from having its own pauses meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def nothing() -> None:
    """Do nothing."""


def fill(timers: Timers, count: int) -> list[Timer]:
    """Ask for so many timers in no order; return them, the first one first."""
    random = Random(1)
    made = [timers.call_at(random.randrange(1 << 40), nothing) for _ in range(count)]
    return sorted(made, key=lambda timer: timer.due)


def first_of(waiting: dict[int, Timer]) -> int:
    """Return when the first of some timers is due."""
    return min((timer.due for timer in waiting.values()), default=NEVER)


@pytest.mark.parametrize("seed", range(6))
def test_timers_ring_in_order_whatever_is_cancelled(timers: Timers, seed: int) -> None:
    random = Random(seed)
    waiting: dict[int, Timer] = {}
    rung: list[int] = []
    now = number = 0
    for _ in range(30):
        for _ in range(random.choice((10, 400, 2_500))):
            number += 1
            due = now + random.randrange(1, 60_000)
            waiting[number] = timers.call_at(due, partial(rung.append, number))
        cancelled = random.sample(sorted(waiting), len(waiting) * random.choice((0, 6, 9)) // 10)
        for each in cancelled:
            waiting.pop(each).cancel()
        now += random.randrange(20_000)
        due_now = sorted((timer.due, each) for each, timer in waiting.items() if timer.due <= now)
        while timers.earliest <= now:
            timers.run(now)
        assert rung == [each for _, each in due_now]
        for each in rung:
            del waiting[each]
        rung.clear()
        while (following := timers.next_due()) is not None and following < first_of(waiting):
            assert timers.earliest == following
        assert timers.earliest == first_of(waiting)
        assert len(waiting) <= len(timers) <= 3 * len(waiting) + 2_000


def test_no_cancellation_lets_go_of_very_many(timers: Timers) -> None:
    let_go = []
    for timer in fill(timers, MANY):
        before = len(timers)
        timer.cancel()
        let_go.append(before - len(timers))
    assert max(let_go) <= AT_ONCE_MAX
    assert len(timers) <= 2_000


def test_a_look_at_what_is_due_next_lets_go_of_no_more(timers: Timers) -> None:
    first, *others = fill(timers, MANY)
    for timer in others[: MANY // 3]:
        timer.cancel()
    first.cancel()
    let_go, due = [], None
    while due != others[MANY // 3].due:
        before = len(timers)
        due = timers.next_due()
        let_go.append(before - len(timers))
    assert max(let_go) == AT_ONCE_MAX
    assert sum(let_go) == MANY // 3 + 1


@pytest.mark.usefixtures("no_collection")
def test_no_cancellation_of_very_many_is_a_pause(timers: Timers) -> None:
    took = []
    for timer in fill(timers, MANY):
        began = thread_time()
        timer.cancel()
        took.append(thread_time() - began)
    assert max(took) < sum(took) / 20
