"""What waits ends when its time is over, even if no consumer ever comes."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.policies.dead_letters import DeadLetterPolicy
from lockkeeper.broker.policies.expiry import ExpiryPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.rewrite import decoded, properties_of
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench

DEAD = "ActiveMQ.DLQ"
PERIOD = 30_000


def test_a_message_ends_within_a_period_after_its_time(bench: "Bench") -> None:
    client = bench.client()
    client.send("Q", "short", expiration=bench.now + 1_000)
    client.send("Q", "long", expiration=bench.now + 10 * PERIOD)
    client.send("Q", "for ever")
    bench.tick(1_000)
    assert bench.depth("Q") == 3
    bench.tick(PERIOD)
    assert (bench.depth("Q"), bench.depth(DEAD)) == (2, 1)
    client.consume(DEAD)
    (delivery,) = client.deliveries()
    properties = properties_of(decoded(delivery.message))
    assert properties["dlqDeliveryFailureCause"] == "The message has expired"
    assert properties["originalExpiration"] == bench.now - PERIOD
    bench.tick(10 * PERIOD)
    assert bench.depth("Q") == 1


def test_nobody_looks_while_nothing_can_be_over(bench: "Bench") -> None:
    client = bench.client()
    client.send("Q", "for ever")
    assert bench.broker.next_deadline() is None
    client.send("Q", "long", expiration=bench.now + 100 * PERIOD)
    due = bench.broker.next_deadline()
    assert due is not None
    assert bench.now + 100 * PERIOD < due <= bench.now + 101 * PERIOD


def test_the_period_is_a_policy(make_bench: "type[Bench]") -> None:
    bench = make_bench(
        SOON=DestinationPolicy(expiry=ExpiryPolicy(expire_messages_period=100)),
        NEVER=DestinationPolicy(expiry=ExpiryPolicy(expire_messages_period=0)),
    )
    client = bench.client()
    for name in ("SOON", "NEVER"):
        client.send(name, "x", expiration=bench.now + 10)
    bench.tick(110)
    assert (bench.depth("SOON"), bench.depth("NEVER")) == (0, 1)
    bench.tick(10 * PERIOD)
    client.consume("NEVER")
    assert client.deliveries() == []
    assert bench.depth("NEVER") == 0


def test_many_end_a_page_at_a_time(make_bench: "type[Bench]") -> None:
    policy = ExpiryPolicy(expire_messages_period=100, max_expire_page_size=10)
    bench = make_bench(Q=DestinationPolicy(expiry=policy))
    client = bench.client()
    for number in range(25):
        client.send("Q", str(number), expiration=bench.now + 10)
    bench.now += 110
    depths = []
    for _ in range(3):
        bench.broker.tick(bench.now)
        depths.append(bench.depth("Q"))
    assert depths == [15, 5, 0]


@pytest.mark.parametrize("selector", ["colour = 'red'", "colour = 'blue'"])
def test_messages_that_are_sorted_for_selective_consumers_end_too(
    bench: "Bench", selector: str
) -> None:
    client = bench.client()
    consumer = client.consume("Q", prefetch=1, selector=selector)
    for number in range(4):
        client.send(
            "Q", str(number), properties={"colour": "red"}, expiration=bench.now + 10 + number % 2
        )
    client.send("Q", "stays", properties={"colour": "red"})
    held = len(client.deliveries())
    bench.tick(PERIOD + 20)
    assert bench.depth(DEAD) == 4 - held
    assert bench.depth("Q") == 1 + held
    bench.broker.resize(consumer, 10)
    bench.tick()
    assert client.texts() == ["stays"][:held]


def test_bodies_that_are_only_on_disk_end_too(make_bench: "type[Bench]", tmp_path: Path) -> None:
    store = KahaDBStore(tmp_path)
    bench = make_bench(store, memory_limit=20_000)
    client = bench.client()
    for _ in range(50):
        client.send("Q", "x" * 1_000, expiration=bench.now + 10)
    assert bench.broker.memory.used < 20_000
    bench.tick(PERIOD + 10)
    assert bench.depth("Q") == 0
    assert bench.depth(DEAD) == 50
    store.close()


def test_after_a_restart_a_page_a_period_is_looked_at(
    make_bench: "type[Bench]", tmp_path: Path
) -> None:
    store = KahaDBStore(tmp_path)
    bench = make_bench(store)
    client = bench.client()
    for number in range(25):
        client.send("Q", str(number), expiration=bench.now + 10 if number % 2 else 0)
    store.close()
    policy = ExpiryPolicy(expire_messages_period=100, max_expire_page_size=10)
    store = KahaDBStore(tmp_path)
    later = make_bench(store, Q=DestinationPolicy(expiry=policy))
    depths = []
    for _ in range(4):
        later.tick(200)
        depths.append(later.depth("Q"))
    assert depths == [20, 15, 13, 13]
    assert later.depth(DEAD) == 12
    store.close()


def test_what_waits_for_a_durable_subscriber_ends_too(bench: "Bench") -> None:
    client = bench.client("app")
    client.consume("topic://T", subscription_name="sub")
    client.leave()
    sender = bench.client()
    sender.send("topic://T", "short", expiration=bench.now + 10)
    sender.send("topic://T", "long", expiration=bench.now + 10 * PERIOD)
    bench.tick(PERIOD + 10)
    assert (bench.depth("topic://T"), bench.depth(DEAD)) == (1, 1)
    back = bench.client("app")
    back.consume("topic://T", subscription_name="sub")
    assert back.texts() == ["long"]


def test_a_restart_does_not_keep_expired_messages_of_a_durable_subscriber(
    make_bench: "type[Bench]", tmp_path: Path
) -> None:
    store = KahaDBStore(tmp_path)
    bench = make_bench(store)
    client = bench.client("app")
    client.consume("topic://T", subscription_name="sub", selector="colour = 'red'")
    client.leave()
    sender = bench.client()
    for number in range(6):
        sender.send(
            "topic://T",
            str(number),
            properties={"colour": "red"},
            expiration=bench.now + 10 if number % 2 else 0,
        )
    store.close()
    store = KahaDBStore(tmp_path)
    later = make_bench(store)
    later.tick(PERIOD + 10)
    back = later.client("app")
    back.consume("topic://T", subscription_name="sub", selector="colour = 'red'")
    assert back.texts() == ["0", "2", "4"]
    store.close()


def test_a_destination_that_is_gone_is_not_looked_at(bench: "Bench") -> None:
    owner = bench.client()
    name = "temp-queue://ID:1:1"
    bench.broker.destinations.create_temporary(owner.connection, parse_destination(name))
    owner.send(name, "x", expiration=bench.now + 10)
    owner.leave()
    assert bench.broker.next_deadline() is None


def test_what_need_not_be_kept_is_gone(make_bench: "type[Bench]") -> None:
    dead_letters = DeadLetterPolicy(process_expired=False)
    bench = make_bench(Q=DestinationPolicy(dead_letters=dead_letters))
    client = bench.client()
    client.send("Q", "x", expiration=bench.now + 10)
    client.send("R", "not persistent", persistent=False, expiration=bench.now + 10)
    bench.tick(PERIOD + 10)
    assert (bench.depth("Q"), bench.depth("R"), bench.depth(DEAD)) == (0, 0, 0)
    assert bench.broker.memory.used == 0
