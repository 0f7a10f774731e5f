"""What the broker tells of itself on the topics called ActiveMQ.Advisory.*."""

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from lockkeeper.broker.advisories.advisories import Advisories
from lockkeeper.broker.policies.advisories import AdvisoryPolicy
from lockkeeper.broker.policies.flow import FlowPolicy
from lockkeeper.broker.policies.pending_message_limit import (
    PendingMessageLimitPolicy,
    PendingMessageLimitStrategy,
)
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message.destination import Destination, Kind, queue, topic
from lockkeeper.message.ids import LocalTransactionId, ProducerId
from lockkeeper.message.openwire import (
    AckType,
    ConnectionInfo,
    ConsumerInfo,
    DestinationInfo,
    DestinationOperation,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
)
from lockkeeper.message.openwire import Message as Fields
from lockkeeper.message.rewrite import decoded, properties_of

if TYPE_CHECKING:
    from conftest import Bench, Client

EVERYTHING = AdvisoryPolicy(*[True] * 7)


class Told(NamedTuple):
    """An advisory as its listener sees it."""

    topic: str
    content: Any
    properties: dict[str, Any]


def listen(bench: "Bench", *topics: str) -> "Client":
    """Return a client that listens to advisories; what it is told at once is skipped."""
    client = bench.client()
    client.consume(",".join(f"topic://ActiveMQ.Advisory.{name}" for name in topics))
    heard(client)
    return client


def heard(client: "Client") -> list[Told]:
    told = []
    for delivery in client.deliveries():
        fields = decoded(delivery.message)
        assert fields.destination is not None
        name = fields.destination.name.removeprefix("ActiveMQ.Advisory.")
        told.append(Told(name, fields.data_structure, properties_of(fields)))
    return told


def contents(client: "Client") -> list[Any]:
    return [told.content for told in heard(client)]


def producer_of(client: "Client", number: int = 1) -> ProducerId:
    return ProducerId(client.connection.identifier, number, 1)


def advising(make_bench: "type[Bench]", **policies: Any) -> "Bench":
    return make_bench(T=DestinationPolicy(advisories=EVERYTHING, **policies))


# What comes and goes


def test_connections_are_told_of_but_never_their_passwords(bench: "Bench") -> None:
    listener = listen(bench, "Connection")
    client = bench.client("app")
    bench.tick()
    (info,) = contents(listener)
    assert isinstance(info, ConnectionInfo)
    assert (info.client_id, info.password) == ("app", "")
    client.leave()
    (removal,) = contents(listener)
    assert isinstance(removal, RemoveInfo)
    assert str(removal.object_id) == client.connection.identifier


def test_every_advisory_says_which_broker_it_is_from(bench: "Bench") -> None:
    listener = listen(bench, "Connection")
    bench.client()
    bench.tick()
    (told,) = heard(listener)
    assert told.properties == {
        "originBrokerId": "ID:test-1",
        "originBrokerName": "test",
        "originBrokerURL": "",
    }


@pytest.mark.parametrize(
    ("name", "destination"),
    [
        ("Queue", queue("Q")),
        ("Topic", topic("T")),
        ("TempQueue", Destination(Kind.TEMP_QUEUE, "ID:owner:1")),
        ("TempTopic", Destination(Kind.TEMP_TOPIC, "ID:owner:1")),
    ],
)
def test_destinations_are_told_of(bench: "Bench", name: str, destination: Destination) -> None:
    listener, client = listen(bench, name), bench.client()
    if destination.is_temporary:
        bench.broker.destinations.create_temporary(client.connection, destination)
        client.leave()
    else:
        client.send(str(destination), "m", persistent=False)
        bench.broker.destinations.remove(destination, None)
    bench.tick()
    came, went = contents(listener)
    assert isinstance(came, DestinationInfo) and isinstance(went, DestinationInfo)
    assert came.destination == went.destination == destination
    assert came.operation_type == DestinationOperation.ADD
    assert went.operation_type == DestinationOperation.REMOVE
    owner = client.connection.identifier if destination.is_temporary else "None"
    assert str(came.connection_id) == str(went.connection_id) == owner


def test_consumers_are_told_of_with_their_number(bench: "Bench") -> None:
    listener = listen(bench, "Consumer.Queue.Q")
    one, two = bench.client(), bench.client()
    first = one.consume("Q", selector="n = 1")
    two.consume("Q")
    bench.broker.subscriptions.unsubscribe(first, -1)
    two.leave()
    told = heard(listener)
    assert [each.properties["consumerCount"] for each in told] == [1, 2, 1, 0]
    infos = [each.content for each in told]
    assert [type(info) for info in infos] == [ConsumerInfo, ConsumerInfo, RemoveInfo, RemoveInfo]
    assert (infos[0].destination, infos[0].selector) == (queue("Q"), "n = 1")
    assert infos[2].object_id == infos[0].consumer_id


def test_producers_are_told_of_with_their_number(bench: "Bench") -> None:
    listener, client = listen(bench, "Producer.Queue.Q"), bench.client()
    bench.broker.add_producer(client.connection, producer_of(client, 1), queue("Q"))
    bench.broker.add_producer(client.connection, producer_of(client, 2), queue("Q"))
    bench.broker.add_producer(client.connection, producer_of(client, 3), None)
    bench.broker.remove_producer(client.connection, producer_of(client, 1))
    client.leave()
    told = heard(listener)
    assert [each.properties["producerCount"] for each in told] == [1, 2, 1, 0]
    assert isinstance(told[0].content, ProducerInfo)
    assert told[0].content.producer_id == producer_of(client, 1)
    assert told[2].content.object_id == producer_of(client, 1)


def test_a_deleted_subscription_is_told_of(bench: "Bench") -> None:
    listener, client = listen(bench, "Consumer.Topic.T"), bench.client("app")
    consumer = client.consume("topic://T", subscription_name="sub")
    bench.broker.subscriptions.unsubscribe(consumer, -1)
    bench.broker.subscriptions.lasting.forget("app", "sub", None)
    bench.tick()
    came, went, deleted = heard(listener)
    assert (came.properties["consumerCount"], went.properties["consumerCount"]) == (1, 0)
    assert isinstance(deleted.content, RemoveSubscriptionInfo)
    assert (deleted.content.client_id, deleted.content.subscription_name) == ("app", "sub")


def test_consumers_of_many_destinations_have_one_topic(bench: "Bench") -> None:
    listener, client = listen(bench, "Consumer.>"), bench.client()
    client.consume("A.>")
    client.consume("A.B,C")
    assert [told.topic for told in heard(listener)] == [
        "Consumer.Queue.A.>",
        "Consumer.Queue.A.B&sbquo;C",
    ]
    exact = listen(bench, "Consumer.Queue.A.>")
    client.consume("A.>")
    assert [told.properties["consumerCount"] for told in heard(exact)] == [3]


# What exists already


def populated(bench: "Bench") -> "Client":
    client = bench.client("app")
    client.consume("Q")
    bench.broker.add_producer(client.connection, producer_of(client), topic("T"))
    bench.broker.destinations.create_temporary(
        client.connection, Destination(Kind.TEMP_QUEUE, "ID:t:1")
    )
    bench.tick()
    return client


def test_what_every_new_client_asks_for_is_made_once(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, another, lent = bench.client(), bench.client(), Destination(Kind.TEMP_QUEUE, "ID:t:1")
    destinations = bench.broker.destinations
    destinations.create_temporary(owner.connection, lent)

    def told_anew() -> list[str]:
        client = bench.client()
        client.consume("topic://ActiveMQ.Advisory.TempQueue")
        return [str(told.content.connection_id) for told in heard(client)]

    told_anew()
    with monkeypatch.context() as patch:
        patch.setattr(Advisories, "compose", None)
        assert told_anew() == [owner.connection.identifier]
    destinations.remove_temporary(owner.connection, lent)
    destinations.create_temporary(another.connection, lent)
    assert told_anew() == [another.connection.identifier]


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        (["Connection"], ["Connection", "Connection"]),
        (["Queue"], ["Queue"]),
        (["Queue", "Topic"], ["Queue", "Topic"]),
        (["TempQueue", "TempTopic"], ["TempQueue"]),
        (["Producer.Topic.T"], ["Producer.Topic.T"]),
        (["Producer.Topic.X"], []),
        (["Consumer.Queue.Q"], ["Consumer.Queue.Q"]),
        (["Consumer.>"], ["Consumer.Queue.Q"]),
        (["*.Queue.>"], ["Consumer.Queue.Q"]),
        (["MessageConsumed.>"], []),
        (
            [">"],
            [
                "Connection",
                "Connection",
                "TempQueue",
                "Queue",
                "Topic",
                "Producer.Topic.T",
                "Consumer.Queue.Q",
            ],
        ),
    ],
    ids=lambda value: ",".join(value) or "nothing",
)
def test_a_new_listener_learns_what_exists(
    bench: "Bench", topics: list[str], expected: list[str]
) -> None:
    populated(bench)
    late = bench.client()
    late.consume(",".join(f"topic://ActiveMQ.Advisory.{name}" for name in topics))
    assert [told.topic for told in heard(late)] == expected


def test_what_exists_is_for_one_listener(bench: "Bench") -> None:
    populated(bench)
    early = listen(bench, "Consumer.Queue.Q")
    late = bench.client()
    late.consume("topic://ActiveMQ.Advisory.Consumer.Queue.Q")
    assert heard(early) == []
    (delivery,) = late.deliveries()
    target = decoded(delivery.message).target_consumer_id
    assert target is not None and target.connection_id == late.connection.identifier


# Messages


def told_of(bench: "Bench", listener: "Client") -> tuple[str, Fields, dict[str, Any]]:
    (told,) = heard(listener)
    assert isinstance(told.content, Fields)
    return told.topic, told.content, told.properties


def test_messages_that_arrive_and_that_are_acknowledged(make_bench: "type[Bench]") -> None:
    bench = advising(make_bench)
    arrived, consumed = listen(bench, "MessageDelivered.>"), listen(bench, "MessageConsumed.>")
    client = bench.client()
    message = client.send("T", "m")
    name, fields, properties = told_of(bench, arrived)
    assert (name, fields.content) == ("MessageDelivered.Queue.T", None)
    assert properties["orignalMessageId"] == message.key.decode()
    assert properties["orignalDestination"] == "queue://T"
    client.acknowledge(client.consume("T"), message)
    assert told_of(bench, consumed)[2]["orignalMessageId"] == message.key.decode()


def test_acknowledgements_of_a_transaction_are_told_of_when_it_is_committed(
    make_bench: "type[Bench]",
) -> None:
    bench = advising(make_bench)
    listener, client = listen(bench, "MessageConsumed.Queue.T"), bench.client()
    message, consumer = client.send("T", "m"), client.consume("T")
    identifier = client.begin()
    bench.broker.transactions.acknowledge(
        client.connection, consumer, identifier, message.sequence, 1, AckType.STANDARD
    )
    bench.tick()
    assert heard(listener) == []
    assert isinstance(identifier, LocalTransactionId)
    bench.broker.transactions.commit(client.connection, identifier, None)
    bench.tick()
    assert told_of(bench, listener)[0] == "MessageConsumed.Queue.T"


def test_of_topics_only_durable_acknowledgements_are_told(make_bench: "type[Bench]") -> None:
    bench = advising(make_bench)
    listener, client = listen(bench, "MessageConsumed.Topic.T"), bench.client("app")
    durable = client.consume("topic://T", subscription_name="sub")
    volatile = client.consume("topic://T")
    message = client.send("topic://T", "m")
    client.acknowledge(volatile, message)
    assert heard(listener) == []
    client.acknowledge(durable, message)
    assert told_of(bench, listener)[0] == "MessageConsumed.Topic.T"


def test_a_body_goes_along_where_the_policy_wants_it(make_bench: "type[Bench]") -> None:
    policy = AdvisoryPolicy(advisory_for_delivery=True, include_body_for_advisory=True)
    bench = make_bench(T=DestinationPolicy(advisories=policy))
    listener = listen(bench, "MessageDelivered.Topic.T")
    bench.client().send("topic://T", "text")
    assert b"text" in (told_of(bench, listener)[1].content or b"")


@pytest.mark.parametrize("name", ["T", "topic://T"])
def test_messages_that_nobody_is_there_for(make_bench: "type[Bench]", name: str) -> None:
    bench = advising(make_bench)
    listener, client = listen(bench, "NoConsumer.>"), bench.client()
    client.send(name, "stored", persistent=True)
    client.send(name, "passing", persistent=False)
    (delivery,) = listener.deliveries()
    kind = "Topic" if name.startswith("topic") else "Queue"
    assert decoded(delivery.message).destination == topic(f"ActiveMQ.Advisory.NoConsumer.{kind}.T")
    assert b"passing" in delivery.message.body
    client.consume(name)
    client.send(name, "wanted", persistent=False)
    assert listener.deliveries() == []


def test_messages_that_only_others_would_want(make_bench: "type[Bench]") -> None:
    bench = advising(make_bench)
    listener, client = listen(bench, "NoConsumer.Topic.T"), bench.client()
    client.consume("topic://T", selector="n = 1")
    client.send("topic://T", "unwanted", persistent=False)
    client.send("topic://T", "wanted", persistent=False, properties={"n": 1})
    (delivery,) = listener.deliveries()
    assert b"unwanted" in delivery.message.body


def test_expired_and_dead_lettered_messages(make_bench: "type[Bench]") -> None:
    bench = make_bench()
    listener, client = listen(bench, "Expired.>", "MessageDLQd.>"), bench.client()
    message = client.send("Q", "m", expiration=bench.now + 5)
    bench.tick(10)
    client.consume("Q")
    expired, buried = heard(listener)
    assert (expired.topic, buried.topic) == ("Expired.Queue.Q", "MessageDLQd.Queue.Q")
    assert expired.properties["orignalMessageId"] == message.key.decode()
    assert expired.content.destination == queue("Q")


def test_messages_a_slow_consumer_loses(make_bench: "type[Bench]") -> None:
    limit = PendingMessageLimitPolicy(PendingMessageLimitStrategy.CONSTANT, 1)
    bench = advising(make_bench, pending_message_limit=limit)
    listener, client = listen(bench, "MessageDiscarded.Topic.T"), bench.client()
    consumer = client.consume("topic://T", prefetch=1)
    sent = [client.send("topic://T", f"m{number}", persistent=False) for number in range(4)]
    told = heard(listener)
    assert [each.properties["orignalMessageId"] for each in told] == [
        message.key.decode() for message in sent[1:3]
    ]
    assert [each.properties["discardedCount"] for each in told] == [1, 2]
    assert {each.properties["consumerId"] for each in told} == {str(consumer.identifier)}


# Want of room


@pytest.mark.parametrize("name", ["T", "topic://T"])
def test_a_slow_consumer_is_told_of_once_until_it_moves(
    make_bench: "type[Bench]", name: str
) -> None:
    bench = advising(make_bench)
    listener, client = listen(bench, "SlowConsumer.>"), bench.client()
    consumer = client.consume(name, prefetch=2)
    for number in range(5):
        client.send(name, f"m{number}")
    (told,) = heard(listener)
    kind = "Topic" if name.startswith("topic") else "Queue"
    assert told.topic == f"SlowConsumer.{kind}.T"
    assert told.properties["consumerId"] == str(consumer.identifier)
    assert isinstance(told.content, ConsumerInfo)


def test_want_of_memory_and_who_has_to_wait_for_it(make_bench: "type[Bench]") -> None:
    policy = DestinationPolicy(advisories=EVERYTHING, flow=FlowPolicy(spool_non_persistent=False))
    bench = make_bench(memory_limit=5_000, T=policy)
    full, fast = listen(bench, "FULL.Queue.T"), listen(bench, "FastProducer.Queue.T")
    client = bench.client()
    bench.broker.add_producer(client.connection, producer_of(client), queue("T"))
    for _ in range(4):
        client.send("T", "x" * 1_000, persistent=False)
    used = bench.broker.memory.used
    (told,) = heard(full)
    assert told.content is None
    assert told.properties["usageName"] == "memory"
    assert 5_000 <= told.properties["usageCount"] <= used
    (blamed,) = heard(fast)
    assert blamed.content.producer_id == producer_of(client)
    assert blamed.properties["producerId"] == str(producer_of(client))


# What is not told, and not done


def test_nothing_is_made_while_nobody_listens(make_bench: "type[Bench]") -> None:
    bench = advising(make_bench)
    client = populated(bench)
    client.send("T", "m", persistent=False)
    client.leave()
    names = [region.destination.name for region in bench.broker.registry]
    assert not any(name.startswith("ActiveMQ.Advisory.") for name in names)
    first = listen(bench, "Connection")
    bench.client()
    bench.tick()
    (delivery,) = first.deliveries()
    assert str(decoded(delivery.message).message_id).endswith(":2"), "the first is its own"


def test_there_are_no_advisories_about_advisories(make_bench: "type[Bench]") -> None:
    policies: dict[str, Any] = {">": DestinationPolicy(advisories=EVERYTHING)}
    bench = make_bench(**policies)
    listener = listen(bench, ">")
    listen(bench, "Connection", "Consumer.>", "NoConsumer.>")
    bench.client().consume("Q")
    told = [each.topic for each in heard(listener)]
    assert told == ["Connection", "Connection", "Queue", "Consumer.Queue.Q"]


def test_a_broker_may_keep_it_all_to_itself(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=BrokerSettings(advisory_support=False))
    listener = listen(bench, ">")
    populated(bench)
    assert heard(listener) == []


def test_advisory_topics_go_with_their_destination(bench: "Bench") -> None:
    listener = listen(bench, "Consumer.Queue.Q")
    client = bench.client()
    bench.broker.subscriptions.unsubscribe(client.consume("Q"), -1)
    listener.leave()
    bench.broker.destinations.remove(queue("Q"), None)
    assert [region.destination for region in bench.broker.registry] == []


def test_wildcards_leave_nothing_behind(bench: "Bench") -> None:
    listener = listen(bench, ">", "Consumer.>", "Connection")
    client = bench.client()
    for number in range(20):
        reply_to = Destination(Kind.TEMP_QUEUE, f"ID:t:{number}")
        bench.broker.destinations.create_temporary(client.connection, reply_to)
        client.consume(str(reply_to))
        bench.broker.destinations.remove_temporary(client.connection, reply_to)
    bench.tick()
    told = [each.topic for each in heard(listener)]
    assert told.count("TempQueue") == 40
    assert told.count("Consumer.Queue.ID:t:7") == 4, "each of two wildcards"
    assert len(list(bench.broker.registry)) == 3, "the topics of the listener"
    listener.leave()
    listen(bench, "*")
    names = [region.destination.name for region in bench.broker.registry]
    assert sorted(names) == ["ActiveMQ.Advisory.*", "ActiveMQ.Advisory.Connection"]


def test_who_listens_to_all_topics_hears_advisories_too(bench: "Bench") -> None:
    client = bench.client()
    client.consume("topic://>")
    bench.client().consume("Q")
    assert [each.topic for each in heard(client)] == ["Connection", "Queue", "Consumer.Queue.Q"]


def test_acknowledged_advisories_weigh_nothing(bench: "Bench") -> None:
    listener = bench.client()
    consumer = listener.consume("topic://ActiveMQ.Advisory.>")
    bench.client().consume("Q")
    for delivery in listener.deliveries(consumer):
        listener.acknowledge(consumer, delivery.message)
    assert bench.broker.memory.used == 0
