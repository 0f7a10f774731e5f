"""Members that come, go and lose their links at random: each message is consumed, order is kept."""

import asyncio
import random
from collections import defaultdict

import pytest
from stream_client_kit import declare, fill, run, until

from lockkeeper.client import ConnectionFailedError
from lockkeeper.client.streams import FIRST, ConsumeLater, GroupSettings, Means, ReceivedMessage
from lockkeeper.client.streams.aio import Connection, connect

pytestmark = [pytest.mark.slow, pytest.mark.thorough]
MEANS = Means(heartbeat_interval=0.3)
PARTITIONS, CHUNKS, CHUNK, MEMBERS_MAX = 4, 25, 40, 4


class Watch:
    """What all members have seen, and what may never be."""

    def __init__(self, orderly: bool, chance: random.Random) -> None:
        self.seen: defaultdict[int, list[int]] = defaultdict(list)
        self.everything: set[int] = set()
        self._orderly = orderly
        self._chance = chance
        self._at_work: set[int] = set()
        self.doubles = 0

    async def consume(self, message: ReceivedMessage) -> None:
        """Consume a message, or not."""
        partition = message.partition.number
        if self._orderly:
            self.doubles += partition in self._at_work
            self._at_work.add(partition)
        try:
            await asyncio.sleep(self._chance.random() * 0.004)
            if self._chance.random() < 0.02:
                raise ConsumeLater(1)
        finally:
            self._at_work.discard(partition)
        self.seen[partition].append(int(message.text))
        self.everything.add(int(message.text))


@pytest.mark.parametrize("orderly", [False, True], ids=["beside", "in-order"])
@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_missed_in_turmoil(names: str, stream: str, orderly: bool, seed: int) -> None:
    chance = random.Random(seed)
    watch = Watch(orderly, chance)
    settings = GroupSettings(
        begin=FIRST, orderly=orderly, suspend=0.02, lock_interval=0.5, commit_interval=0.3
    )

    async def join() -> Connection:
        connection = await connect(names, means=MEANS)
        await connection.consumer(f"G-{stream}", stream, watch.consume, settings)
        return connection

    def cut(member: Connection) -> None:
        for link in member.network.brokers():
            link.lose(ConnectionFailedError("cut by the test"))

    async def main() -> None:
        async with await connect(names) as connection:
            await declare(connection, stream, PARTITIONS)
            members = [await join()]
            for number in range(CHUNKS):
                await fill(connection, stream, CHUNK, number * CHUNK, PARTITIONS)
                turn = chance.random()
                if turn < 0.3 and len(members) < MEMBERS_MAX:
                    members.append(await join())
                elif turn < 0.5 and len(members) > 1:
                    await members.pop(chance.randrange(len(members))).close()
                elif turn < 0.8:
                    cut(chance.choice(members))
                await asyncio.sleep(chance.random() * 0.2)
            total = CHUNKS * CHUNK
            await until(lambda: len(watch.everything) == total, 150)
            for member in members:
                await member.close()
        assert watch.doubles == 0
        if orderly:
            for place, numbers in watch.seen.items():
                assert list(dict.fromkeys(numbers)) == [*range(place, total, PARTITIONS)]

    run(main())
