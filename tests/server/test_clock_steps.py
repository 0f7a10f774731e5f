"""A broker whose clock is set keeps its clients, and lets go of those who fell silent."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from running_engine import Running, greeted, is_cut

from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper_api.broker import Listener

HOUR = 3_600_000
SILENCE_SECONDS = 1.0


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_nobody_is_disconnected_when_the_clock_is_set(step: int) -> None:
    async def run() -> list[bool]:
        async with Running() as running, contextlib.AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(greeted(running, f"ID:{number}"))
                for number in range(5)
            ]
            await asyncio.sleep(0.7)
            running.clock.by = step
            cut = await asyncio.gather(*(is_cut(reader, 1.5) for reader, _ in clients))
            assert running.broker.context.now == pytest.approx(running.clock(), abs=1_000)
            return list(cut)

    assert asyncio.run(run()) == [False] * 5


@pytest.mark.parametrize("step", [0, -HOUR])
def test_who_falls_silent_is_disconnected_whatever_the_clock_says(step: int) -> None:
    async def run() -> bool:
        listener = Listener.model_validate(
            {"name": "openwire", "port": 0, "maxInactivityDuration": "1s"}
        )
        async with Running(listener) as running, greeted(running, "ID:silent") as (reader, _):
            await asyncio.sleep(0.2)
            running.clock.by = step
            return await is_cut(reader, SILENCE_SECONDS + 3)

    assert asyncio.run(run())


def test_peers_are_not_blamed_for_a_broker_that_slept() -> None:
    async def run() -> bool:
        async with Running() as running, greeted(running, "ID:patient") as (reader, _):
            await asyncio.sleep(0.2)
            # As after a freeze: the last beat was a minute ago, and so was the last sign of life.
            running.engine._steady_at_boot += 60_000
            return await is_cut(reader, 1.2)

    assert asyncio.run(run()) is False


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_clock_that_jumps_has_the_lock_looked_at(tmp_path: Path, step: int) -> None:
    """A machine that stood still may not know it, but its clock is set right afterwards."""
    store = KahaDBStore(tmp_path, keep_alive_ms=HOUR)

    async def run() -> tuple[list[str], list[str]]:
        async with Running(store=store) as running:
            await asyncio.sleep(0.7)
            (tmp_path / "lock").unlink()
            await asyncio.sleep(0.7)
            before = [str(each) for each in running.failures]
            running.clock.by = step
            await asyncio.sleep(0.7)
            return before, [str(each) for each in running.failures]

    before, after = asyncio.run(run())
    store.close()
    assert before == []
    assert after == [f"{tmp_path / 'lock'} is gone: No such file or directory"]
