"""What the tests of listener containers share: running one in a test, and waiting for it."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from lockkeeper.client import RedeliveryPolicy
from lockkeeper.client.listener import Concurrency, ListenerContainer, ListenerSettings

AT_ONCE = RedeliveryPolicy(2, initial_redelivery_delay=0, redelivery_delay=0)
SECONDS_MAX = 60.0
T = TypeVar("T")


def container(
    function: Callable[..., Any], url: str, queue_name: str, **settings: Any
) -> ListenerContainer:
    """Return a container that hands failed messages out at once, unless told otherwise."""
    handler = settings.pop("error_handler", None)
    settings.setdefault("redelivery", AT_ONCE)
    settings.setdefault("receive_timeout", 0.2)
    settings["concurrency"] = Concurrency.parse(settings.get("concurrency", 1))
    return ListenerContainer(
        function, ListenerSettings(queue_name, **settings), url, error_handler=handler
    )


def serve(made: ListenerContainer, until: Callable[[], bool]) -> None:
    """Run a container until something is so, and stop it gracefully."""

    async def served() -> None:
        async with made:
            await wait_until(until)

    run(served())


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, for as long as a test may take."""

    async def timed() -> T:
        async with asyncio.timeout(2 * SECONDS_MAX):
            return await coroutine

    return asyncio.run(timed())


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something is so. Raises AssertionError when it takes too long."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it has not come to that"
        await asyncio.sleep(0.01)
