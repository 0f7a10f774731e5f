"""Answers that their peer does not read: it is not read from until it does."""

import asyncio
import socket
from collections.abc import Callable

import pytest
from running_engine import Running, greeted, introduction

from lockkeeper.message import openwire
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import (
    LocalTransactionId,
    MessageId,
    ProducerId,
    XATransactionId,
)
from lockkeeper.message.openwire import ConnectionId, TransactionInfo, TransactionOperation
from lockkeeper.protocols.openwire.codec import offer
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.base import Operation
from lockkeeper.transport.peer import UNREAD_ANSWERS_BYTES_MAX
from lockkeeper.transport.write_buffers import WRITE_BUFFER_BYTES

NAME = "c"
PREPARED = 2_000
LIST_BYTES_MAX = PREPARED * 200
ANSWERS = {30, 31, 33}
"""Types of answers: plain ones, errors and lists."""
SECONDS_MAX = 60


def request(number: int, operation: int, transaction: LocalTransactionId | None) -> bytes:
    return framed(
        openwire.encode(
            TransactionInfo(
                command_id=number,
                response_required=True,
                connection_id=ConnectionId(NAME),
                transaction_id=transaction,
                type=operation,
            )
        )
    )


def recovery(number: int) -> bytes:
    """Return a request that is answered by a list of all prepared transactions."""
    return request(number, TransactionOperation.RECOVER, None)


def mistake(number: int) -> bytes:
    """Return a request that is answered by an error."""
    unknown = LocalTransactionId("x" * 3_000, 1)
    return request(number, TransactionOperation.COMMIT_ONE_PHASE, unknown)


async def answered(reader: asyncio.StreamReader, count: int) -> list[int]:
    """Return which requests the next answers are for."""
    found: list[int] = []
    async with asyncio.timeout(SECONDS_MAX):
        while len(found) < count:
            size = int.from_bytes(await reader.readexactly(4), "big")
            frame = await reader.readexactly(size)
            if frame[0] in ANSWERS:
                found.append(int.from_bytes(frame[6:10], "big"))
    return found


def prepare(running: Running, count: int) -> None:
    nothing: list[Operation] = []
    for number in range(count):
        identifier = XATransactionId(1, b"%064d" % number, bytes(64))
        running.broker.transactions.recover(identifier, nothing)


@pytest.mark.parametrize(
    ("asked", "count"), [(recovery, 300), (mistake, 10_000)], ids=["lists", "errors"]
)
def test_no_more_than_a_bound_waits_for_a_client_that_does_not_read(
    asked: Callable[[int], bytes], count: int
) -> None:
    async def run() -> int:
        async with Running() as running:
            prepare(running, PREPARED)
            async with greeted(running, NAME) as (reader, writer):
                assert await answered(reader, 1) == [1]
                (peer,) = running.engine.peers
                most = 0
                for number in range(count):
                    writer.write(asked(2 + number))
                for _ in range(200):
                    await asyncio.sleep(0.01)
                    transport = peer._transport
                    assert transport is not None
                    most = max(most, transport.get_write_buffer_size())
                assert await answered(reader, count) == list(range(2, 2 + count))
                return most

    most = asyncio.run(run())
    assert most > WRITE_BUFFER_BYTES
    assert most < WRITE_BUFFER_BYTES + UNREAD_ANSWERS_BYTES_MAX + 3 * LIST_BYTES_MAX


def message(number: int) -> bytes:
    """Return a message that nobody waits to hear of."""
    producer = ProducerId(NAME, 1, 1)
    return framed(
        openwire.encode(
            openwire.ActiveMQTextMessage(
                producer_id=producer,
                destination=queue("Q"),
                message_id=MessageId(producer, number),
            )
        )
    )


def test_what_a_lost_client_had_asked_for_is_carried_out_in_turns() -> None:
    count, said = 300, 5

    async def run() -> tuple[list[int], int]:
        async with Running() as running:
            prepare(running, PREPARED)
            async with greeted(running, NAME) as (reader, writer):
                assert await answered(reader, 1) == [1]
                (peer,) = running.engine.peers
                asked = b"".join(recovery(2 + number) for number in range(count))
                writer.write(asked + b"".join(message(number) for number in range(said)))
                async with asyncio.timeout(SECONDS_MAX):
                    while not (peer.session.unread and peer.is_paused and not peer.is_resting):
                        await asyncio.sleep(0.01)
                writer.transport.abort()
                waiting: list[int] = []
                async with asyncio.timeout(SECONDS_MAX):
                    while running.engine.peers:
                        waiting.append(len(peer.session.connection.outbox))
                        await asyncio.sleep(0)
                assert running.broker.connections == {}
                (found,) = (each for each in running.broker.registry if each.destination.is_queue)
                return waiting, found.statistics.enqueued

    waiting, enqueued = asyncio.run(run())
    assert enqueued == said
    assert len(waiting) > count // 2
    assert max(waiting) <= 1


def test_a_client_that_takes_nothing_is_silent_by_its_own_fault() -> None:
    limit = 1_000
    greeting = openwire.encode(offer(ListenerSettings(inactivity_duration=limit)))
    said = framed(greeting) + framed(openwire.encode(introduction(NAME)))

    async def run() -> None:
        loop = asyncio.get_running_loop()
        async with Running() as running:
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 13)
                client.setblocking(False)
                await loop.sock_connect(client, ("127.0.0.1", running.port))
                await loop.sock_sendall(client, said)
                async with asyncio.timeout(SECONDS_MAX):
                    while NAME not in running.broker.connections:
                        await asyncio.sleep(0.01)
                (peer,) = running.engine.peers
                assert peer._transport is not None
                mine = peer._transport.get_extra_info("socket")
                mine.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 15)
                asked = b"".join(mistake(2 + number) for number in range(10_000))
                asking = asyncio.create_task(loop.sock_sendall(client, asked))
                async with asyncio.timeout(SECONDS_MAX):
                    while not (peer.is_paused and not peer.is_resting):
                        await asyncio.sleep(0.01)
                # It takes little at a time, for much longer than it may be silent.
                for _ in range(40):
                    await loop.sock_recv(client, 1 << 13)
                    await asyncio.sleep(limit / 10_000)
                    assert peer in running.engine.peers
                    assert peer.is_paused
                # Now it takes nothing.
                async with asyncio.timeout(4 * limit / 1000):
                    while peer in running.engine.peers:
                        await asyncio.sleep(0.01)
                asking.cancel()

    asyncio.run(run())
