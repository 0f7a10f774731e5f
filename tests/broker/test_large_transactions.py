"""Transactions that consume more than there is memory for."""

from pathlib import Path
from typing import TYPE_CHECKING

from lockkeeper.broker.context import HELD_BYTES_MAX
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.message.openwire import AckType
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench, Client

    from lockkeeper.broker.subscriptions.consumer import Consumer
    from lockkeeper.message.ids import TransactionId

MEMORY_BYTES = 1 << 20
SETTINGS = BrokerSettings(system_usage=SystemUsage(MemoryUsage(MEMORY_BYTES)))
MEBIBYTE = "x" * (1 << 20)


def consume_each(client: "Client", consumer: "Consumer", transaction: "TransactionId") -> list[str]:
    """Consume one message after the other, each acknowledged by itself, while any come."""
    found: list[str] = []
    while deliveries := client.deliveries(consumer):
        for delivery in deliveries:
            found.append(delivery.message.body.rpartition(b"#")[2][:3].decode())
            client.bench.broker.transactions.acknowledge(
                client.connection,
                consumer,
                transaction,
                delivery.message.sequence,
                1,
                AckType.INDIVIDUAL,
            )
        client.bench.tick()
    return found


def test_a_transaction_gets_more_while_there_is_room_and_the_rest_after_it(
    make_bench: "type[Bench]", tmp_path: Path
) -> None:
    store = KahaDBStore(tmp_path)
    bench = make_bench(store, settings=SETTINGS)
    client, count = bench.client(), 50
    for number in range(count):
        client.send("Q", f"{MEBIBYTE}#{number:03}")
    client.outputs()
    consumer = client.consume("Q", prefetch=1)
    found: list[str] = []
    parts = 0
    while len(found) < count:
        parts += 1
        transaction = client.begin(parts)
        part = consume_each(client, consumer, transaction)
        assert len(part) >= HELD_BYTES_MAX >> 20 or len(found) + len(part) == count
        found += part
        assert bench.broker.memory.used < MEMORY_BYTES + 2 * HELD_BYTES_MAX + (4 << 20)
        bench.broker.transactions.commit(client.connection, transaction, None)
        bench.tick()
    assert found == [f"{number:03}" for number in range(count)]
    assert parts > 2
    assert bench.broker.memory.used == 0
    store.close()


def test_a_transaction_that_holds_little_gets_more_however_full_the_memory_is(
    make_bench: "type[Bench]", tmp_path: Path
) -> None:
    store = KahaDBStore(tmp_path)
    bench = make_bench(store, settings=SETTINGS)
    holder, client = bench.client(), bench.client()
    for number in range(20):
        holder.send("FULL", f"{MEBIBYTE}#{number:03}")
        client.send("Q", f"#{number:03}")
    client.outputs()
    holder.consume("FULL")
    assert not bench.broker.context.has_room()
    consumer = client.consume("Q", prefetch=1)
    transaction = client.begin()
    expected = [f"{number:03}" for number in range(20)]
    assert consume_each(client, consumer, transaction) == expected
    store.close()
