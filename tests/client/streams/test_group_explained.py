"""A broker explains why a group of real clients stands still, as `lockkeeper why group` asks."""

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import reference
from brokers import RunningBroker
from ports import free_port
from stream_client_kit import declare, fill, run

from lockkeeper.client.streams import FIRST, GroupSettings, ReceivedMessage
from lockkeeper.client.streams.aio import connect

STREAM, GROUP = "orders", "billing"


class Asked(RunningBroker):
    """A running broker that is asked why the group stands still."""

    admin: int

    def why(self) -> dict[str, Any]:
        """Return the answer."""
        url = f"http://127.0.0.1:{self.admin}/api/v1/why/group?name={GROUP}&stream={STREAM}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def codes(self) -> set[str]:
        """Return the reasons in the answer, of the group, the stream and its partitions."""
        answer = self.why()
        (stream,) = answer["streams"]
        told = [answer, stream, *stream["partitions"]]
        return {reason["reason"] for each in told for reason in each["reasons"]}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Asked]:
    port, admin = free_port(), free_port()
    command = reference.lockkeeper_command(tmp_path / "data", port)
    command[command.index("--admin") + 1] = f"127.0.0.1:{admin}"
    running = Asked("lockkeeper", port, tmp_path, command)
    running.admin = admin
    yield running
    running.kill()


async def comes_to(broker: Asked, codes: set[str]) -> None:
    """Wait until the broker tells these reasons."""
    async with asyncio.timeout(100):
        while (told := await asyncio.to_thread(broker.codes)) != codes:
            assert told <= {"not-read", "next", "in-hand"}, told
            await asyncio.sleep(0.1)


def test_a_group_stands_still_and_goes_on(broker: Asked) -> None:
    async def main() -> None:
        may_go_on = asyncio.Event()

        async def consume(_: ReceivedMessage) -> None:
            await may_go_on.wait()

        async with await connect(f"127.0.0.1:{broker.port}") as connection:
            await declare(connection, STREAM, 2)
            settings = GroupSettings(begin=FIRST)
            async with await connection.consumer(GROUP, STREAM, consume, settings):
                await fill(connection, STREAM, 20, partitions=2)
                await comes_to(broker, {"in-hand"})
                answer = await asyncio.to_thread(broker.why)
                assert (answer["lagMessages"], answer["members"]) == (20, 1)
                (reason,) = answer["streams"][0]["partitions"][0]["reasons"]
                assert reason["held"] == 10
                assert reason["address"].startswith("tcp://127.0.0.1:")
                may_go_on.set()
                await comes_to(broker, set())
            await fill(connection, STREAM, 2, partitions=2)
            await comes_to(broker, {"no-member"})

    run(main())
