"""Members in Python and in Java share groups, with our broker and with a real RocketMQ."""

import asyncio
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import java_project
import pytest
import rocketmq_scenarios
from brokers import RunningBroker
from reference import BROKERS

sys.path.insert(0, str(Path(__file__).parents[2] / "client" / "streams"))

from stream_client_kit import declare, fill, run, take, until

from lockkeeper.client.streams import (
    FIRST,
    LAST,
    ConsumeLater,
    GroupSettings,
    Message,
    NoSuchStreamError,
    Outcome,
    ReceivedMessage,
    Sql,
)
from lockkeeper.client.streams.aio import Connection, connect

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.thorough]
VERSION = "4.9.8"


@pytest.fixture(scope="module", params=list(BROKERS))
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningBroker]:
    reason = java_project.missing()
    if reason:
        pytest.skip(reason)
    try:
        running = BROKERS[request.param](tmp_path_factory.mktemp(request.param))
    except RuntimeError as error:
        if request.param == "lockkeeper":
            raise
        pytest.skip(f"no RocketMQ: {error}")
    yield running
    running.kill()


@pytest.fixture
def names(broker: RunningBroker) -> str:
    return f"127.0.0.1:{broker.port}"


@pytest.fixture
def stream(request: pytest.FixtureRequest) -> str:
    return "P-" + "".join(c if c.isalnum() else "-" for c in request.node.name)


class JavaMember:
    """A member in Java; `seen` has the texts that it consumed, by partition, `order` in order."""

    def __init__(self, names: str, group: str, stream: str, kind: str, directory: Path) -> None:
        home = f"-Duser.home={directory}"
        program = [*rocketmq_scenarios.JAVA, home, "-cp", rocketmq_scenarios.class_path(VERSION)]
        self._out = (directory / f"{kind}.out").open("w+")
        self._process = subprocess.Popen(
            [*program, "dev.lockkeeper.rocketmq.Member", names, group, stream, kind],
            stdin=subprocess.PIPE, stdout=self._out, text=True,
        )  # fmt: skip
        self.path = Path(self._out.name)

    @property
    def seen(self) -> list[tuple[int, str]]:
        """Partitions and texts of what it consumed."""
        lines = [line.split() for line in self.path.read_text().splitlines()]
        return [(int(line[0]), line[1]) for line in lines if len(line) == 2 and line[0].isdigit()]

    def send(self, *texts: str) -> None:
        """Have it send texts, each with itself as its key."""
        assert self._process.stdin is not None
        self._process.stdin.write("".join(f"{text}\n" for text in texts))
        self._process.stdin.flush()

    def leave(self) -> None:
        """Have it leave the group."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait()
        self._out.close()


async def ready(connection: Connection, stream: str, partitions: int) -> None:
    """Make a stream; a real name server learns of brokers and streams in its own time."""
    async with asyncio.timeout(100):
        while True:
            try:
                await declare(connection, stream, partitions)
                if len((await connection.network.route(stream)).writable) == partitions:
                    return
            except NoSuchStreamError:
                await asyncio.sleep(0.2)


@pytest.mark.parametrize("kind", ["concurrently", "orderly"])
def test_members_in_both_languages_share_a_group(
    names: str, stream: str, kind: str, tmp_path: Path
) -> None:
    async def main() -> None:
        seen: list[tuple[int, str]] = []

        async def consume(message: ReceivedMessage) -> None:
            seen.append((message.partition.number, message.text))

        settings = GroupSettings(begin=FIRST, orderly=kind == "orderly", lock_interval=1)
        async with await connect(names) as connection:
            await ready(connection, stream, 4)
            member = await connection.consumer(f"G-{stream}", stream, consume, settings)
            assert len(member.partitions) == 4
            await fill(connection, stream, 40, partitions=4)
            await until(lambda: len(seen) == 40)
            java = JavaMember(names, f"G-{stream}", stream, kind, tmp_path)
            try:
                await until(lambda: len(member.partitions) == 2, 120)
                mine = {each.number for each in member.partitions}
                assert mine in ({0, 1}, {2, 3})
                await asyncio.sleep(3)
                await fill(connection, stream, 40, first=40, partitions=4)
                await until(lambda: len({*seen, *java.seen}) == 80, 120)
                assert {number for number, _ in java.seen} <= {0, 1, 2, 3} - mine
                await asyncio.to_thread(java.leave)
                await until(lambda: len(member.partitions) == 4, 120)
                await fill(connection, stream, 40, first=80, partitions=4)
                await until(lambda: len({*seen, *java.seen}) == 120, 120)
            finally:
                java.kill()
        everything = [*seen, *java.seen]
        assert Counter(text for _, text in everything) == Counter(map(str, range(120)))
        if kind == "orderly":
            for one in (seen, java.seen):
                by_partition: defaultdict[int, list[int]] = defaultdict(list)
                for number, text in one:
                    by_partition[number].append(int(text))
                assert all(each == sorted(each) for each in by_partition.values())

    run(main())


def test_keys_lead_to_the_same_partitions(names: str, stream: str, tmp_path: Path) -> None:
    async def main() -> None:
        keys = [f"key-{number}" for number in range(20)] + ["Zoë", "polygenelubricants"]
        async with await connect(names) as connection:
            await ready(connection, stream, 7)
            producer = await connection.producer()
            ours = {
                key: (await producer.send(stream, "mine", partition_key=key)).partition.number
                for key in keys
            }
            reader = await connection.reader(stream, begin=LAST)
            java = JavaMember(names, f"G-{stream}", stream, "concurrently", tmp_path)
            try:
                java.send(*keys)
                theirs = {m.text: m.partition.number for m in await take(reader, len(keys))}
            finally:
                java.kill()
        assert ours == theirs

    run(main())


def test_a_real_broker_does_what_ours_does(names: str, stream: str) -> None:
    async def main() -> None:
        asked: list[str] = []

        def check(message: ReceivedMessage) -> Outcome:
            asked.append(message.text)
            return Outcome.COMMIT

        async with await connect(names) as connection:
            await ready(connection, stream, 1)
            producer = await connection.producer(f"P-{stream}", check)
            sent = await producer.send(
                stream, "Tee", tag="Aa", keys=["k"], properties={"size": "9"}
            )
            batch = [Message(f"b{number}", tag="BB") for number in range(5)]
            places = [each.offset for each in await producer.send_batch(stream, batch)]
            assert (sent.offset, places) == (0, [1, 2, 3, 4, 5])
            async with await producer.transaction(stream, Message("committed")):
                pass
            await producer.transaction(stream, Message("forgotten"))
            await producer.send(stream, "late", delay_level=1)
            reader = await connection.reader(stream)
            first = (await take(reader, 1))[0]
            assert (first.text, first.tag, first.keys) == ("Tee", "Aa", ["k"])
            assert first.properties == {"size": "9"}
            assert first.message_id == sent.message_id
            rest: set[str] = set()
            while len(rest) < 8:
                rest.add((await take(reader, 1))[0].text)
            assert rest == {"b0", "b1", "b2", "b3", "b4", "committed", "forgotten", "late"}
            # RocketMQ 5 notes outcomes every 3 s, and may ask before that: the message comes twice.
            assert {"forgotten"} <= set(asked) <= {"forgotten", "committed"}
            tagged = await connection.reader(stream, "Aa")
            assert [each.text for each in await take(tagged, 1)] == ["Tee"]
            chosen = await connection.reader(stream, Sql("size > 5"))
            assert [each.text for each in await take(chosen, 1)] == ["Tee"]
            await reader.seek(3)
            assert (await take(reader, 1))[0].text == "b2"

    run(main())


def test_retries_and_dead_letters_of_a_real_broker(names: str, stream: str) -> None:
    async def main() -> None:
        tries: defaultdict[str, list[int]] = defaultdict(list)

        async def consume(message: ReceivedMessage) -> None:
            assert message.stream == stream
            tries[message.text].append(message.reconsumed)
            if message.text != "good":
                raise ConsumeLater(1)

        async def dead_letters() -> list[str]:
            reader = await connection.reader(f"%DLQ%G-{stream}", timeout=60)
            return [each.text for each in await take(reader, 1)]

        async with await connect(names) as connection:
            await ready(connection, stream, 1)
            producer = await connection.producer()
            settings = GroupSettings(begin=FIRST, reconsumes_max=1)
            group = f"G-{stream}"
            async with await connection.consumer(group, stream, consume, settings):
                for text in ("good", "bad"):
                    await producer.send(stream, text)
                await until(lambda: len(tries["bad"]) == 2, 120)
                async with asyncio.timeout(60):
                    while True:
                        try:
                            assert await dead_letters() == ["bad"]
                            break
                        except Exception as error:
                            assert "code 17" in str(error), error
                            await asyncio.sleep(0.2)
            # The next member begins where this one was.
            async with await connection.consumer(group, stream, consume, settings):
                await producer.send(stream, "good")
                await until(lambda: len(tries["good"]) == 2, 60)
        assert tries == {"good": [0, 0], "bad": [0, 1]}

    run(main())
