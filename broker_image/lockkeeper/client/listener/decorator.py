"""The decorator `listener`, and `run`, which serves what is decorated until a signal comes."""

import asyncio
import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.core.redelivery import RedeliveryPolicy, RedeliveryPolicyMap
from lockkeeper.client.listener.back_off import BackOff
from lockkeeper.client.listener.container import ListenerContainer
from lockkeeper.client.listener.invocation import Function, Invocation
from lockkeeper.client.listener.settings import CacheLevel, Concurrency, ListenerSettings
from lockkeeper.client.messages import DestinationName
from lockkeeper.client.opening import DEFAULT_URL

F = TypeVar("F", bound=Function)
_MARK = "lockkeeper_listener"
STOP_SECONDS = 25.0
"""Less than the 30 s that Kubernetes gives a pod to end."""


def listener(
    destination: DestinationName,
    *,
    concurrency: str | int = 1,
    selector: str | None = None,
    subscription_name: str | None = None,
    client_id: str | None = None,
    transacted: bool = True,
    cache_level: str | CacheLevel = CacheLevel.AUTO,
    prefetch: int | None = None,
    priority: int = 0,
    exclusive: bool = False,
    receive_timeout: float = 1.0,
    messages_per_task: int | None = None,
    idle_receives_per_task: int | None = 1,
    idle_task_limit: int = 1,
    idle_consumer_limit: int = 1,
    redelivery: RedeliveryPolicy | RedeliveryPolicyMap | None = None,
    back_off: BackOff | None = None,
    send_to: DestinationName | None = None,
) -> Callable[[F], F]:
    """Mark a function as the listener of *destination*; it stays the function that it is.

    See `ListenerSettings`. Without *transacted* each message is acknowledged by itself. Raises
    ValueError for settings that do not go together, TypeError for a function that cannot be
    given what it asks for.
    """
    settings = ListenerSettings(
        destination, Concurrency.parse(concurrency), selector, subscription_name, client_id,
        Acknowledge.TRANSACTED if transacted else Acknowledge.INDIVIDUAL,
        CacheLevel(cache_level), prefetch, priority, exclusive, receive_timeout,
        messages_per_task, idle_receives_per_task, idle_task_limit, idle_consumer_limit,
        redelivery or RedeliveryPolicy(), back_off or BackOff(), send_to,
    )  # fmt: skip

    def marked(function: F) -> F:
        Invocation(function)
        setattr(function, _MARK, settings)
        return function

    return marked


def container_of(function: Function, url: str = DEFAULT_URL, **options: Any) -> ListenerContainer:
    """Return the container for a decorated function; options as of `ListenerContainer`."""
    settings = getattr(function, _MARK, None)
    if not isinstance(settings, ListenerSettings):
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(f"{name} is no listener: decorate it with @listener(…)")
    return ListenerContainer(function, settings, url, **options)


def run(
    *functions: Function,
    url: str = DEFAULT_URL,
    stop_timeout: float | None = STOP_SECONDS,
    **options: Any,
) -> bool:
    """Serve decorated functions until SIGTERM or SIGINT; return whether all was finished then.

    What is in hand has *stop_timeout* seconds to finish. Options are those of
    `ListenerContainer`. Raises what the first container fails with.
    """
    return asyncio.run(
        _run([container_of(each, url, **options) for each in functions], stop_timeout)
    )


async def _run(containers: list[ListenerContainer], stop_timeout: float | None) -> bool:
    stopping = asyncio.Event()
    _on_signals(stopping)
    tasks = [asyncio.create_task(_serve(each)) for each in containers]
    waiting = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        finished = await asyncio.gather(*(each.stop(stop_timeout) for each in containers))
    for task in tasks:
        # One that was stopped while it began has nothing to tell.
        if task.done() and not task.cancelled() and not stopping.is_set():
            task.result()
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return all(finished)


async def _serve(container: ListenerContainer) -> None:
    await container.start()
    await container.wait_until_ended()


def _on_signals(stopping: asyncio.Event) -> None:
    """Have signals stop what runs; only a main thread gets any."""
    if threading.current_thread() is threading.main_thread():
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
