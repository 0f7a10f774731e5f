"""Ten levels of priority: the highest first, in order within each, across restarts."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.policies.policy import DestinationPolicy

if TYPE_CHECKING:
    from conftest import Bench, Client

SENT = (4, 9, 0, 4, 7, 9)
IN_ORDER = ["9-1", "9-5", "7-4", "4-0", "4-3", "0-2"]


def send(client: "Client", to: str = "Q", persistent: bool = True) -> None:
    for number, priority in enumerate(SENT):
        text = f"{priority}-{number}"
        client.send(to, text, wait=False, priority=priority, persistent=persistent)
    client.bench.tick()


@pytest.fixture
def ordering(make_bench: "type[Bench]") -> "Bench":
    """Return a broker whose destinations Q and T order by priority."""
    policy = DestinationPolicy(prioritized_messages=True)
    return make_bench(Q=policy, T=policy)


def test_higher_priorities_come_first(ordering: "Bench") -> None:
    client = ordering.client()
    send(client)
    assert client.texts(client.consume("Q")) == IN_ORDER


def test_without_the_policy_order_is_that_of_arrival(bench: "Bench") -> None:
    client = bench.client()
    send(client)
    assert client.texts(client.consume("Q")) == [f"{p}-{n}" for n, p in enumerate(SENT)]


def test_selective_consumers_and_groups_keep_the_levels(ordering: "Bench") -> None:
    client = ordering.client()
    client.consume("Q", selector="JMSPriority < 0")
    send(client)
    assert client.texts(client.consume("Q", selector="JMSPriority <> 9")) == IN_ORDER[2:]
    client.send("Q", "grouped", group_id="g", priority=8)
    client.outputs()
    assert client.texts(client.consume("Q")) == ["9-1", "9-5"]


def test_redelivered_messages_come_first_of_their_level_alone(ordering: "Bench") -> None:
    gone, client = ordering.client(), ordering.client()
    gone.consume("Q", prefetch=3)
    send(client)
    client.send("Q", "9-6", priority=9)
    client.send("Q", "4-7")
    held = gone.texts()
    gone.leave()
    assert held == ["9-1", "9-5", "7-4"]
    expected = ["9-1", "9-5", "9-6", "7-4", "4-0", "4-3", "4-7", "0-2"]
    assert client.texts(client.consume("Q")) == expected


def test_levels_are_kept_across_a_restart_and_a_transaction(ordering: "Bench") -> None:
    client = ordering.client()
    identifier = client.begin()
    for number, priority in enumerate(SENT):
        client.send("Q", f"{priority}-{number}", priority=priority, transaction_id=identifier)
    ordering.broker.transactions.commit(client.connection, identifier, None)
    ordering.tick()
    again = ordering.restart().client()
    assert again.texts(again.consume("Q")) == IN_ORDER


@pytest.mark.parametrize("persistent", [True, False])
def test_a_topic_that_orders_by_priority_does_so_for_each_consumer(
    ordering: "Bench", persistent: bool
) -> None:
    client = ordering.client()
    consumer = client.consume("T", prefetch=1)
    send(client, "T", persistent)
    got = []
    while told := client.deliveries(consumer):
        got += told
        client.acknowledge(consumer, told[-1].message)
    texts = [f"{d.message.priority}-{int(d.message.key.rpartition(b':')[2]) - 1}" for d in got]
    assert texts == IN_ORDER


def test_a_browser_sees_the_order_of_dispatch(ordering: "Bench") -> None:
    client = ordering.client()
    send(client)
    assert client.texts(client.consume("Q", browser=True)) == IN_ORDER
