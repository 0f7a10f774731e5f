"""Messages for virtual destinations follow the consumers behind them, over a bridge."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from linked_brokers import Client, Link, Node
from test_linked_brokers import Pair, demanded

from lockkeeper.broker.outputs import Delivery
from lockkeeper.broker.routing.composites import CompositeDestination, ForwardTo
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.rewrite import decoded
from lockkeeper.network.settings import BridgeSettings, Included

COMPOSITES = (
    CompositeDestination("IN", "Queue", (ForwardTo(queue="OUT"), ForwardTo(topic="NEWS"))),
    CompositeDestination("TOLD", "Topic", (ForwardTo(queue="OUT"),)),
    CompositeDestination("DAILY", "Topic", (ForwardTo(topic="NEWS"),)),
)
TELLS = BrokerSettings(composite_destinations=COMPOSITES, use_virtual_dest_subs=True)
HEARS = BridgeSettings(
    use_virtual_dest_subs=True, excluded=(Included(queue("Consumer.*.VirtualTopic.>")),)
)


def pair(
    tells: BrokerSettings = TELLS, hears: BridgeSettings = HEARS, near: BrokerSettings | None = None
) -> Pair:
    """Return two linked brokers, of which the second one has virtual destinations."""
    return Pair(hears, far=tells, near=near)


@pytest.mark.parametrize("sent_to", ["queue://IN", "topic://TOLD"])
def test_what_is_sent_to_a_composite_goes_to_consumers_behind_it(sent_to: str) -> None:
    two = pair()
    two.far.consume("queue://OUT")
    two.link.pump()
    two.near.send(sent_to, "x")
    two.link.pump()
    assert two.far.take() == ["x"]


def test_a_virtual_topic_goes_to_consumers_of_its_queues_once() -> None:
    two = pair()
    two.far.consume("queue://Consumer.A.VirtualTopic.T")
    two.link.pump()
    assert demanded(two) == ["topic://VirtualTopic.T"]
    two.near.send("topic://VirtualTopic.T", "x")
    two.link.pump()
    assert two.far.take() == ["x"]


def test_consumers_that_were_there_before_the_bridge_count() -> None:
    two = pair()
    two.far.consume("queue://OUT")
    two.again()
    two.link.pump()
    two.near.send("queue://IN", "x")
    two.link.pump()
    assert two.far.take() == ["x"]


@pytest.mark.parametrize("conduit", [True, False])
def test_demand_ends_with_the_last_consumer(conduit: bool) -> None:
    two = pair(
        hears=BridgeSettings(use_virtual_dest_subs=True, conduit_subscriptions=conduit),
    )
    consumers = [two.far.consume("queue://OUT") for _ in range(2)]
    two.link.pump()
    assert set(demanded(two)) == {"queue://OUT", "queue://IN", "topic://TOLD"}
    two.far.close(consumers[0])
    two.link.pump()
    assert set(demanded(two)) == {"queue://OUT", "queue://IN", "topic://TOLD"}
    two.far.close(consumers[1])
    two.link.pump()
    assert demanded(two) == []


def test_a_durable_subscription_behind_a_topic_lasts_and_behind_a_queue_is_a_consumer() -> None:
    """What is sent to the queue waits there until the subscriber is back."""
    two = pair()
    consumer = two.far.consume("topic://NEWS", subscription_name="s")
    two.link.pump()
    assert set(demanded(two)) == {"topic://NEWS", "topic://DAILY", "queue://IN"}
    two.far.close(consumer)
    two.link.pump()
    assert set(demanded(two)) == {"topic://NEWS", "topic://DAILY"}
    lasting = two.b.broker.subscriptions.lasting
    lasting.forget(two.far.connection.client_id, "s", None, two.far.connection.rights)
    two.link.pump()
    assert demanded(two) == []


def test_only_what_may_be_forwarded_is_asked_about() -> None:
    included = (Included(topic("TOLD")),)
    two = pair(hears=BridgeSettings(use_virtual_dest_subs=True, dynamically_included=included))
    two.far.consume("queue://OUT")
    two.link.pump()
    assert demanded(two) == ["topic://TOLD"]


@pytest.mark.parametrize(
    "off",
    [
        lambda: pair(hears=BridgeSettings()),
        lambda: pair(tells=BrokerSettings(composite_destinations=COMPOSITES)),
    ],
    ids=["of the bridge", "of the broker"],
)
def test_nothing_is_demanded_where_the_option_is_off(off: Callable[[], Pair]) -> None:
    two = off()
    two.far.consume("queue://OUT")
    two.link.pump()
    assert demanded(two) == ["queue://OUT"]


def test_a_queue_behind_counts_as_a_consumer_on_creation() -> None:
    tells = BrokerSettings(
        composite_destinations=COMPOSITES,
        use_virtual_dest_subs=True,
        use_virtual_dest_subs_on_creation=True,
    )
    two = pair(tells=tells)
    two.far.send("queue://OUT", "makes it")
    two.link.pump()
    assert set(demanded(two)) == {"queue://IN", "topic://TOLD"}
    two.again()
    two.link.pump()
    two.near.send("topic://TOLD", "x")
    two.link.pump()
    two.far.consume("queue://OUT")
    assert two.far.take() == ["makes it", "x"]
    two.b.broker.destinations.remove_with_users(queue("OUT"), None)
    two.link.pump()
    assert demanded(two) == []


def test_brokers_with_the_same_virtual_destinations_send_nothing_back() -> None:
    """A bridge's consumer behind a composite is none of the broker's own."""
    hears = BridgeSettings(use_virtual_dest_subs=True, duplex=True)
    two = pair(near=TELLS, hears=hears)
    two.far.consume("queue://OUT")
    two.link.pump()
    for source in ("queue://IN", "topic://TOLD"):
        two.near.send(source, "x")
        two.link.pump()
        assert two.far.take() == ["x"]
    assert two.depth(two.a, "queue://OUT") == 0


def test_a_consumer_behind_is_reached_on_one_way_of_a_triangle() -> None:
    a, b, c = Node("a"), Node("b"), Node("c", settings=TELLS)
    hears = BridgeSettings(use_virtual_dest_subs=True, message_ttl=3, consumer_ttl=3)
    links = [Link(a, c, hears), Link(b, c, hears), Link(a, b, hears)]
    near, far = a.client(), c.client()
    far.consume("queue://OUT")
    pump(links)
    near.send("topic://TOLD", "x")
    pump(links)
    assert far.take() == ["x"]
    links[0].cut()
    pump(links[1:])
    near.send("topic://TOLD", "y")
    pump(links[1:])
    assert far.take() == ["y"]


def pump(links: list[Link]) -> None:
    """Pass bytes on until no link has any."""
    while sum(link.step() for link in links):
        pass


def test_a_consumer_is_told_of_by_an_id_for_each_virtual_destination() -> None:
    """By its own id, ActiveMQ's bridges would take one of them for another way to the same."""
    two = pair()
    listener = two.b.client()
    listener.consume("topic://ActiveMQ.Advisory.VirtualDestination.Consumer.>")
    consumer = two.far.consume("queue://OUT")
    begun = [(each.consumer_id, str(each.destination)) for each in heard(listener)]
    two.far.close(consumer)
    ended = [each.object_id for each in heard(listener)]
    assert [destination for _, destination in begun] == ["queue://IN", "topic://TOLD"]
    assert ended == [identifier for identifier, _ in begun]
    assert len({*ended, consumer.identifier}) == 3


def heard(client: Client) -> list[Any]:
    """Return the contents of the advisories that came."""
    client.node.turn()
    outputs, client.connection.outbox = client.connection.outbox, []
    deliveries = [cast("Delivery", each) for each in outputs if type(each) is tuple]
    return [
        decoded(reference.loaded).data_structure
        for _, references in deliveries
        for reference in references
    ]
