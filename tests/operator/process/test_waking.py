"""Changes that went unseen: whom an object wakes that took the place of another of its name."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from lockkeeper_operator.kubernetes.api.kinds import DESTINATION, JOURNAL_BACKUP
from lockkeeper_operator.kubernetes.caches.caches import Caches
from lockkeeper_operator.kubernetes.caches.store import Store
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.process.queue import WorkQueue
from lockkeeper_operator.process.waking import Wakes, asked_anew

KEY = ("shop", "nightly")
SPEC = {"broker": "orders", "target": {"claim": {"name": "backups"}}}


def in_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        async def main() -> None:
            await test()

        asyncio.run(main())

    return run


def resource(version: int, uid: str, spec: Manifest, name: str = KEY[1], **more: Any) -> Manifest:
    own = {"namespace": KEY[0], "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": {**own, **more}, "spec": spec}


async def taken(queue: WorkQueue[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return what is due, and look at it."""
    found = set()
    while len(queue):
        key, _ = await queue.take()
        queue.done(key)
        found.add(key)
    return found


@in_loop
async def test_a_resource_is_looked_at_when_it_asks_for_something_else_or_is_another() -> None:
    queue: WorkQueue[tuple[str, str]] = WorkQueue()
    store = Store(JOURNAL_BACKUP, lambda _: (), asked_anew(queue))
    store.put(resource(10, "first", SPEC))
    assert await taken(queue) == {KEY}
    store.put({**resource(11, "first", SPEC), "status": {"state": "Running"}})
    assert await taken(queue) == set()
    store.put(resource(12, "first", {**SPEC, "keep": 2}))
    assert await taken(queue) == {KEY}
    # It is being deleted, at which there is nothing to look. It goes while nobody watches, and one
    # is made that asks for the same.
    ends: dict[str, Any] = {
        "deletionTimestamp": "2027-03-01T03:00:00Z",
        "finalizers": ["example.com/x"],
    }
    store.put(resource(13, "first", {**SPEC, "keep": 2}, **ends))
    await taken(queue)
    store.put(resource(30, "second", {**SPEC, "keep": 2}))
    store.keep_only({KEY: 30}, None, "31")
    assert await taken(queue) == {KEY}


@in_loop
async def test_who_is_next_in_line_is_looked_at_when_another_took_the_place_of_the_first() -> None:
    wakes = Wakes()
    caches = Caches(
        lambda kind, before, after: wakes.changed(caches, kind, before, after),
        lambda before, after: None,
        lambda before, after: None,
    )

    def of_queue(name: str) -> Manifest:
        return {"brokerRef": {"name": "orders"}, "name": name}

    caches.put(DESTINATION, resource(10, "first", of_queue("ORDERS"), "a"))
    caches.put(DESTINATION, resource(11, "other", of_queue("ORDERS"), "b"))
    assert await taken(wakes.destinations) == {("shop", "a"), ("shop", "b")}
    assert await taken(wakes.asking) == {("shop", "orders")}
    caches.put(DESTINATION, resource(20, "second", of_queue("BILLS"), "a"))
    assert await taken(wakes.destinations) == {("shop", "a"), ("shop", "b")}
    assert await taken(wakes.asking) == {("shop", "orders")}
