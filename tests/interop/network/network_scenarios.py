"""What holds across one bridge with its default settings, whoever is at either end.

A scenario sends at one broker and consumes at the other; a `Way` says which, and gives names.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from network_brokers import Network, bodies, shared, until

import lockkeeper.client as client
from lockkeeper.message.openwire import BrokerInfo
from lockkeeper.message.primitives import Value

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Way:
    """From *source* to *target*, brokers of a network."""

    network: Network
    source: str
    target: str

    def name(self) -> str:
        """Return a name that no other scenario has."""
        return f"net.{next(_NUMBERS)}"

    def sender(self, destination: str, **options: Any) -> client.Producer:
        """Return a producer at the source."""
        return self.network.session(self.source).producer(destination, **options)

    def taker(self, destination: str, demand: str | None = None, **options: Any) -> client.Consumer:
        """Return a consumer at the target that the source knows of."""
        taker = self.network.session(self.target).consumer(destination, **options)
        self.network.await_demand(self.source, demand or destination)
        return taker


def queue_keeps_headers(way: Way) -> None:
    """Every header and property that the application has set arrives."""
    name = f"queue://{way.name()}"
    taker = way.taker(name)
    said: dict[str, Value] = {"text": "ä€", "long": 1 << 40, "flag": True, "double": 0.5}
    way.sender(name).send(
        "body",
        said,
        priority=7,
        time_to_live=3600,
        correlation_id="c-1",
        reply_to="topic://answers",
        type="kind",
        group_id="g",
        group_sequence=3,
    )
    message = taker.receive(20)
    assert message is not None
    assert message.body == "body"
    assert dict(message.properties) == said
    fields = message.fields
    assert (fields.priority, fields.correlation_id, fields.type) == (7, "c-1", "kind")
    assert (str(fields.reply_to), fields.group_id, fields.group_sequence) == (
        "topic://answers", "g", 3,
    )  # fmt: skip
    assert fields.persistent
    assert 3_500_000 < fields.expiration - fields.timestamp <= 3_600_000
    assert [each.value for each in fields.broker_path or ()] != []


def id_stays(way: Way) -> None:
    """A forwarded message is the same one: JMSMessageID and JMSDestination stay."""
    name = f"queue://{way.name()}"
    taker = way.taker(name)
    identifier = way.sender(name).send("x")
    message = taker.receive(20)
    assert message is not None
    assert message.message_id == identifier
    assert str(message.destination) == name
    assert not message.redelivered


def topic_to_all(way: Way) -> None:
    """Every consumer of a topic gets each message once, by one forwarding."""
    name = f"topic://{way.name()}"
    takers = [way.taker(name) for _ in range(3)]
    way.sender(name).send_many([f"m{number}" for number in range(20)])
    for taker in takers:
        assert bodies(taker, 20, 0.3) == [f"m{number}" for number in range(20)]


def both_ends_of_a_topic(way: Way) -> None:
    """Consumers at both brokers get each message once; nothing comes back."""
    name = f"topic://{way.name()}"
    near = way.network.session(way.source).consumer(name)
    far = way.taker(name)
    way.sender(name).send_many(["a", "b", "c"])
    assert bodies(far, 3, 0.5) == ["a", "b", "c"]
    assert bodies(near, 3, 0.5) == ["a", "b", "c"]


def every_kind_of_body(way: Way) -> None:
    """Texts, bytes, maps, streams and empty messages arrive as they were sent."""
    name = f"queue://{way.name()}"
    taker = way.taker(name)
    sent: list[Any] = ["", "text ☃", b"\x00\xff" * 10, {"a": 1, "b": "x"}, [1, "two", 3.0], None]
    sender = way.sender(name)
    for body in sent:
        sender.send(body)
    assert bodies(taker, len(sent), 0.3) == sent


def in_order(way: Way) -> None:
    """Messages of one producer arrive in their order."""
    name = f"queue://{way.name()}"
    taker = way.taker(name)
    sent = [str(number) for number in range(1500)]
    way.sender(name).send_many(sent)
    assert bodies(taker, len(sent), 0.3) == sent


def not_persistent(way: Way) -> None:
    """Messages that are not persistent arrive, and stay so."""
    name = f"queue://{way.name()}"
    taker = way.taker(name)
    sender = way.sender(name, persistent=False)
    for number in range(50):
        sender.send(str(number))
    first = taker.receive(20)
    assert first is not None
    assert not first.fields.persistent
    assert bodies(taker, 49, 0.3) == [str(number) for number in range(1, 50)]


def large(way: Way) -> None:
    """Messages of several MiB arrive."""
    name = f"queue://{way.name()}"
    taker = way.taker(name)
    sent = [bytes([number]) * (2 << 20) for number in range(5)]
    way.sender(name).send_many(sent)
    assert bodies(taker, 5, 0.3) == sent


def waits_for_demand(way: Way) -> None:
    """What was sent before there was a consumer goes once there is one."""
    name = f"queue://{way.name()}"
    way.sender(name).send_many(["early", "bird"])
    assert bodies(way.taker(name), 2, 0.5) == ["early", "bird"]


def stays_without_demand(way: Way) -> None:
    """When the consumer has left, messages stay where they are sent, for consumers there."""
    name = f"queue://{way.name()}"
    session = way.network.session(way.target)
    taker = session.consumer(name)
    way.network.await_demand(way.source, name)
    sender = way.sender(name)
    sender.send("there")
    assert bodies(taker, 1, 0.3) == ["there"]
    taker.close()
    way.network.await_no_demand(way.source, name)
    sender.send_many(["here", "too"])
    assert bodies(way.network.session(way.source).consumer(name), 2, 0.3) == ["here", "too"]


def shared_by_both(way: Way) -> None:
    """Consumers at both brokers share a queue: each message goes to one of them."""
    name = f"queue://{way.name()}"
    near = way.network.session(way.source).consumer(name, prefetch=1)
    far = way.taker(name, prefetch=1)
    sent = [str(number) for number in range(60)]
    way.sender(name).send_many(sent)
    here, there = shared([near, far], len(sent))
    assert sorted(here + there, key=int) == sent


def conduit_ignores_selectors(way: Way) -> None:
    """With conduit subscriptions all goes over; what no selector there wants waits there."""
    name = f"queue://{way.name()}"
    taker = way.taker(name, selector="color = 'red'")
    sender = way.sender(name)
    for color in ("red", "blue", "red", "green"):
        sender.send(color, {"color": color})
    assert bodies(taker, 2, 0.3) == ["red", "red"]
    far = way.network.session(way.target)
    until(lambda: len(list(far.browse(name))) == 2, "both others have come")
    assert [each.body for each in far.browse(name)] == ["blue", "green"]


def durable_subscriber(way: Way) -> None:
    """A durable subscriber gets what was sent while it was away."""
    name, client_id = f"topic://{way.name()}", way.name()
    first = way.network.connected(way.target, client_id)
    consumer = first.session().consumer(name, subscription_name="sub")
    way.network.await_demand(way.source, name)
    sender = way.sender(name)
    sender.send("one")
    assert bodies(consumer, 1, 0.3) == ["one"]
    first.close()
    sender.send_many(["two", "three"])
    time.sleep(0.5)
    again = way.network.connected(way.target, client_id)
    consumer = again.session().consumer(name, subscription_name="sub")
    assert bodies(consumer, 2, 0.5) == ["two", "three"]
    sender.send("four")
    assert bodies(consumer, 1, 0.3) == ["four"]


def unsubscribed(way: Way) -> None:
    """When the last durable subscription is deleted, so is the bridge's."""
    name, client_id = f"topic://{way.name()}", way.name()
    connection = way.network.connected(way.target, client_id)
    session = connection.session()
    consumer = session.consumer(name, subscription_name="sub")
    way.network.await_demand(way.source, name)
    consumer.close()
    session.unsubscribe("sub")
    way.network.await_no_demand(way.source, name)


def temporary_queue(way: Way) -> None:
    """A temporary queue of one broker can be sent to at the other."""
    connection = way.network.connected(way.target)
    place = connection.temporary_queue()
    taker = connection.session().consumer(place)
    way.network.await_demand(way.source, str(place))
    sender = way.network.session(way.source).producer(place)
    sender.send("reply")
    assert bodies(taker, 1, 0.3) == ["reply"]


def request_and_reply(way: Way) -> None:
    """A request and its reply cross a duplex bridge."""
    name = f"queue://{way.name()}"
    service = way.taker(name)
    connection = way.network.connected(way.source)
    place = connection.temporary_queue()
    answers = connection.session().consumer(place)
    way.sender(name).send("question", reply_to=place)
    asked = service.receive(20)
    assert asked is not None
    assert str(asked.reply_to) == str(place)
    way.network.await_demand(way.target, str(place))
    assert asked.reply_to is not None
    way.network.session(way.target).producer(asked.reply_to).send("answer")
    assert bodies(answers, 1, 0.3) == ["answer"]


def transacted(way: Way) -> None:
    """What was committed goes over together, what was rolled back does not."""
    name = f"queue://{way.name()}"
    taker = way.taker(name)
    session = way.network.session(way.source, transacted=True)
    sender = session.producer(name)
    sender.send("lost")
    session.rollback()
    for body in ("a", "b", "c"):
        sender.send(body)
    session.commit()
    assert bodies(taker, 3, 0.5) == ["a", "b", "c"]


def wildcard_topic(way: Way) -> None:
    """A wildcard there brings what is sent to any topic of it here."""
    prefix = way.name()
    taker = way.taker(f"topic://{prefix}.>")
    for name in ("a", "a.b", "c"):
        way.sender(f"topic://{prefix}.{name}").send(name)
    assert sorted(bodies(taker, 3, 0.5)) == ["a", "a.b", "c"]


def composite_consumer(way: Way) -> None:
    """A consumer of several queues gets what is sent to any of them."""
    one, two = way.name(), way.name()
    taker = way.network.session(way.target).consumer(f"queue://{one},{two}")
    for name in (one, two):
        way.sender(f"queue://{name}").send(name)
    assert sorted(bodies(taker, 2, 0.3)) == sorted([one, two])


def virtual_topic(way: Way) -> None:
    """A queue of a virtual topic is fed from the topic at the other broker."""
    name = f"VirtualTopic.{way.name()}"
    taker = way.taker(f"queue://Consumer.A.{name}")
    way.sender(f"topic://{name}").send_many(["x", "y"])
    assert bodies(taker, 2, 0.5) == ["x", "y"]


def groups_stay_together(way: Way) -> None:
    """Messages of a group go to one of several consumers there, in order."""
    name = f"queue://{way.name()}"
    takers = [way.taker(name) for _ in range(2)]
    sender = way.sender(name)
    for number in range(40):
        sender.send(f"{number % 4}:{number}", group_id=f"g{number % 4}")
    found = shared(takers, 40)
    assert sorted(found[0] + found[1], key=lambda body: int(body.split(":")[1])) == [
        f"{number % 4}:{number}" for number in range(40)
    ]
    groups = [{body.split(":")[0] for body in each} for each in found]
    assert groups[0].isdisjoint(groups[1])


def exclusive_consumer(way: Way) -> None:
    """An exclusive consumer there gets everything."""
    name = f"queue://{way.name()}"
    first = way.taker(name, exclusive=True)
    second = way.network.session(way.target).consumer(name, exclusive=True)
    way.sender(name).send_many([str(number) for number in range(20)])
    assert bodies(first, 20, 0.3) == [str(number) for number in range(20)]
    assert second.receive(0.3) is None


def pulling_consumer(way: Way) -> None:
    """A consumer that asks for each message brings them over all the same."""
    name = f"queue://{way.name()}"
    taker = way.taker(name, prefetch=0)
    way.sender(name).send_many(["a", "b"])
    assert bodies(taker, 2, 0.3) == ["a", "b"]


def many_queues(way: Way) -> None:
    """Many queues at a time do not get in each other's way."""
    names = [f"queue://{way.name()}" for _ in range(20)]
    session = way.network.session(way.target)
    takers = [session.consumer(name) for name in names]
    way.network.await_demand(way.source, names[-1])
    sender = way.network.session(way.source).producer()
    for number in range(5):
        for name in names:
            sender.send(f"{name}/{number}", destination=name)
    for name, taker in zip(names, takers, strict=True):
        assert bodies(taker, 5, 0.1) == [f"{name}/{number}" for number in range(5)]


def browser_is_no_demand(way: Way) -> None:
    """Looking at a queue there brings nothing over."""
    name = f"queue://{way.name()}"
    way.sender(name).send("stays")
    assert list(way.network.session(way.target).browse(name)) == []
    time.sleep(0.5)
    assert [each.body for each in way.network.session(way.source).browse(name)] == ["stays"]


def expired_stays_expired(way: Way) -> None:
    """A message whose time is over before it goes is not delivered there."""
    name = f"queue://{way.name()}"
    sender = way.sender(name)
    sender.send("late", time_to_live=0.2)
    sender.send("in time")
    time.sleep(0.5)
    assert bodies(way.taker(name), 1, 0.5) == ["in time"]


def bridge_is_told_of(way: Way) -> None:
    """Who asks for advisories of bridges is told of those that are there already."""
    session = way.network.session(way.source)
    message = session.consumer("topic://ActiveMQ.Advisory.NetworkBridge").receive(20)
    assert message is not None
    told = message.fields.data_structure
    assert isinstance(told, BrokerInfo) and told.broker_name == way.target
    assert message.properties["started"] is True
    assert message.properties["createdByDuplex"] is not bool(way.network[way.source].connectors)
    assert "127.0.0.1" in str(message.properties["remoteIp"])


SCENARIOS: tuple[Callable[[Way], None], ...] = (
    queue_keeps_headers,
    id_stays,
    topic_to_all,
    both_ends_of_a_topic,
    every_kind_of_body,
    in_order,
    not_persistent,
    large,
    waits_for_demand,
    stays_without_demand,
    shared_by_both,
    conduit_ignores_selectors,
    durable_subscriber,
    unsubscribed,
    temporary_queue,
    transacted,
    wildcard_topic,
    composite_consumer,
    virtual_topic,
    groups_stay_together,
    exclusive_consumer,
    pulling_consumer,
    many_queues,
    browser_is_no_demand,
    expired_stays_expired,
    bridge_is_told_of,
)

BOTH_WAYS: tuple[Callable[[Way], None], ...] = (request_and_reply,)
"""Scenarios of duplex bridges."""
