"""What a peer brings is carried out to its end, however sockets cut it."""

import asyncio
import random
from itertools import pairwise

import pytest
from running_engine import Running, greeted

from lockkeeper.message import openwire
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.transport.peer import PIECE_BYTES, Peer

NAME = "c"
READ_BYTES_MAX = 256 << 10
"""What uvloop reads at once."""
SECONDS_MAX = 10


def message(number: int, size: int) -> bytes:
    producer = ProducerId(NAME, 1, 1)
    return framed(
        openwire.encode(
            openwire.ActiveMQBytesMessage(
                command_id=number,
                response_required=True,
                producer_id=producer,
                destination=queue("Q"),
                message_id=MessageId(producer, number),
                content=bytes(size),
            )
        )
    )


async def answers(reader: asyncio.StreamReader, count: int) -> list[int]:
    """Return which commands are answered next, in order."""
    found: list[int] = []
    async with asyncio.timeout(SECONDS_MAX):
        while len(found) < count:
            size = int.from_bytes(await reader.readexactly(4), "big")
            command, _ = openwire.decode(await reader.readexactly(size))
            if isinstance(command, openwire.Response):
                found.append(command.correlation_id)
    return found


async def bring(peer: Peer, data: bytes, cuts: list[int]) -> None:
    """Bring *data* in pieces as a socket does: nothing while the peer is not read from."""
    for begin, end in pairwise([0, *cuts, len(data)]):
        async with asyncio.timeout(SECONDS_MAX):
            while peer.is_paused:
                await asyncio.sleep(0)
        peer.data_received(data[begin:end])


async def all_is_answered(sizes: list[int], cuts: list[int]) -> None:
    data = b"".join(message(number, size) for number, size in enumerate(sizes, 2))
    async with Running() as running, greeted(running, NAME) as (reader, _):
        assert await answers(reader, 1) == [1]
        (peer,) = running.engine.peers
        await bring(peer, data, [cut for cut in cuts if cut < len(data)])
        assert await answers(reader, len(sizes)) == list(range(2, len(sizes) + 2))
        assert (peer.session.unread, peer.session.partial) == (0, 0)


def test_what_comes_behind_the_end_of_a_large_frame_is_carried_out() -> None:
    # Of the second read little is carried out before it is the turn of others: the first frame
    # had come already, but for its end.
    first = len(message(2, PIECE_BYTES))
    asyncio.run(all_is_answered([PIECE_BYTES, *[10_000] * 9], [first - 100]))


@pytest.mark.parametrize("seed", range(20))
def test_everything_is_carried_out_wherever_reads_end(seed: int) -> None:
    chance = random.Random(seed)
    sizes = [
        chance.choice((10, 1_000, chance.randrange(PIECE_BYTES), chance.randrange(READ_BYTES_MAX)))
        for _ in range(chance.randrange(5, 40))
    ]
    cuts, at = [], 0
    while at < 8 << 20:
        at += chance.choice((READ_BYTES_MAX, chance.randrange(1, READ_BYTES_MAX)))
        cuts.append(at)
    asyncio.run(all_is_answered(sizes, cuts))
