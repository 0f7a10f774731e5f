"""Workers, which take keys from queues and work on them."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from lockkeeper_operator.kubernetes.api.errors import ApiError
from lockkeeper_operator.polling.admin_endpoint import BrokerRefusedError, BrokerSilentError
from lockkeeper_operator.process.metrics import Metrics
from lockkeeper_operator.process.queue import WorkQueue

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work: *count* workers take keys from *queue* and call *look*.

    That returns the seconds after which to look again at the latest; None: *resync*.
    """

    kind: str
    count: int
    queue: WorkQueue[Key]
    look: Callable[[str, str], Awaitable[float | None]]
    resync: float | None = None


async def work(todo: Work, metrics: Metrics) -> None:
    """Take keys and look at them, for ever; a failure is repeated later."""
    loop, queue, kind = asyncio.get_running_loop(), todo.queue, todo.kind
    while True:
        # Work that waits for nothing must not keep the loop from everybody else.
        await asyncio.sleep(0)
        key, since = await queue.take()
        begun = loop.time()
        try:
            after = await todo.look(*key)
        except (ApiError, BrokerSilentError, BrokerRefusedError) as error:
            delay = queue.retry(key, getattr(error, "retry_after", None) or 0.0)
            metrics.errors.labels(kind, type(error).__name__).inc()
            log.info("%s %s: %s; the next attempt is in %.1f s", kind, "/".join(key), error, delay)
        except Exception as error:
            # A mistake of ours about one resource must not end the work on all others.
            delay = queue.retry(key)
            metrics.errors.labels(kind, type(error).__name__).inc()
            log.exception(
                "%s %s: unexpected error; the next attempt is in %.1f s", kind, "/".join(key), delay
            )
        else:
            queue.succeeded(key)
            after = todo.resync if after is None else after
            if after is not None:
                queue.add(key, after * random.uniform(0.9, 1.1))
        finally:
            queue.done(key)
            metrics.reconcile.labels(kind).observe(loop.time() - begun)
            metrics.latency.labels(kind).observe(loop.time() - since)
