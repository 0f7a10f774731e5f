"""Clients that leave answers unread: those that read slowly stay, those that do not are silent."""

import asyncio
import time

from raw_peer import Serve, Wire, until
from running_engine import introduction
from test_unread_answers import mistake

from lockkeeper.message import openwire
from lockkeeper.protocols.openwire.codec import offer
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.settings import ListenerSettings

LIMIT_MS = 1_500
STEP_BYTES, STEP_SECONDS = 1 << 15, 0.1
READING_SECONDS = 5 * LIMIT_MS / 1000
ASKED = 10_000
"""Errors that are asked for, 3 KB each: far more than the system takes for a client."""


def test_a_client_that_reads_slowly_stays_until_it_reads_no_more(serve: Serve) -> None:
    """The system takes a megabyte at a time from the loop, as soon as it has room for that."""

    async def test(wire: Wire) -> None:
        client = await wire.connect()
        greeting = openwire.encode(offer(ListenerSettings(inactivity_duration=LIMIT_MS)))
        client.send(framed(greeting) + framed(openwire.encode(introduction("c"))))
        await until(lambda: "c" in wire.broker.connections)
        (peer,) = wire.engine.peers
        client.send(b"".join(mistake(2 + number) for number in range(ASKED)))
        await until(lambda: peer.is_paused and not peer.is_resting)
        ends = time.monotonic() + READING_SECONDS
        while time.monotonic() < ends:
            await client.reader.readexactly(STEP_BYTES)
            await asyncio.sleep(STEP_SECONDS)
            assert wire.engine.peers == {peer}
        await until(lambda: not wire.engine.peers, 4 * LIMIT_MS / 1000)

    serve(test, protocol="openwire", kernel_bytes=None)
