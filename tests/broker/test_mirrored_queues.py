"""Mirrored queues: what is sent to a queue is published to a topic, too."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.routing.mirrors import MirroredQueues
from lockkeeper.broker.routing.virtual_topics import VirtualTopic
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message.destination import Destination, Kind, queue, topic
from lockkeeper.message.rewrite import decoded

if TYPE_CHECKING:
    from conftest import Bench

MIRRORED = BrokerSettings(mirrored_queues=MirroredQueues("Mirror.", ".seen"))


def test_a_mirror_shows_what_is_sent_to_its_queue(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=MIRRORED)
    client = bench.client()
    watching = client.consume("topic://Mirror.Q.seen")
    client.send("Q", "a")
    (shown,) = client.deliveries(watching)
    assert decoded(shown.message).destination == topic("Mirror.Q.seen")
    (own,) = client.deliveries(client.consume("Q"))
    assert decoded(own.message).destination == queue("Q")
    assert bench.restart().depth("Q") == 1


def test_what_is_shown_may_be_the_queues_message(make_bench: "type[Bench]") -> None:
    settings = BrokerSettings(mirrored_queues=MirroredQueues("Mirror.", copy_message=False))
    client = make_bench(settings=settings).client()
    watching = client.consume("topic://Mirror.Q")
    client.send("Q", "a")
    (shown,) = client.deliveries(watching)
    assert decoded(shown.message).destination == queue("Q")


def test_a_mirror_may_be_a_virtual_topic(make_bench: "type[Bench]") -> None:
    audit = VirtualTopic("Mirror.>", "Audit.*.")
    settings = BrokerSettings(mirrored_queues=MirroredQueues("Mirror."), virtual_topics=(audit,))
    bench = make_bench(settings=settings)
    client = bench.client()
    auditor = client.consume("Audit.A.Mirror.Q")
    client.send("Q", "a")
    assert client.texts(auditor) == ["a"]
    assert bench.depth("Q") == 1


@pytest.mark.parametrize("wanted", [True, False])
def test_temporary_queues_have_mirrors_if_wanted(make_bench: "type[Bench]", wanted: bool) -> None:
    mirrors = MirroredQueues("Mirror.", use_temp_mirrored_queues=wanted)
    bench = make_bench(settings=BrokerSettings(mirrored_queues=mirrors))
    client = bench.client()
    temporary = Destination(Kind.TEMP_QUEUE, "ID:client-1:1")
    bench.broker.destinations.create_temporary(client.connection, temporary)
    watching = client.consume(f"topic://Mirror.{temporary.name}")
    client.send(str(temporary), "a")
    assert client.texts(watching) == (["a"] if wanted else [])


def test_a_mirror_goes_with_its_queue(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=MIRRORED)
    client = bench.client()
    for name in ("Q", "R"):
        client.send(name, "a")
    client.consume("topic://Mirror.R.seen")
    for name in ("Q", "R"):
        bench.broker.destinations.remove(queue(name), None)
    assert bench.broker.registry.find(topic("Mirror.Q.seen")) is None
    assert bench.broker.registry.find(topic("Mirror.R.seen")) is not None
