"""Destinations that nobody uses: there may be very many, so each weighs little."""

import gc
import tracemalloc
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.regions.line import NOTHING
from lockkeeper.broker.shared_references import SharedReferences
from lockkeeper.message.destination import queue
from lockkeeper.store.base import Reference
from lockkeeper.store.packed import PackedRun

if TYPE_CHECKING:
    from conftest import Bench

QUEUES = 500
BYTES_MAX = 1_350


def test_an_idle_queue_weighs_little(bench: "Bench") -> None:
    registry, context = bench.broker.registry, bench.broker.context
    for number in range(50):
        registry.open(context, queue(f"FIRST.{number}"))
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(QUEUES):
            registry.open(context, queue(f"IDLE.{number}"))
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / QUEUES < BYTES_MAX


def test_nothing_is_added_to_what_queues_share_before_their_first_message() -> None:
    reference = Reference(None, 1)
    run = PackedRun([reference])
    additions: tuple[Callable[[], None], ...] = (
        lambda: NOTHING.append(reference),
        lambda: NOTHING.appendleft(reference),
        lambda: NOTHING.extend([reference]),
        lambda: NOTHING.extendleft([reference]),
        lambda: NOTHING.append_run(run),
        lambda: NOTHING.append_shared(SharedReferences([reference])),
    )
    for add in additions:
        with pytest.raises(TypeError, match="of its own"):
            add()
    assert [*NOTHING] == []
    assert len(NOTHING) == 0


def test_what_queues_need_when_they_are_used_is_their_own(make_bench: "type[Bench]") -> None:
    """Bodies that may leave, and latencies, of one queue are not those of another."""
    bench = make_bench(memory_limit=1)
    client = bench.client()
    bench.broker.registry.open(bench.broker.context, queue("IDLE"))
    consumer = client.consume("USED")
    client.send("USED", "x", persistent=False)
    (delivered,) = client.deliveries(consumer)
    client.acknowledge(consumer, delivered.message)
    client.leave()
    for number in range(3):
        client = bench.client()
        client.send("USED", str(number), persistent=False)
    idle, used = bench.queue("IDLE"), bench.queue("USED")
    assert [sum(each.statistics.latency) for each in (idle, used)] == [0, 1]
    waiting = [[*each.body_cache.unloadable, *each.body_cache.spoolable] for each in (idle, used)]
    assert waiting[0] == []
    assert waiting[1] == [*used.ready]
