"""Requests about jobs over sockets: a client is not read from while they last, and never stuck."""

import asyncio
import time

from running_engine import Running

from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SchedulerSettings, SystemUsage
from lockkeeper.client.aio import connect

ROOM = 3 << 20
COUNT = 400
SECONDS_MAX = 20
MANAGEMENT = "topic://ActiveMQ.Scheduler.Management"
SETTINGS = BrokerSettings(
    scheduler=SchedulerSettings(enabled=True), system_usage=SystemUsage(MemoryUsage(ROOM))
)


async def browse_twice_in_little_memory() -> None:
    async with Running(settings=SETTINGS) as running:
        address = f"tcp://127.0.0.1:{running.port}"
        async with await connect(address) as connection, await connect(address) as other:
            session = connection.session()
            producer = await session.producer("Q")
            for number in range(COUNT):
                later = {"AMQ_SCHEDULED_DELAY": 3_600_000 + number}
                await producer.send(f"{number} {'x' * 4000}", properties=later)
            answers = await session.consumer("ANSWERS")
            asking = await session.producer(MANAGEMENT)
            browse = {"AMQ_SCHEDULER_ACTION": "BROWSE"}
            asked = [
                asyncio.ensure_future(asking.send("", properties=browse, reply_to="ANSWERS"))
                for _ in range(2)
            ]
            told: list[int] = []
            most = 0
            while len(told) < 2 * COUNT:
                message = await answers.receive(timeout=SECONDS_MAX)
                assert message is not None
                told.append(int(str(message.body).split()[0]))
                most = max(most, running.broker.memory.used)
                if len(told) == 10:
                    begun = time.monotonic()
                    remove = {"AMQ_SCHEDULER_ACTION": "REMOVE", "scheduledJobId": "none"}
                    removing = await other.session().producer(MANAGEMENT)
                    await removing.send("", properties=remove, timeout=SECONDS_MAX)
                    assert time.monotonic() - begun < SECONDS_MAX / 4
            async with asyncio.timeout(SECONDS_MAX):
                await asyncio.gather(*asked)
            assert told == [*range(COUNT), *range(COUNT)]
            assert most < ROOM + (1 << 20)
            everything = {"AMQ_SCHEDULER_ACTION": "REMOVEALL"}
            await asking.send("", properties=everything, timeout=SECONDS_MAX)
            jobs = running.broker.registry.find(JOBS)
            assert jobs is not None
            assert jobs.depth() == 0
            assert [each.stalled_bytes for each in running.broker.connections.values()] == [0, 0]


def test_who_browses_in_little_memory_is_told_of_everything() -> None:
    asyncio.run(browse_twice_in_little_memory())
