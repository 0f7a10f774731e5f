"""Virtual topics: queues that collect what is sent to a topic."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.routing.composites import CompositeDestination, ForwardTo
from lockkeeper.broker.routing.virtual_topics import VirtualTopic
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.openwire import BrokerId
from lockkeeper.message.rewrite import decoded
from lockkeeper.store.base import StoreFullError
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.memory import MemoryStore

if TYPE_CHECKING:
    from conftest import Bench, Delivered

NEWS = "topic://VirtualTopic.NEWS"
OF_A, OF_B = "Consumer.A.VirtualTopic.NEWS", "Consumer.B.VirtualTopic.NEWS"


def texts(deliveries: "list[Delivered]") -> list[str]:
    return [(decoded(one.message).content or b"")[4:].decode() for one in deliveries]


def test_every_queue_collects_for_its_own_consumers(bench: "Bench") -> None:
    client, subscriber = bench.client(), bench.client()
    subscriber.consume(NEWS)
    client.send(NEWS, "before there is a queue")
    first, second = client.consume(OF_A, prefetch=1), client.consume(OF_A, prefetch=1)
    other = bench.client()
    other.consume(OF_B)
    for number in range(2):
        client.send(NEWS, f"m{number}")
    shared = client.deliveries()
    assert {delivery.consumer for delivery in shared} == {first, second}
    assert texts(shared) == ["m0", "m1"]
    assert other.texts() == ["m0", "m1"]
    assert subscriber.texts() == ["before there is a queue", "m0", "m1"]


def test_a_copy_is_of_its_queue_and_says_where_it_was_sent(bench: "Bench") -> None:
    client = bench.client()
    client.consume(OF_A)
    client.send(NEWS, "hello", properties={"color": "red"}, correlation_id="c")
    (delivery,) = client.deliveries()
    assert delivery.message.destination == queue(OF_A)
    fields = decoded(delivery.message)
    assert fields.destination == queue(OF_A)
    assert fields.original_destination == topic("VirtualTopic.NEWS")
    assert fields.correlation_id == "c"
    assert fields.message_id is not None
    assert (fields.timestamp, fields.message_id.producer_sequence) == (bench.now, 1)


def test_a_copy_may_keep_the_name_of_the_topic(make_bench: "type[Bench]") -> None:
    kept = VirtualTopic("KEPT.>", "Kept.*.", set_original_destination=False)
    bench = make_bench(settings=BrokerSettings(virtual_topics=(kept,)))
    client = bench.client()
    consumer = client.consume("Kept.A.KEPT.X")
    client.send("topic://KEPT.X", "hello")
    (delivery,) = client.deliveries(consumer)
    fields = decoded(delivery.message)
    assert (fields.destination, fields.original_destination) == (topic("KEPT.X"), None)
    client.acknowledge(consumer, delivery.message)
    assert bench.depth("Kept.A.KEPT.X") == 0
    client.send("topic://KEPT.X", "again")
    client.leave()
    assert bench.depth("Kept.A.KEPT.X") == 1


def test_a_name_with_prefix_and_postfix_collects(make_bench: "type[Bench]") -> None:
    rule = VirtualTopic("POST.>", "Left.", ".right")
    bench = make_bench(settings=BrokerSettings(virtual_topics=(rule,)))
    client = bench.client()
    right, wrong = client.consume("Left.POST.X.right"), client.consume("Left.POST.X.wrong")
    client.send("topic://POST.X", "a")
    assert [delivery.consumer for delivery in client.deliveries()] == [right]
    assert not wrong.dispatched


def test_a_queue_called_like_a_wildcard_collects_from_all_it_stands_for(bench: "Bench") -> None:
    every = "Consumer.A.VirtualTopic.>"
    client, sender = bench.client(), bench.client()
    client.consume(every)
    for name in ("X", "Y.Z"):
        sender.send(f"topic://VirtualTopic.{name}", name)
    found = client.deliveries()
    assert texts(found) == ["X", "Y.Z"]
    assert {delivery.message.destination for delivery in found} == {queue(every)}
    client.leave()
    sender.send("topic://VirtualTopic.X", "while away")
    back = bench.client()
    back.consume(every)
    assert back.texts() == ["X", "Y.Z", "while away"]


def test_other_wildcards_of_queues_remain_wildcards(bench: "Bench") -> None:
    client = bench.client()
    client.consume("ORDERS.>")
    client.send("ORDERS.EU", "a")
    assert client.texts() == ["a"]
    assert bench.broker.registry.find(queue("ORDERS.>")) is None


def test_a_selector_aware_queue_collects_what_its_present_consumers_want(
    make_bench: "type[Bench]",
) -> None:
    rule = VirtualTopic("AWARE.>", "Aware.*.", selector_aware=True)
    bench = make_bench(settings=BrokerSettings(virtual_topics=(rule,)))
    client, sender = bench.client(), bench.client()
    odd = client.consume("Aware.A.AWARE.X", selector="odd = TRUE")
    bench.broker.route(queue("Aware.B.AWARE.X"))
    for number in range(4):
        sender.send("topic://AWARE.X", f"m{number}", properties={"odd": number % 2 == 1})
    assert client.texts(odd) == ["m1", "m3"]
    client.leave()
    sender.send("topic://AWARE.X", "m5", properties={"odd": True})
    assert (bench.depth("Aware.A.AWARE.X"), bench.depth("Aware.B.AWARE.X")) == (2, 0)


def test_a_local_topic_does_not_collect_what_another_broker_sent(
    make_bench: "type[Bench]",
) -> None:
    settings = BrokerSettings(virtual_topics=(VirtualTopic("VirtualTopic.>", local=True),))
    client = make_bench(settings=settings).client()
    client.consume(OF_A)
    client.send(NEWS, "foreign", broker_path=(BrokerId("elsewhere"),))
    client.send(NEWS, "own")
    assert client.texts() == ["own"]


def test_persistent_copies_survive_the_broker(bench: "Bench") -> None:
    client = bench.client()
    client.consume(OF_A)
    client.consume(OF_B)
    client.leave()
    bench.client().send(NEWS, "a")
    after = bench.restart().client()
    consumer = after.consume(OF_A)
    (delivery,) = after.deliveries(consumer)
    assert delivery.message.destination == queue(OF_A)
    after.acknowledge(consumer, delivery.message)
    assert after.texts(after.consume(OF_B)) == ["a"]


def test_copies_are_sent_when_their_transaction_commits(bench: "Bench") -> None:
    client, sender = bench.client(), bench.client()
    client.consume(OF_A)
    client.consume(OF_B)
    transaction = sender.begin()
    sender.send(NEWS, "a", transaction_id=transaction)
    assert client.texts() == []
    bench.broker.transactions.commit(sender.connection, transaction, None)
    bench.tick()
    assert client.texts() == ["a", "a"]


@pytest.mark.parametrize(("drops", "waits"), [(True, False), (False, True)])
def test_a_full_queue_makes_the_producer_wait_or_misses_messages(
    make_bench: "type[Bench]", drops: bool, waits: bool
) -> None:
    rule = VirtualTopic("VirtualTopic.>", drop_on_resource_limit=drops)
    bench = make_bench(
        settings=BrokerSettings(
            virtual_topics=(rule,), system_usage=SystemUsage(MemoryUsage(1 << 20))
        ),
        Consumer_A_VirtualTopic_NEWS=DestinationPolicy(memory_limit=1),
    )
    client, sender, subscriber = bench.client(), bench.client(), bench.client()
    held = client.consume(OF_A)
    subscriber.consume(NEWS)
    sender.send(NEWS, "first", persistent=False)
    sender.send(NEWS, "second", persistent=False)
    assert subscriber.texts() == (["first"] if waits else ["first", "second"])
    assert bench.broker.forwarding.dropped == (0 if waits else 1)
    (delivery,) = client.deliveries()
    client.acknowledge(held, delivery.message)
    bench.tick()
    assert client.texts() == (["second"] if waits else [])


class FullStore(MemoryStore):
    """A store that can be full."""

    full = False

    def check_full(self) -> None:
        """Raise while it is said to be full."""
        if self.full:
            raise StoreFullError("no room")


@pytest.mark.parametrize("drops", [True, False])
def test_a_full_store_is_waited_for_unless_the_copies_may_be_dropped(
    make_bench: "type[Bench]", drops: bool
) -> None:
    store = FullStore()
    rule = VirtualTopic("VirtualTopic.>", drop_on_resource_limit=drops)
    bench = make_bench(store, settings=BrokerSettings(virtual_topics=(rule,)))
    client = bench.client()
    client.consume(OF_A)
    client.consume(NEWS)
    store.full = True
    client.send(NEWS, "a")
    assert client.texts() == (["a"] if drops else [])
    store.full = False
    bench.tick()
    assert client.texts() == ([] if drops else ["a", "a"])


def test_a_composite_may_forward_to_a_virtual_topic(make_bench: "type[Bench]") -> None:
    composite = CompositeDestination("ALL", "Topic", (ForwardTo(topic="VirtualTopic.NEWS"),))
    client = make_bench(settings=BrokerSettings(composite_destinations=(composite,))).client()
    client.consume(OF_A)
    client.send("topic://ALL", "a")
    (delivery,) = client.deliveries()
    assert decoded(delivery.message).original_destination == topic("VirtualTopic.NEWS")


def test_a_queue_gets_its_copies_after_a_restart_before_its_consumers_are_back(
    tmp_path: Path, make_bench: "type[Bench]"
) -> None:
    bench = make_bench(KahaDBStore(tmp_path))
    consumer = bench.client()
    consumer.consume(OF_A)
    consumer.leave()
    bench.tick()
    bench.store.close()
    again = make_bench(KahaDBStore(tmp_path))
    again.client().send(NEWS, "news")
    assert again.depth(OF_A) == 1
    again.store.close()
