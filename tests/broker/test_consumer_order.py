"""Which consumer of a queue is next: priorities, exclusive consumers, strict order, the start."""

from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.policies.dispatch import DispatchPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.message.destination import queue
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Bench, Client


def numbered(count: int, first: int = 0) -> list[str]:
    return [f"m{number}" for number in range(first, first + count)]


def send(client: "Client", texts: list[str]) -> None:
    for text in texts:
        client.send("Q", text, wait=False)
    client.bench.tick()


def with_dispatch(make_bench: "type[Bench]", **settings: Any) -> "Bench":
    return make_bench(Q=DestinationPolicy(dispatch=DispatchPolicy(**settings)))


def region_of(bench: "Bench") -> Queue:
    region = bench.broker.registry.find(queue("Q"))
    assert isinstance(region, Queue)
    return region


def test_a_higher_priority_gets_all_it_has_room_for_and_others_the_rest(bench: "Bench") -> None:
    client = bench.client()
    low = client.consume("Q", priority=-1)
    high = client.consume("Q", prefetch=3, priority=5)
    middle = client.consume("Q", prefetch=2)
    send(client, numbered(8))
    told = client.deliveries()
    got = {
        consumer: [d.message.key[-1:] for d in told if d.consumer is consumer]
        for consumer in (high, middle, low)
    }
    assert [len(each) for each in got.values()] == [3, 2, 3]
    client.acknowledge(high, told[0].message)
    send(client, ["again"])
    assert client.texts(high) == ["again"]


def test_equal_priorities_take_turns(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    both = [client.consume("Q", priority=3) for _ in range(2)]
    send(client, numbered(10))
    told = client.deliveries()
    assert [sum(d.consumer is each for d in told) for each in both] == [5, 5]


def test_priorities_can_be_switched_off(make_bench: "type[Bench]") -> None:
    bench = with_dispatch(make_bench, use_consumer_priority=False)
    client = bench.client()
    consumers = [client.consume("Q"), client.consume("Q", priority=9)]
    send(client, numbered(10))
    told = client.deliveries()
    assert [sum(d.consumer is each for d in told) for each in consumers] == [5, 5]


def test_priorities_count_among_selective_consumers_too(bench: "Bench") -> None:
    client = bench.client()
    low = client.consume("Q", selector="colour = 'red'")
    high = client.consume("Q", prefetch=2, selector="colour IS NOT NULL", priority=1)
    for text in numbered(4):
        client.send("Q", text, properties={"colour": "red"}, wait=False)
    bench.tick()
    told = client.deliveries()
    assert [d.consumer for d in told if d.consumer is high] == [high] * 2
    assert [d.consumer for d in told if d.consumer is low] == [low] * 2


def test_selective_consumers_of_equal_priority_take_turns(bench: "Bench") -> None:
    client = bench.client()
    consumers = [client.consume("Q", selector="colour = 'red'") for _ in range(3)]
    for text in numbered(9):
        client.send("Q", text, properties={"colour": "red"}, wait=False)
    bench.tick()
    told = client.deliveries()
    assert [sum(d.consumer is each for d in told) for each in consumers] == [3, 3, 3]


def test_an_exclusive_consumer_has_the_queue_for_itself(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    exclusive = client.consume("Q", prefetch=3, exclusive=True)
    waiting = client.consume("Q", exclusive=True)
    send(client, numbered(5))
    assert [d.consumer for d in client.deliveries()] == [exclusive] * 3
    assert bench.depth("Q") == 5
    bench.broker.subscriptions.unsubscribe(exclusive, -1)
    bench.tick()
    assert client.texts(waiting) == numbered(5)


def test_without_exclusive_consumers_everybody_gets_something_again(bench: "Bench") -> None:
    client = bench.client()
    exclusive = client.consume("Q", exclusive=True)
    others = [client.consume("Q") for _ in range(2)]
    bench.broker.subscriptions.unsubscribe(exclusive, -1)
    send(client, numbered(4))
    told = client.deliveries()
    assert [sum(d.consumer is each for d in told) for each in others] == [2, 2]


@pytest.mark.parametrize(
    ("priority", "takes_over"), [(-1, False), (0, False), (1, True), (127, True)]
)
def test_a_new_exclusive_consumer_takes_over_by_its_priority(
    bench: "Bench", priority: int, takes_over: bool
) -> None:
    client = bench.client()
    first = client.consume("Q", exclusive=True)
    second = client.consume("Q", exclusive=True, priority=priority)
    send(client, ["m"])
    assert client.deliveries()[0].consumer is (second if takes_over else first)


def test_the_highest_priority_of_all_takes_over_from_its_equal(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q", exclusive=True, priority=127)
    second = client.consume("Q", exclusive=True, priority=127)
    send(client, ["m"])
    assert client.texts(second) == ["m"]


def test_when_the_exclusive_one_leaves_the_highest_priority_is_next(bench: "Bench") -> None:
    client = bench.client()
    first = client.consume("Q", exclusive=True, priority=5)
    client.consume("Q", exclusive=True, priority=1)
    heir = client.consume("Q", exclusive=True, priority=3)
    bench.broker.subscriptions.unsubscribe(first, -1)
    send(client, ["m"])
    assert client.texts(heir) == ["m"]


def test_an_exclusive_consumer_keeps_its_selector(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    exclusive = client.consume("Q", exclusive=True, selector="wanted = TRUE")
    client.send("Q", "unwanted", properties={"wanted": False})
    client.send("Q", "wanted", properties={"wanted": True})
    told = client.deliveries()
    assert [d.consumer for d in told] == [exclusive]
    assert bench.depth("Q") == 2


def test_all_consumers_may_be_exclusive_by_default(make_bench: "type[Bench]") -> None:
    bench = with_dispatch(make_bench, all_consumers_exclusive_by_default=True)
    client = bench.client()
    first, second = client.consume("Q"), client.consume("Q")
    send(client, numbered(3))
    assert client.texts(first) == numbered(3)
    bench.broker.subscriptions.unsubscribe(first, -1)
    bench.tick()
    assert client.texts(second) == numbered(3)


def test_strict_order_fills_one_consumer_after_the_other(make_bench: "type[Bench]") -> None:
    bench = with_dispatch(make_bench, strict_order_dispatch=True)
    client = bench.client()
    first, second = client.consume("Q", prefetch=20), client.consume("Q", prefetch=20)
    send(client, numbered(25))
    told = client.deliveries()
    assert [d.consumer for d in told if d.consumer is first] == [first] * 20
    client.acknowledge(first, next(d.message for d in told if d.consumer is first))
    send(client, ["next"])
    assert client.texts(first) == ["next"]
    assert len(second.dispatched) == 5


def test_strict_order_holds_among_selective_consumers(make_bench: "type[Bench]") -> None:
    bench = with_dispatch(make_bench, strict_order_dispatch=True)
    client = bench.client()
    consumers = [client.consume("Q", prefetch=3, selector="a = 1") for _ in range(2)]
    for text in numbered(4):
        client.send("Q", text, properties={"a": 1}, wait=False)
    bench.tick()
    told = client.deliveries()
    assert [sum(d.consumer is each for d in told) for each in consumers] == [3, 1]


def test_dispatch_starts_when_enough_consumers_are_there(make_bench: "type[Bench]") -> None:
    bench = with_dispatch(make_bench, consumers_before_dispatch_starts=2)
    client = bench.client()
    client.consume("Q")
    send(client, numbered(4))
    assert client.texts() == []
    client.consume("Q")
    assert len({d.consumer for d in client.deliveries()}) == 2


@pytest.mark.parametrize(("settings", "waits"), [({}, 1000), ({"time": 300}, 300)])
def test_dispatch_does_not_wait_for_ever_for_others(
    make_bench: "type[Bench]", settings: dict[str, int], waits: int
) -> None:
    bench = with_dispatch(
        make_bench,
        consumers_before_dispatch_starts=3,
        time_before_dispatch_starts=settings.get("time", 0),
    )
    client = bench.client()
    client.consume("Q")
    send(client, ["m"])
    bench.tick(later=waits - 1)
    assert client.texts() == []
    bench.tick(later=1)
    assert client.texts() == ["m"]


def test_one_consumer_that_is_enough_does_not_wait(make_bench: "type[Bench]") -> None:
    bench = with_dispatch(
        make_bench, consumers_before_dispatch_starts=1, time_before_dispatch_starts=500
    )
    client = bench.client()
    client.consume("Q")
    send(client, ["m"])
    assert client.texts() == ["m"]


def test_dispatch_may_wait_for_a_time_alone(make_bench: "type[Bench]") -> None:
    bench = with_dispatch(make_bench, time_before_dispatch_starts=500)
    client = bench.client()
    client.consume("Q")
    client.consume("Q")
    send(client, ["m"])
    assert client.texts() == []
    bench.tick(later=500)
    assert client.texts() == ["m"]


def test_the_wait_begins_again_with_the_next_first_consumer(make_bench: "type[Bench]") -> None:
    bench = with_dispatch(make_bench, time_before_dispatch_starts=500)
    gone, client = bench.client(), bench.client()
    gone.consume("Q")
    bench.tick(later=400)
    gone.leave()
    client.consume("Q")
    send(client, ["m"])
    bench.tick(later=499)
    assert client.texts() == []
    bench.tick(later=1)
    assert client.texts() == ["m"]


def test_a_paused_queue_takes_messages_and_keeps_them(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    region_of(bench).gate.pause()
    send(client, numbered(2))
    assert client.texts() == []
    region_of(bench).gate.resume()
    bench.tick()
    assert client.texts() == numbered(2)


@pytest.mark.parametrize(("lazy", "ahead"), [(True, 0), (False, 47)])
@pytest.mark.parametrize("selector", [None, "JMSPriority = 4"])
def test_lazy_dispatch_reads_back_what_there_is_room_for(
    make_bench: "type[Bench]", tmp_path: "Path", lazy: bool, ahead: int, selector: str | None
) -> None:
    before = make_bench(KahaDBStore(tmp_path))
    send(before.client(), numbered(50))
    before.store.close()
    policy = DestinationPolicy(dispatch=DispatchPolicy(lazy_dispatch=lazy))
    bench = make_bench(KahaDBStore(tmp_path), Q=policy)
    client = bench.client()
    consumer = client.consume("Q", prefetch=3, selector=selector)
    assert client.texts(consumer) == numbered(3)
    assert sum(each.message is not None for each in region_of(bench).waiting()) == ahead
    bench.store.close()
