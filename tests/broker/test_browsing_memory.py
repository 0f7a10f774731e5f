"""Memory that browsers take: none for what they were sent, and so none that they wait for."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from lockkeeper.broker.context import SHARE_BYTES_MAX
from lockkeeper.broker.outputs import EndOfMessages
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.message.openwire import AckType
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench, Client, Delivered

    from lockkeeper.broker.outputs import Delivery
    from lockkeeper.broker.subscriptions.consumer import Consumer

MEMORY_BYTES = 1 << 20
SETTINGS = BrokerSettings(system_usage=SystemUsage(MemoryUsage(MEMORY_BYTES)))
MEBIBYTE, COUNT = "x" * (1 << 20), 40
NAMES = [f"{number:03}" for number in range(COUNT)]
TICK_BYTES = SHARE_BYTES_MAX + (2 << 20)
"""What one browser may be sent in a tick, and a last message."""


def fill(client: "Client") -> None:
    """Send far more than there is memory for."""
    for name in NAMES:
        client.send("Q", f"{MEBIBYTE}#{name}")
    client.outputs()


def names(deliveries: "list[Delivered]") -> list[str]:
    """Return which of the messages that were sent came."""
    return [each.message.body.rpartition(b"#")[2][:3].decode() for each in deliveries]


def kept(browser: "Consumer") -> int:
    """Return the bytes of messages that a browser holds."""
    return sum(len(each.loaded.body) for each in browser.dispatched.values())


@pytest.mark.parametrize("answer", ["", "one by one", "expired", "in transactions"])
def test_what_a_browser_was_sent_takes_no_memory_whatever_it_answers(
    make_bench: "type[Bench]", tmp_path: Path, answer: str
) -> None:
    store = KahaDBStore(tmp_path)
    bench = make_bench(store, settings=SETTINGS)
    client = bench.client()
    fill(client)
    before = bench.broker.memory.used
    browser = client.consume("Q", prefetch=COUNT, browser=True)
    transactions = bench.broker.transactions
    found: list[str] = []
    while deliveries := client.deliveries(browser):
        assert bench.broker.memory.used == before
        assert kept(browser) < 1024 * COUNT
        found += names(deliveries)
        last, count = deliveries[-1].message.sequence, len(deliveries)
        if answer == "one by one":
            for each in deliveries:
                bench.broker.acknowledge(browser, 2, each.message.sequence, 1, None)
        elif answer == "expired":
            bench.broker.acknowledge(browser, AckType.EXPIRED, last, count, None)
        elif answer:
            identifier = client.begin(len(found))
            transactions.acknowledge(client.connection, browser, identifier, last, count, 2)
            transactions.commit(client.connection, identifier, None)
        bench.tick()
    assert found == NAMES
    assert bench.broker.memory.used == before
    assert bench.depth("Q") == COUNT
    client.leave()
    bench.tick()
    assert bench.broker.memory.used == before
    store.close()


def test_a_browser_comes_to_its_end_while_others_fill_the_memory(
    make_bench: "type[Bench]", tmp_path: Path
) -> None:
    store = KahaDBStore(tmp_path)
    bench = make_bench(store, settings=SETTINGS)
    client, slow, other = bench.client(), bench.client(), bench.client()
    for number in range(20):
        client.send("Q", f"m{number}")
    slow.consume("S", prefetch=1000)
    for _ in range(150):
        client.send("S", "x" * 100_000)
    slow.outputs()
    assert bench.broker.memory.used > 8 * MEMORY_BYTES
    other.consume("Q", prefetch=500, browser=True)
    told = other.outputs()
    for _ in range(5):
        bench.tick()
        told += other.outputs()
    shown = [cast("Delivery", each)[1] for each in told if type(each) is tuple]
    assert sum(map(len, shown)) == 20
    assert [type(each) for each in told if type(each) is not tuple] == [EndOfMessages]
    store.close()


def test_a_browser_is_sent_no_more_than_it_takes(make_bench: "type[Bench]", tmp_path: Path) -> None:
    store = KahaDBStore(tmp_path)
    bench = make_bench(store, settings=SETTINGS)
    client = bench.client()
    fill(client)
    connection = client.connection
    connection.congested = True
    browser = client.consume("Q", prefetch=COUNT, browser=True)
    found: list[str] = []
    while len(found) < COUNT:
        assert client.deliveries(browser) == []
        connection.congested = False
        browser.reactivate()
        bench.broker.tick(bench.now, bench.steady)
        deliveries = client.deliveries(browser)
        assert 0 < sum(len(each.message.body) for each in deliveries) <= TICK_BYTES
        found += names(deliveries)
        # What it was sent waits for it to be taken.
        connection.congested = True
        bench.tick()
    assert found == NAMES
    store.close()


def test_a_browser_knows_what_it_was_sent(make_bench: "type[Bench]", tmp_path: Path) -> None:
    store = KahaDBStore(tmp_path)
    bench = make_bench(store, settings=SETTINGS)
    client = bench.client()
    for place in "AB":
        client.send(place, "x" * 100)
    browser = client.consume("A,B", prefetch=COUNT, browser=True)
    sent = client.deliveries(browser)
    assert len(sent) == 2
    for each in sent:
        held = browser.dispatched[each.message.sequence].loaded
        assert (held.key, held.identifier) == (each.message.key, each.message.identifier)
        assert held.destination == each.message.destination
        bench.broker.acknowledge(browser, 2, each.message.sequence, 1, None)
    assert browser.dispatched == {}
    store.close()
