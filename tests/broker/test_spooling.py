"""Non-persistent backlogs leave the memory for temporary files, and come back in order."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.context import HELD_BYTES_MAX
from lockkeeper.broker.flow.space import PASSING_BYTES_MAX, Limit
from lockkeeper.broker.policies.flow import FlowPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.message.destination import queue
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench, Client

MEMORY_BYTES = 1 << 20
COUNT = 200
FILLING = "x" * 20_000
SETTINGS = BrokerSettings(system_usage=SystemUsage(MemoryUsage(MEMORY_BYTES)))


@pytest.fixture
def spooling(make_bench: "type[Bench]", tmp_path: Path) -> Any:
    """Return what makes a broker with little memory and a directory."""
    stores = []

    def make(spool_bytes_max: int | None = None, **policies: DestinationPolicy) -> "Bench":
        stores.append(KahaDBStore(tmp_path, spool_bytes_max=spool_bytes_max))
        return make_bench(stores[-1], settings=SETTINGS, **policies)  # type: ignore[arg-type]

    yield make
    for store in stores:
        store.close()


def spooled(bench: "Bench") -> int:
    return bench.store.usage().spooled_bytes


def fill(client: "Client", name: str, count: int = COUNT, **fields: Any) -> None:
    for number in range(count):
        client.send(name, f"{number:04}{FILLING}", persistent=False, **fields)


def take(client: "Client", name: str, count: int = COUNT, **options: Any) -> list[int]:
    """Consume *count* messages one after the other; return their numbers."""
    consumer = client.consume(name, prefetch=5, **options)
    found: list[int] = []
    while len(found) < count:
        deliveries = client.deliveries(consumer)
        if not deliveries:
            break
        for delivery in deliveries:
            text = delivery.message.body
            found.append(int(text[text.index(b"xxxx") - 4 :][:4]))
            client.acknowledge(consumer, delivery.message)
    client.bench.broker.subscriptions.unsubscribe(consumer, -1)
    return found


def test_a_backlog_beyond_the_memory_is_spooled_and_consumed_in_order(spooling: Any) -> None:
    bench = spooling()
    client = bench.client()
    fill(client, "Q")
    assert bench.broker.flow.lines == {}
    assert bench.broker.memory.used <= MEMORY_BYTES * 0.7
    assert spooled(bench) > 2 * MEMORY_BYTES
    assert take(client, "Q") == list(range(COUNT))
    assert bench.broker.memory.used == 0
    assert spooled(bench) == 0


def test_what_a_commit_brings_leaves_the_memory_where_consumers_hold_the_rest(
    spooling: Any,
) -> None:
    bench = spooling()
    client = bench.client()
    consumer = client.consume("HELD", prefetch=COUNT)
    identifier = client.begin()
    fill(client, "Q", 40, transaction_id=identifier)
    fill(client, "HELD", 10, transaction_id=identifier)
    bench.broker.transactions.commit(client.connection, identifier, None)
    bench.tick()
    assert len(consumer.dispatched) == 10
    assert bench.broker.memory.used <= MEMORY_BYTES * 0.7
    client.leave()
    client = bench.client()
    assert take(client, "Q", 40) == list(range(40))
    assert take(client, "HELD", 10) == list(range(10))
    assert bench.broker.memory.used == 0


def test_a_destination_spools_at_its_own_limit(spooling: Any) -> None:
    policy = DestinationPolicy(memory_limit=200_000, flow=FlowPolicy())
    bench = spooling(Q=policy)
    client = bench.client()
    fill(client, "Q", 20)
    region = bench.broker.registry.find(queue("Q"))
    assert region.body_cache.used <= 140_000
    assert spooled(bench) > 200_000
    assert take(client, "Q", 20) == list(range(20))


@pytest.mark.parametrize("percent", [20, 90])
def test_the_high_water_mark_says_when_bodies_leave(spooling: Any, percent: int) -> None:
    policy = DestinationPolicy(flow=FlowPolicy(cursor_memory_high_water_mark=percent))
    bench = spooling(Q=policy)
    fill(bench.client(), "Q", 100)
    share = bench.broker.memory.used * 100 / MEMORY_BYTES
    assert percent - 5 < share <= percent


def test_a_policy_may_keep_a_backlog_in_memory(spooling: Any) -> None:
    bench = spooling(Q=DestinationPolicy(flow=FlowPolicy(spool_non_persistent=False)))
    fill(bench.client(), "Q", 60)
    assert spooled(bench) == 0
    assert bench.broker.flow.blocked()[0].sends > 0


def test_full_temporary_files_stop_producers(spooling: Any) -> None:
    bench = spooling(spool_bytes_max=MEMORY_BYTES)
    client, other = bench.client(), bench.client()
    fill(client, "Q")
    (blocked,) = bench.broker.flow.blocked()
    assert blocked.limit.value == "systemUsage.tempUsage"
    assert spooled(bench) <= MEMORY_BYTES
    assert take(other, "Q") == list(range(COUNT))
    assert bench.broker.flow.lines == {}


def test_a_slow_subscriber_of_a_topic_is_waited_for_on_disk(spooling: Any) -> None:
    bench = spooling()
    client, sender = bench.client(), bench.client()
    consumer = client.consume("topic://T", prefetch=1)
    fill(sender, "topic://T")
    assert spooled(bench) > MEMORY_BYTES
    found = []
    while deliveries := client.deliveries(consumer):
        (delivery,) = deliveries
        found.append(delivery.message.key)
        client.acknowledge(consumer, delivery.message)
    assert len(set(found)) == COUNT
    assert found == sorted(found, key=lambda key: int(key.rpartition(b":")[2]))
    assert (spooled(bench), bench.broker.memory.used) == (0, 0)


def test_what_nobody_wants_any_more_gives_its_room_back(spooling: Any) -> None:
    bench = spooling()
    client, sender = bench.client(), bench.client()
    client.consume("topic://T", prefetch=1)
    fill(sender, "topic://T")
    client.leave()
    assert (spooled(bench), bench.broker.memory.used) == (0, 0)
    fill(sender, "Q")
    bench.broker.destinations.remove(queue("Q"), None)
    assert (spooled(bench), bench.broker.memory.used) == (0, 0)


def test_spooled_messages_expire(spooling: Any) -> None:
    bench = spooling()
    client = bench.client()
    fill(client, "Q", expiration=bench.now + 1000)
    assert spooled(bench)
    bench.tick(31_000)
    assert (bench.depth("Q"), spooled(bench)) == (0, 0)


def test_spooled_messages_are_browsed_selected_and_given_back(spooling: Any) -> None:
    bench = spooling()
    client, other = bench.client(), bench.client()
    for number in range(100):
        client.send(
            "Q", f"{number:04}{FILLING}", persistent=False, properties={"odd": number % 2 == 1}
        )
    assert spooled(bench)
    other.consume("Q", browser=True)
    assert len(other.deliveries()) == 100
    gone = bench.client()
    gone.consume("Q", prefetch=100)
    assert len(gone.deliveries()) == 100
    gone.leave()
    assert take(client, "Q", 50, selector="odd = TRUE") == list(range(1, 100, 2))
    assert take(client, "Q", 50) == list(range(0, 100, 2))
    assert (spooled(bench), bench.broker.memory.used) == (0, 0)


def test_transactions_consume_what_was_spooled(spooling: Any) -> None:
    bench = spooling()
    client = bench.client()
    fill(client, "Q", 100)
    consumer = client.consume("Q", prefetch=100)
    last = client.deliveries(consumer)[-1].message
    for number, outcome in enumerate(("rollback", "commit")):
        transaction = client.begin(number)
        bench.broker.transactions.acknowledge(
            client.connection, consumer, transaction, last.sequence, 100, 2
        )
        getattr(bench.broker.transactions, outcome)(client.connection, transaction, None)
        bench.tick()
    assert (spooled(bench), bench.broker.memory.used) == (0, 0)


@pytest.mark.parametrize("before", [0, 300])
def test_persistent_bodies_leave_whatever_those_before_them_wait_for(
    spooling: Any, before: int
) -> None:
    bench = spooling(spool_bytes_max=200_000)
    client = bench.client()
    fill(client, "Q", before)
    stuck = bench.broker.memory.used
    for number in range(COUNT):
        client.send("Q", f"{number:04}{FILLING}", wait=number % 20 == 19)
    bench.tick()
    assert bench.broker.registry.find(queue("Q")).depth() >= COUNT
    assert bench.broker.memory.used <= max(stuck, MEMORY_BYTES)


def test_persistent_sends_wait_while_consumers_hold_what_cannot_leave(spooling: Any) -> None:
    bench = spooling()
    client, other = bench.client(), bench.client()
    consumer = client.consume("topic://T", prefetch=100_000)
    half = "x" * (1 << 19)
    sends = 60
    for number in range(sends):
        other.send("topic://T", f"{number:04}{half}")
    (blocked,) = bench.broker.flow.blocked()
    assert blocked.limit is Limit.MEMORY_USAGE
    assert bench.broker.memory.used < MEMORY_BYTES + PASSING_BYTES_MAX + (1 << 20)
    assert acknowledge_all(client, consumer) == sends
    assert bench.broker.flow.lines == {}


@pytest.mark.parametrize("to", ["Q", "topic://T"])
def test_what_consumers_hold_keeps_no_persistent_send_waiting(spooling: Any, to: str) -> None:
    bench = spooling()
    client, other = bench.client("client"), bench.client()
    durable = {"subscription_name": "s"} if to != "Q" else {}
    consumer = client.consume(to, prefetch=100_000, **durable)
    half = "x" * (1 << 19)
    sends = 60
    for number in range(sends):
        other.send(to, f"{number:04}{half}")
    assert bench.broker.flow.lines == {}
    assert bench.broker.memory.used < MEMORY_BYTES + HELD_BYTES_MAX + (2 << 20)
    assert acknowledge_all(client, consumer) == sends
    assert bench.broker.memory.used == 0


def acknowledge_all(client: "Client", consumer: Any) -> int:
    """Acknowledge everything that comes; returns how much it was."""
    found = 0
    while deliveries := client.deliveries(consumer):
        for delivery in deliveries:
            client.acknowledge(consumer, delivery.message)
            found += 1
        client.bench.tick()
    return found


def test_consumers_that_hold_enough_get_more_from_the_disk_when_there_is_memory(
    spooling: Any,
) -> None:
    bench = spooling()
    client = bench.client()
    half = "x" * (1 << 19)
    sends = 60
    for number in range(sends):
        client.send("Q", f"{number:04}{half}")
    greedy = client.consume("Q", prefetch=100_000)
    held = client.deliveries(greedy)
    assert 1 < len(held) < sends
    assert bench.broker.memory.used < MEMORY_BYTES + HELD_BYTES_MAX + (2 << 20)
    found = 0
    while held:
        for delivery in held:
            client.acknowledge(greedy, delivery.message)
            found += 1
        held = client.deliveries(greedy)
    assert found == sends
    assert bench.broker.memory.used == 0
