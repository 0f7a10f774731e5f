"""Brokers that die, freeze and are replaced under a client, and what says so."""

import asyncio
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import reference
from brokers import RunningBroker, accepts
from ports import free_port
from stream_client_kit import declare, fill, run, take, until

from lockkeeper.client import ConnectionFailedError, RequestTimedOutError
from lockkeeper.client.streams import FIRST, GroupSettings, Means, Message, ReceivedMessage
from lockkeeper.client.streams.aio import connect

QUICK = Means(connect_timeout=1, request_timeout=1, heartbeat_interval=0.3)
IN_ORDER = GroupSettings(begin=FIRST, orderly=True, lock_interval=0.5)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[RunningBroker]]:
    """A master and a standby over one directory."""
    running: list[RunningBroker] = []
    for number in range(2):
        port = free_port()
        command = reference.lockkeeper_command(tmp_path / "data", port)
        running.append(
            RunningBroker("lockkeeper", port, tmp_path / f"{number}", command, waits=number == 0)
        )
    yield running
    for each in running:
        each.kill()


@pytest.mark.crash
@pytest.mark.patient
def test_another_broker_takes_over_and_nothing_is_missing(pair: list[RunningBroker]) -> None:
    master, standby = pair

    async def main() -> None:
        seen: defaultdict[int, list[int]] = defaultdict(list)
        beside: set[int] = set()

        async def consume(message: ReceivedMessage) -> None:
            seen[message.partition.number].append(int(message.text))

        async def consume_beside(message: ReceivedMessage) -> None:
            beside.add(int(message.text))

        addresses = ";".join(f"127.0.0.1:{each.port}" for each in pair)
        async with await connect(addresses, means=QUICK) as connection:
            await declare(connection, "S", 2)
            await connection.consumer("IN-ORDER", "S", consume, IN_ORDER)
            await connection.consumer("BESIDE", "S", consume_beside, GroupSettings(begin=FIRST))
            producer = await connection.producer()
            stopped = asyncio.Event()

            async def produce(place: int) -> int:
                number = 0
                while not stopped.is_set():
                    await producer.send("S", str(number), partition=place, timeout=200)
                    number += 1
                return number

            sending = [asyncio.create_task(produce(place)) for place in (0, 1)]
            await until(lambda: len(seen[0]) > 20 and len(seen[1]) > 20)
            master.kill()
            await until(lambda: accepts(standby.port))
            counted = len(seen[0])
            await until(lambda: len(seen[0]) > counted + 20)
            stopped.set()
            counts = [await each for each in sending]
            await until(lambda: [seen[n][-1] + 1 for n in (0, 1)] == counts)
            await until(lambda: len(beside) == max(counts))
        for place, count in enumerate(counts):
            # Offsets and sends may be repeated by the kill; what is new comes in order.
            first_times = list(dict.fromkeys(seen[place]))
            assert first_times == [*range(count)]

    run(main())


@pytest.mark.crash
@pytest.mark.patient
def test_a_broker_that_was_away_is_found_again(mortal_stream_broker: RunningBroker) -> None:
    broker = mortal_stream_broker

    async def main() -> None:
        async with await connect(f"127.0.0.1:{broker.port}", means=QUICK) as connection:
            await declare(connection, "S", 1)
            producer = await connection.producer()
            await producer.send("S", "before")
            reader = await connection.reader("S")
            await take(reader, 1)
            await asyncio.to_thread(broker.kill)
            with pytest.raises(ConnectionFailedError):
                await producer.send("S", "lost", timeout=0.2)
            sending = asyncio.create_task(producer.send("S", "after", timeout=200))
            await asyncio.to_thread(broker.start)
            await sending
            (message,) = await take(reader, 1)
            assert message.text == "after"
            # A frozen broker says nothing, and its sockets stay.
            (link,) = connection.network.brokers()
            broker.process.send_signal(signal.SIGSTOP)
            try:
                async with asyncio.timeout(60):
                    await asyncio.shield(link.lost)
                with pytest.raises((RequestTimedOutError, ConnectionFailedError)):
                    await producer.send("S", "frozen", timeout=0.3)
            finally:
                broker.process.send_signal(signal.SIGCONT)
            await producer.send_message("S", Message("thawed"), timeout=100)
            while (message := (await take(reader, 1))[0]).text != "thawed":
                assert message.text in ("lost", "frozen")

    run(main())


def test_nobody_there_is_said_soon() -> None:
    async def main() -> None:
        nobody = f"127.0.0.1:{free_port()};127.0.0.1:{free_port()}"
        async with await connect(nobody) as connection:
            producer = await connection.producer()
            with pytest.raises(ConnectionFailedError, match=r"no name server answers: .*; "):
                await producer.send("S", "m", timeout=0.2)
            with pytest.raises(ConnectionFailedError):
                await connection.reader("S", timeout=0.2)

    run(main())


async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, words: bytes) -> None:
    await reader.read(1)
    writer.write(words)
    await writer.drain()
    writer.close()


@pytest.mark.parametrize(
    "words",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00\x00\x00\x08\x00\x00\x00\x04nope",
        b"\x7f\xff\xff\xff",
        b"",
    ],
)
def test_a_peer_of_another_kind_is_left(words: bytes) -> None:
    async def main() -> None:
        server = await asyncio.start_server(
            lambda reader, writer: speak(reader, writer, words), "127.0.0.1"
        )
        port = server.sockets[0].getsockname()[1]
        async with server, await connect(f"127.0.0.1:{port}") as connection:
            producer = await connection.producer()
            with pytest.raises(ConnectionFailedError):
                await producer.send("S", "m", timeout=0.2)

    run(main())


def test_cancelled_calls_take_nothing(names: str, stream: str) -> None:
    async def main() -> None:
        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            reader = await connection.reader(stream)
            for _ in range(20):
                waiting = asyncio.create_task(reader.receive())
                await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait([waiting])
            await fill(connection, stream, 20, partitions=1)
            assert [each.text for each in await take(reader, 20)] == [*map(str, range(20))]

    run(main())
