"""What kopf does besides calling our handler, for each event of each object: nothing."""

import asyncio
import logging
from typing import Any

import kopf
import pytest
from kopf._cogs.structs import bodies, ephemera, references
from kopf._core.actions import lifecycles
from kopf._core.engines import indexing, posting
from kopf._core.reactor import processing

from lockkeeper_operator.embedded import REGISTRY, Memo
from lockkeeper_operator.kopf_settings import NoMemories, tune
from lockkeeper_operator.kubernetes.api.kinds import DESTINATION

OBJECTS = 50


class Seen:
    """Takes the place of the operator and of its stores."""

    def __init__(self) -> None:
        self.caches = self
        self.names: list[str] = []

    def put(self, _: object, manifest: dict[str, Any]) -> None:
        """Take note of an object; the last one is too much for it."""
        self.names.append(manifest["metadata"]["name"])
        if len(self.names) > OBJECTS:
            raise ValueError("too many")


def event(number: int) -> bodies.RawEvent:
    name = f"d-{number}"
    metadata = {"namespace": "n", "name": name, "uid": name, "resourceVersion": "1"}
    body = {"apiVersion": DESTINATION.api_version, "kind": DESTINATION.name, "metadata": metadata}
    return {"type": "MODIFIED", "object": bodies.RawBody(**body)}  # type: ignore[typeddict-item]


def test_kopf_writes_no_line_no_event_and_no_object_and_keeps_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Other tests may have run an operator in this process before.
    logging.getLogger("kopf.objects").setLevel(logging.NOTSET)
    settings, seen = kopf.OperatorSettings(), Seen()
    tune(settings, clusterwide=True)
    caplog.set_level(logging.DEBUG)
    told: posting.K8sEventQueue = asyncio.Queue()
    resource = references.Resource(
        DESTINATION.group, DESTINATION.version, DESTINATION.plural, kind=DESTINATION.name
    )
    memories, memo = NoMemories(), ephemera.AnyMemo(Memo(operator=seen))

    async def process(number: int) -> str | None:
        return await processing.process_resource_event(
            lifecycle=lifecycles.all_at_once,
            indexers=indexing.OperatorIndexers(),
            registry=REGISTRY,
            settings=settings,
            memories=memories,
            memobase=memo,
            resource=resource,
            raw_event=event(number),
            event_queue=told,
        )

    async def process_all() -> set[str | None]:
        return {await process(number) for number in range(OBJECTS)}

    assert asyncio.run(process_all()) == {None}
    assert len(seen.names) == OBJECTS
    assert [each.getMessage() for each in caplog.records if each.name != "asyncio"] == []
    # A mistake of ours is said once, in the log alone.
    assert asyncio.run(process(OBJECTS)) is None
    errors = [each for each in caplog.records if each.name != "asyncio"]
    assert [(each.name, each.levelname) for each in errors] == [("kopf.objects", "ERROR")]
    assert told.empty()
    assert list(memories.iter_all_memories()) == []
