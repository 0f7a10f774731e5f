"""Message groups: one consumer for each group at a time, in order, and how that ends."""

from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.policies.message_groups import MessageGroupMap, MessageGroupPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.message.destination import queue
from lockkeeper.message.rewrite import decoded

if TYPE_CHECKING:
    from conftest import Bench, Client, Delivered

    from lockkeeper.broker.subscriptions.consumer import Consumer


def send(client: "Client", text: str, group: str, sequence: int = 0, **fields: Any) -> None:
    client.send("Q", text, wait=False, group_id=group, group_sequence=sequence, **fields)


def text_of(delivered: "Delivered") -> str:
    return (decoded(delivered.message).content or b"")[4:].decode()


def by_consumer(told: "list[Delivered]") -> "dict[Consumer | None, list[str]]":
    found: dict[Consumer | None, list[str]] = {}
    for delivered in told:
        found.setdefault(delivered.consumer, []).append(text_of(delivered))
    return found


def firsts(told: "list[Delivered]") -> list[str]:
    return [text_of(d) for d in told if decoded(d.message).group_first_for_consumer]


def with_map(make_bench: "type[Bench]", kind: MessageGroupMap, **sizes: int) -> "Bench":
    return make_bench(Q=DestinationPolicy(message_groups=MessageGroupPolicy(kind, **sizes)))


@pytest.mark.parametrize("kind", MessageGroupMap)
def test_a_group_stays_with_one_consumer(make_bench: "type[Bench]", kind: MessageGroupMap) -> None:
    bench = with_map(make_bench, kind)
    client = bench.client()
    consumers = [client.consume("Q") for _ in range(3)]
    for number in range(60):
        send(client, f"g{number % 6}-{number:02}", f"g{number % 6}")
        bench.tick()
    got = by_consumer(client.deliveries())
    owners = {text[:2]: consumer for consumer, texts in got.items() for text in texts}
    assert [sum(len(texts) for texts in got.values()), len(owners)] == [60, 6]
    assert all(text[:2] in owners and owners[text[:2]] is c for c in got for text in got[c])
    assert all(texts == sorted(texts, key=lambda text: text[3:]) for texts in got.values())
    if kind is not MessageGroupMap.HASH_BUCKET:
        assert sorted(len(got[consumer]) for consumer in consumers) == [20, 20, 20]


def test_the_first_message_of_a_group_says_so_to_its_owner_alone(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q")
    for number in range(3):
        send(client, f"a{number}", "a")
        send(client, f"b{number}", "b")
    bench.tick()
    told = client.deliveries(consumer)
    assert firsts(told) == ["a0", "b0"]
    assert len(told) == 6
    # What the broker keeps, and the journal gets, is as it was sent.
    assert not any(
        decoded(ref.loaded).group_first_for_consumer for ref in consumer.dispatched.values()
    )


def test_a_new_owner_is_told_that_the_group_is_new_to_it(bench: "Bench") -> None:
    gone, client = bench.client(), bench.client()
    gone.consume("Q")
    heir = client.consume("Q", prefetch=0)
    for number in range(3):
        send(client, f"m{number}", "g")
    bench.tick()
    assert firsts(gone.deliveries()) == ["m0"]
    bench.broker.resize(heir, 10)
    gone.leave()
    told = client.deliveries(heir)
    assert [text_of(d) for d in told] == ["m0", "m1", "m2"]
    assert [d.redeliveries for d in told] == [1, 1, 1]
    assert firsts(told) == ["m0"]


def test_a_busy_owner_keeps_its_group_waiting_and_nobody_else(bench: "Bench") -> None:
    client = bench.client()
    owner = client.consume("Q", prefetch=1)
    other = client.consume("Q", prefetch=10)
    for number in range(3):
        send(client, f"a{number}", "a")
    send(client, "b", "b")
    client.send("Q", "plain")
    told = client.deliveries()
    assert by_consumer(told) == {owner: ["a0"], other: ["b", "plain"]}
    client.acknowledge(owner, told[0].message)
    assert client.texts(owner) == ["a1"]


def test_a_closed_group_is_for_anybody_again(bench: "Bench") -> None:
    client = bench.client()
    owner, other = client.consume("Q", prefetch=3), client.consume("Q", prefetch=10)
    send(client, "m0", "g")
    send(client, "m1", "g")
    send(client, "last", "g", -1)
    send(client, "anew", "g")
    bench.tick()
    told = client.deliveries()
    assert by_consumer(told) == {owner: ["m0", "m1", "last"], other: ["anew"]}
    assert firsts(told) == ["m0", "anew"]


def test_a_group_that_is_closed_at_once_belongs_to_nobody(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    send(client, "m", "g", -1)
    bench.tick()
    region = bench.broker.registry.find(queue("Q"))
    assert isinstance(region, Queue)
    assert region.groups is not None
    assert len(region.groups) == 0
    assert firsts(client.deliveries()) == ["m"]


def test_sequence_one_begins_a_group_anew(bench: "Bench") -> None:
    client = bench.client()
    one, two = client.consume("Q"), client.consume("Q")
    for sequence in (1, 2, 1, 2):
        send(client, f"m{sequence}", "g", sequence)
    bench.tick()
    told = client.deliveries()
    assert by_consumer(told) == {one: ["m1", "m2"], two: ["m1", "m2"]}
    assert firsts(told) == ["m1", "m1"]


def test_a_new_consumer_gets_new_groups_until_it_has_as_many(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    for number in range(4):
        send(client, f"m{number}", f"old{number}")
    bench.tick()
    late = client.consume("Q")
    client.outputs()
    for number in range(4):
        send(client, f"m{number}", f"new{number}")
    send(client, "old", "old0")
    bench.tick()
    assert by_consumer(client.deliveries())[late] == ["m0", "m1", "m2", "m3"]


def test_the_cache_forgets_the_group_that_was_used_longest_ago(make_bench: "type[Bench]") -> None:
    bench = with_map(make_bench, MessageGroupMap.CACHED, cache_size=2)
    client = bench.client()
    client.consume("Q")
    for group in ("a", "b", "a", "c", "a", "b"):
        send(client, group, group)
    bench.tick()
    assert firsts(client.deliveries()) == ["a", "b", "c", "b"]


def test_groups_of_one_bucket_have_one_owner(make_bench: "type[Bench]") -> None:
    bench = with_map(make_bench, MessageGroupMap.HASH_BUCKET, bucket_count=1)
    client = bench.client()
    owner = client.consume("Q")
    client.consume("Q")
    for number in range(10):
        send(client, f"m{number}", f"g{number}")
    bench.tick()
    assert by_consumer(client.deliveries()) == {owner: [f"m{number}" for number in range(10)]}


def test_groups_and_selectors_go_together(bench: "Bench") -> None:
    client = bench.client()
    red = client.consume("Q", selector="colour = 'red'")
    blue = client.consume("Q", selector="colour = 'blue'")
    for colour in ("red", "blue", "red"):
        send(client, colour, "g", properties={"colour": colour})
    bench.tick()
    assert by_consumer(client.deliveries()) == {red: ["red", "red"]}
    bench.broker.subscriptions.unsubscribe(red, -1)
    bench.tick()
    assert by_consumer(client.deliveries()) == {blue: ["blue"]}


def test_an_exclusive_consumer_takes_the_groups_of_others_too(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q", prefetch=1)
    send(client, "m0", "g")
    send(client, "m1", "g")
    bench.tick()
    client.outputs()
    exclusive = client.consume("Q", exclusive=True)
    assert by_consumer(client.deliveries()) == {exclusive: ["m1"]}


def test_a_correlation_id_is_no_group(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    client.send("Q", "m", correlation_id="c-1")
    region = bench.broker.registry.find(queue("Q"))
    assert isinstance(region, Queue)
    assert region.groups is None
    assert client.texts() == ["m"]


def test_a_queue_without_consumers_forgets_its_groups(bench: "Bench") -> None:
    lost, client = bench.client(), bench.client()
    lost.consume("Q")
    for text in ("m0", "m1"):
        send(client, text, "g")
    bench.tick()
    lost.leave()
    region = bench.broker.registry.find(queue("Q"))
    assert isinstance(region, Queue)
    assert (region.groups, region.sub_queues) == (None, None)
    assert client.texts(client.consume("Q")) == ["m0", "m1"]


def test_a_selective_exclusive_consumer_takes_the_groups_of_others_too(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q", prefetch=1)
    for text in ("m0", "m1"):
        send(client, text, "g", properties={"colour": "red"})
    bench.tick()
    client.outputs()
    exclusive = client.consume("Q", exclusive=True, selector="colour = 'red'")
    assert by_consumer(client.deliveries()) == {exclusive: ["m1"]}
