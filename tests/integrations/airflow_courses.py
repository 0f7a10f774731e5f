"""What runs in Airflow's own environment: its manager of providers, and its shared streams.

Started by test_airflow.py, with the name of a course and its arguments.
"""

import asyncio
import json
import os
import re
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from airflow.providers.common.messaging.triggers.msg_queue import MessageQueueTrigger
from airflow.providers_manager import ProvidersManager
from airflow.serialization.serialized_objects import LazyDeserializedDAG
from airflow.triggers.shared_stream import SharedStreamManager

SCHEME = "lockkeeper+openwire"
TRIGGER = "lockkeeper.integrations.airflow.trigger.LockkeeperMessageTrigger"
SOON = 60.0


class Watching:
    """A trigger in Airflow's manager of shared streams, as the triggerer runs it."""

    def __init__(self, manager: SharedStreamManager, trigger: Any) -> None:
        self._manager = manager
        self._key = trigger.shared_stream_key()
        shared = manager.subscribe(trigger_id=1, trigger=trigger, key=self._key)
        self._events = trigger.filter_shared_stream(shared)
        self._asking: asyncio.Task[Any] | None = None
        self._sequence: int | None = None

    async def next(self) -> dict[str, Any]:
        """Return the next event's payload, which is not stored yet."""
        asking = self._ask()
        async with asyncio.timeout(SOON):
            event = await asking
        self._asking = None
        self._sequence = self._manager.bind_pending_event(trigger_id=1, key=self._key)
        payload: dict[str, Any] = json.loads(json.dumps(event.payload, allow_nan=False))
        return payload

    async def store(self) -> None:
        """Say that the last event is stored, and ask for the next one, as the triggerer does."""
        assert self._sequence is not None
        self._manager.confirm_persisted([self._sequence])
        self._ask()
        await asyncio.sleep(0.5)

    def _ask(self) -> "asyncio.Task[Any]":
        if self._asking is None:
            self._asking = asyncio.create_task(anext(self._events))
        return self._asking


@asynccontextmanager
async def watching(**arguments: Any) -> AsyncIterator[Watching]:
    chosen = MessageQueueTrigger(scheme=SCHEME, **arguments).trigger
    manager = SharedStreamManager()
    try:
        yield Watching(manager, chosen)
    finally:
        await manager.stop_all()


def discovery() -> None:
    manager = ProvidersManager()
    assert "lockkeeper-mq" in manager.providers
    name = "lockkeeper.integrations.airflow.provider.LockkeeperMessageQueueProvider"
    assert name in manager.queue_class_names
    hook = manager.hooks["lockkeeper"]
    assert hook is not None and hook.hook_name == "Lockkeeper"
    where = {"url": "tcp://host:61616?wireFormat.maxInactivityDuration=9000", "destination": "A.B"}
    warnings.simplefilter("ignore")
    uri = f"{SCHEME}://host/A.B?wireFormat.maxInactivityDuration=9000"
    classpath, arguments = MessageQueueTrigger(queue=uri, selector="a = 1").serialize()
    assert (classpath, arguments) == (TRIGGER, {**where, "conn_id": None, "selector": "a = 1"})
    secure = MessageQueueTrigger(queue=f"{SCHEME}+ssl://host:7000/A").serialize()[1]
    assert (secure["url"], secure["destination"]) == ("ssl://host:7000", "A")
    for wrong in (f"{SCHEME}://host", f"{SCHEME}:///A", f"{SCHEME}://me:secret@host/A"):
        try:
            MessageQueueTrigger(queue=wrong).serialize()
        except ValueError as error:
            assert "secret" not in str(error)
        else:
            raise AssertionError(f"{wrong} is taken")


def page(path: str) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", Path(path).read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": "orders"}
    exec(code, names)
    (watcher,) = names["orders"].watchers
    classpath, arguments = watcher.trigger.serialize()
    assert (classpath, arguments["conn_id"]) == (TRIGGER, "shop")
    assert LazyDeserializedDAG.from_dag(names["take_orders"]).dag_id == "take_orders"


async def stored(url: str, queue: str) -> None:
    async with watching(url=url, destination=queue, selector="colour = 'red'") as events:
        payload = await events.next()
        assert (payload["body"], payload["properties"]) == ("red", {"colour": "red"})
        assert (payload["message_type"], payload["destination"]) == ("text", f"queue://{queue}")
        await events.store()


async def killed(url: str, queue: str) -> None:
    async with watching(url=url, destination=queue) as events:
        assert (await events.next())["body"] == "red"
        os._exit(0)


async def bodies(url: str, queue: str) -> None:
    async with watching(url=url, destination=queue) as events:
        assert (await events.next())["body"] == "AP8="
        assert (await events.next())["body"] == {"rate": "nan", "raw": "AQ=="}


async def connection(url: str, queue: str) -> None:
    extra = json.dumps({"url": url})
    os.environ["AIRFLOW_CONN_SHOP"] = json.dumps({"conn_type": "lockkeeper", "extra": extra})
    async with watching(conn_id="shop", destination=queue) as events:
        assert (await events.next())["body"] == "red"
        await events.store()


async def cut(url: str, queue: str) -> None:
    async with watching(url=url, destination=queue) as events:
        assert (await events.next())["body"] == "red"
        print("have red", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        seen = []
        while "blue" not in seen:
            await events.store()
            seen.append((await events.next())["body"])
        await events.store()
        assert seen in (["blue"], ["red", "blue"]), seen


COURSES: dict[str, Callable[[str, str], Coroutine[Any, Any, None]]] = {
    "stored": stored,
    "killed": killed,
    "json": bodies,
    "connection": connection,
    "cut": cut,
}

if __name__ == "__main__":
    name, *given = sys.argv[1:]
    if name == "discovery":
        discovery()
    elif name == "page":
        page(*given)
    else:
        asyncio.run(COURSES[name](*given))
