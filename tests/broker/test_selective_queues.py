"""Selectors on queues: who gets what, and that nobody waits for another's messages."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.errors import InvalidSelectorError

if TYPE_CHECKING:
    from conftest import Bench


def test_each_consumer_gets_only_what_it_wants(bench: "Bench") -> None:
    client = bench.client()
    red = client.consume("Q", selector="colour = 'red'")
    blue = client.consume("Q", selector="colour = 'blue'")
    for number, colour in enumerate(["red", "blue", "green", "red"]):
        client.send("Q", f"{colour}{number}", properties={"colour": colour}, wait=False)
    bench.tick()
    told = client.deliveries()
    assert [d.consumer for d in told].count(red) == 2
    assert [d.consumer for d in told].count(blue) == 1
    assert bench.depth("Q") == 4


def test_a_full_consumer_does_not_hold_up_the_other(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q", prefetch=1, selector="kind = 'slow'")
    quick = client.consume("Q", selector="kind = 'quick'")
    for number in range(50):
        client.send("Q", f"s{number}", properties={"kind": "slow"}, wait=False)
    client.send("Q", "q", properties={"kind": "quick"})
    assert client.texts(quick) == ["q"]


def test_what_nobody_wanted_goes_in_order_to_one_who_does(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q", selector="wanted = TRUE")
    for number in range(3):
        client.send("Q", f"m{number}", properties={"wanted": number == 1})
    client.outputs()
    assert client.texts(client.consume("Q")) == ["m0", "m2"]


def test_order_holds_across_sub_queues_for_one_consumer(bench: "Bench") -> None:
    client = bench.client()
    everything = client.consume("Q", prefetch=100)
    client.consume("Q", prefetch=0, selector="half = 0")
    for number in range(20):
        client.send("Q", f"{number:02}", properties={"half": number % 2}, wait=False)
    bench.tick()
    texts = client.texts(everything)
    assert texts == sorted(texts)
    assert len(texts) == 20


def test_given_back_messages_come_first(bench: "Bench") -> None:
    lost, client = bench.client(), bench.client()
    lost.consume("Q", prefetch=2, selector="a = 1")
    for number in range(4):
        client.send("Q", f"m{number}", properties={"a": 1})
    lost.leave()
    assert client.texts(client.consume("Q", selector="a = 1")) == ["m0", "m1", "m2", "m3"]


def test_headers_can_be_selected(bench: "Bench") -> None:
    client = bench.client()
    chosen = client.consume("Q", selector="JMSPriority > 4 AND JMSType = 'order'")
    client.send("Q", "low", priority=3, type="order")
    client.send("Q", "high", priority=7, type="order")
    assert client.texts(chosen) == ["high"]


def test_no_local_skips_the_own_connection(bench: "Bench") -> None:
    one, two = bench.client(), bench.client()
    one.consume("topic://T", no_local=True)
    two.consume("topic://T", no_local=True)
    one.send("topic://T", "mine")
    assert one.texts() == []
    assert two.texts() == ["mine"]


def test_a_bad_selector_makes_no_consumer(bench: "Bench") -> None:
    client = bench.client()
    with pytest.raises(InvalidSelectorError):
        client.consume("Q", selector="colour = = 'red'")
    assert not client.connection.consumers
