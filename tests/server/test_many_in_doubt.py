"""Recovery of more transactions than one answer of OpenWire can tell of."""

import asyncio

from running_engine import Running, greeted
from test_unread_answers import answered, prepare, recovery

from lockkeeper.message import openwire
from lockkeeper.message.openwire import DataArrayResponse

NAME = "c"
ARRAY_ITEMS_MAX = 32_767


def test_a_client_is_told_of_as_many_transactions_as_a_list_may_have() -> None:
    async def run() -> None:
        async with Running() as running:
            prepare(running, ARRAY_ITEMS_MAX + 1)
            async with greeted(running, NAME) as (reader, writer):
                assert await answered(reader, 1) == [1]
                writer.write(recovery(2))
                size = int.from_bytes(await reader.readexactly(4), "big")
                told = running.broker.transactions.in_doubt()[:ARRAY_ITEMS_MAX]
                expected = openwire.encode(DataArrayResponse(correlation_id=2, data=told))
                assert await reader.readexactly(size) == expected

    asyncio.run(run())
