"""Memory that browsers take: bodies that are read for them count, and have a bound."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.context import HELD_BYTES_MAX
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench

MEMORY_BYTES = 1 << 20
SETTINGS = BrokerSettings(system_usage=SystemUsage(MemoryUsage(MEMORY_BYTES)))
MEBIBYTE, COUNT = "x" * (1 << 20), 40


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_browser_is_shown_no_more_than_there_is_room_for(
    make_bench: "type[Bench]", tmp_path: Path, in_transaction: bool
) -> None:
    store = KahaDBStore(tmp_path)
    bench = make_bench(store, settings=SETTINGS)
    client = bench.client()
    for number in range(COUNT):
        client.send("Q", f"{MEBIBYTE}#{number:03}")
    before = bench.broker.memory.used
    client.outputs()
    browser = client.consume("Q", prefetch=COUNT, browser=True)
    transactions = bench.broker.transactions
    found: list[str] = []
    while deliveries := client.deliveries(browser):
        assert len(browser.dispatched) << 20 < MEMORY_BYTES + HELD_BYTES_MAX + (4 << 20)
        found += [each.message.body.rpartition(b"#")[2][:3].decode() for each in deliveries]
        last, count = deliveries[-1].message.sequence, len(deliveries)
        if in_transaction:
            identifier = client.begin(len(found))
            transactions.acknowledge(client.connection, browser, identifier, last, count, 2)
            transactions.commit(client.connection, identifier, None)
        else:
            bench.broker.acknowledge(browser, 2, last, count, None)
        bench.tick()
    assert found == [f"{number:03}" for number in range(COUNT)]
    assert bench.broker.memory.used == before
    assert bench.depth("Q") == COUNT
    store.close()


def test_what_a_browser_held_is_given_back_when_it_goes(
    make_bench: "type[Bench]", tmp_path: Path
) -> None:
    store = KahaDBStore(tmp_path)
    bench = make_bench(store, settings=SETTINGS)
    client = bench.client()
    for number in range(COUNT):
        client.send("Q", f"{MEBIBYTE}#{number:03}")
    before = bench.broker.memory.used
    other = bench.client()
    other.consume("Q", prefetch=COUNT, browser=True)
    assert bench.broker.memory.used > before + (4 << 20)
    other.leave()
    for _ in range(3):
        bench.tick()
    assert bench.broker.memory.used == before
    store.close()
