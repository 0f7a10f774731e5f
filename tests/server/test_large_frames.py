"""Large frames of several peers: whoever sends its own slowly, or not to its end, delays nobody."""

import asyncio
import time

import pytest
from running_engine import Running, greeted
from test_pieces import answers, message

from lockkeeper.server.pacing import PARTIAL_BYTES_MAX

LARGE_BYTES = 8 << 20
HALVES = PARTIAL_BYTES_MAX // (LARGE_BYTES // 2) + 2
"""So many halves of frames are more than may be read at once."""
TRICKLE_SECONDS = 0.02


async def trickle(writer: asyncio.StreamWriter, rest: bytes) -> None:
    """Send the rest of a frame byte by byte."""
    for at in range(len(rest)):
        writer.write(rest[at : at + 1])
        await asyncio.sleep(TRICKLE_SECONDS)


async def seconds_beside(is_trickling: bool, count: int) -> float:
    """Return how long a large message takes beside *count* that do not come to their end."""
    whole = message(2, LARGE_BYTES)
    half, rest = whole[: LARGE_BYTES // 2], whole[LARGE_BYTES // 2 :]
    async with Running() as running, asyncio.TaskGroup() as tasks:
        slow = [greeted(running, f"slow-{number}") for number in range(count)]
        writers = [(await each.__aenter__())[1] for each in slow]
        for writer in writers:
            writer.write(half)
        trickles = [tasks.create_task(trickle(writer, rest)) for writer in writers if is_trickling]
        # What comes with the greeting is not counted.
        most = min(count * len(half) * 3 // 4, PARTIAL_BYTES_MAX)
        while running.broker.memory.partial <= most:
            await asyncio.sleep(0.01)
        async with greeted(running, "quick") as (reader, writer):
            assert await answers(reader, 1) == [1]
            began = time.monotonic()
            writer.write(whole)
            assert await answers(reader, 1) == [2]
            taken = time.monotonic() - began
        for task in trickles:
            task.cancel()
        for each in slow:
            await each.__aexit__(None, None, None)
    return taken


@pytest.mark.parametrize("is_trickling", [False, True], ids=["silent", "byte by byte"])
@pytest.mark.parametrize("count", [1, HALVES])
def test_a_large_message_does_not_wait_for_one_that_does_not_come(
    is_trickling: bool, count: int
) -> None:
    assert asyncio.run(seconds_beside(is_trickling, count)) < 2
