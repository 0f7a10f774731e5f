"""The queue of keys: once each, one at a time, later when asked for later."""

import asyncio
import tracemalloc
from collections.abc import Awaitable, Callable, Generator
from functools import wraps
from typing import Any

from lockkeeper_operator.process.queue import WorkQueue


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(test)
    def run(**arguments: Any) -> None:
        asyncio.run(test(**arguments))  # type: ignore[arg-type]

    return run


async def taken(queue: WorkQueue[str], seconds: float = 0.05) -> str | None:
    try:
        async with asyncio.timeout(seconds):
            return (await queue.take())[0]
    except TimeoutError:
        return None


@in_loop
async def test_what_waits_already_is_not_added_twice() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b", "a"):
        queue.add(key)
    assert len(queue) == 2
    assert [await taken(queue) for _ in range(3)] == ["a", "b", None]


@in_loop
async def test_what_is_worked_on_comes_again_afterwards_and_not_before() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    assert await taken(queue) == "a"
    queue.add("a")
    queue.add("a")
    assert await taken(queue) is None
    queue.done("a")
    assert await taken(queue) == "a"
    queue.done("a")
    assert await taken(queue) is None


@in_loop
async def test_of_two_times_the_earlier_counts() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", after=60)
    queue.add("a", after=0.05)
    queue.add("a", after=30)
    assert await taken(queue, 0.01) is None
    assert await taken(queue, 1) == "a"
    queue.done("a")
    queue.add("b", after=0.05)
    queue.add("b")
    assert await taken(queue) == "b"
    queue.done("b")
    assert await taken(queue, 0.1) is None


@in_loop
async def test_failures_wait_longer_each_time_until_it_succeeds() -> None:
    queue: WorkQueue[str] = WorkQueue()
    delays = [queue.retry("a") for _ in range(12)]
    assert delays[0] < 0.4
    assert delays[4] > delays[0] * 4
    assert 20 < delays[-1] < 40
    queue.succeeded("a")
    assert queue.retry("a") < 0.4
    assert queue.retry("b", at_least=5) > 3


@in_loop
async def test_since_when_a_key_is_due_is_told() -> None:
    queue: WorkQueue[str] = WorkQueue()
    now = asyncio.get_running_loop().time()
    queue.add("a")
    await asyncio.sleep(0.02)
    queue.add("a")
    _, since = await queue.take()
    assert abs(since - now) < 0.01


class Counted:
    """Awaits *wanted*, and counts how often it is given the processor."""

    def __init__(self, wanted: Awaitable[Any]) -> None:
        self._wanted = wanted
        self.turns = 0

    def __await__(self) -> Generator[Any, None, Any]:
        inner = self._wanted.__await__()
        while True:
            self.turns += 1
            try:
                waits_for = next(inner)
            except StopIteration as end:
                return end.value
            yield waits_for


@in_loop
async def test_a_key_that_falls_due_wakes_one_of_those_who_wait() -> None:
    async def awaited(what: Counted) -> Any:
        return await what

    queue: WorkQueue[str] = WorkQueue()
    takers = [Counted(queue.take()) for _ in range(20)]
    tasks = [asyncio.create_task(awaited(each)) for each in takers]
    await asyncio.sleep(0)
    queue.add("later", after=0.02)
    queue.add("b", after=0.04)
    queue.add("a", after=0.01)
    queue.add("now")
    # This wakes nobody: it is called for earlier.
    queue.add("later", after=60)
    await asyncio.sleep(0.1)
    assert [task.result()[0] for task in tasks[:4]] == ["now", "a", "later", "b"]
    assert [each.turns for each in takers] == [2] * 4 + [1] * 16
    for task in tasks[4:]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@in_loop
async def test_what_comes_early_again_and_again_leaves_no_times_behind() -> None:
    queue: WorkQueue[str] = WorkQueue()

    async def look(times: int) -> None:
        """Look at a key so often, and have it looked at again at the latest in an hour."""
        for _ in range(times):
            queue.add("a")
            assert await queue.take()
            queue.add("a", after=3600)
            queue.done("a")

    await look(100)
    tracemalloc.start()
    try:
        await look(5000)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 50_000
    # The last time counts all the same.
    queue.add("a", after=0.01)
    assert await taken(queue, 1) == "a"


@in_loop
async def test_a_key_is_not_lost_with_one_who_is_cancelled_when_it_is_woken() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first, second = (asyncio.create_task(queue.take()) for _ in range(2))
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert (await second)[0] == "a"
    assert await taken(queue, 0.01) is None
