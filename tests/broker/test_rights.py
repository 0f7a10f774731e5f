"""What a connection may do: asked for where producers, consumers and destinations are made."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.access.permissions import PermissionEntry, PermissionMap
from lockkeeper.broker.access.renewal import renew_rights
from lockkeeper.broker.access.rights import Rights
from lockkeeper.broker.errors import AccessDeniedError, InvalidClientIdError
from lockkeeper.broker.outputs import ConsumerClosed, Disconnect
from lockkeeper.broker.scheduling.management import ACTION, MANAGEMENT
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.destination import Destination, Kind, parse_destination, queue
from lockkeeper.message.primitives import Value

if TYPE_CHECKING:
    from conftest import Bench, Client

Granted = Mapping[str, str]
"""Rights such as `rw` by wildcard."""


def rights(granted: Granted, user: str = "anna") -> Rights:
    mine = frozenset((user,))
    entries = [
        PermissionEntry(
            pattern,
            read=mine if "r" in letters else frozenset(),
            write=mine if "w" in letters else frozenset(),
            admin=mine if "a" in letters else frozenset(),
        )
        for pattern, letters in granted.items()
    ]
    return Rights(user, mine, PermissionMap(entries))


@pytest.fixture
def client(bench: "Bench") -> "Client":
    """A client whose rights the test chooses."""
    return bench.client()


def allow(client: "Client", granted: Granted) -> None:
    client.connection.rights = rights(granted)
    client.connection.last_destination = None


def test_sending_needs_the_right_to_write(bench: "Bench", client: "Client") -> None:
    allow(client, {"ORDERS": "wa", "INVOICES": "ra"})
    client.send("ORDERS", "tea")
    with pytest.raises(AccessDeniedError) as refusal:
        client.send("INVOICES", "tea")
    assert str(refusal.value) == "User anna is not authorized to write to: queue://INVOICES"
    assert bench.depth("ORDERS") == 1
    assert bench.depth("INVOICES") == 0


def test_a_producer_needs_the_right_to_write(bench: "Bench", client: "Client") -> None:
    allow(client, {"ORDERS": "r"})
    with pytest.raises(AccessDeniedError, match="not authorized to write to: topic://ORDERS"):
        bench.broker.add_producer(client.connection, 1, parse_destination("topic://ORDERS"))
    assert client.connection.producers == {}


def test_what_is_not_there_yet_needs_the_right_to_create(bench: "Bench", client: "Client") -> None:
    allow(client, {"ORDERS": "rw"})
    with pytest.raises(AccessDeniedError, match="anna is not authorized to create: queue://ORDERS"):
        client.send("ORDERS", "tea")
    with pytest.raises(AccessDeniedError, match="to create: queue://ORDERS"):
        client.consume("ORDERS")
    bench.broker.declare(queue("ORDERS"))
    client.send("ORDERS", "tea")
    assert client.texts(client.consume("ORDERS")) == ["tea"]


def test_every_part_of_a_list_counts(bench: "Bench", client: "Client") -> None:
    allow(client, {"A": "wa", "B": "a"})
    with pytest.raises(AccessDeniedError, match="to write to: queue://B"):
        client.send("A,queue://B", "tea")
    with pytest.raises(AccessDeniedError, match="to read from: queue://A"):
        client.consume("A,B")
    assert bench.depth("A") == 0


@pytest.mark.parametrize("options", [{}, {"browser": True}])
def test_consuming_and_browsing_need_the_right_to_read(
    options: dict[str, bool], client: "Client"
) -> None:
    allow(client, {"A.>": "wa", "A.B": "ra"})
    client.consume("A.B", **options)
    with pytest.raises(AccessDeniedError, match=r"to read from: queue://A\.C"):
        client.consume("A.C", **options)
    with pytest.raises(AccessDeniedError, match=r"to read from: queue://A\.\*"):
        client.consume("A.*", **options)


def test_every_client_may_hear_of_temporary_destinations_and_have_its_own(
    bench: "Bench", client: "Client"
) -> None:
    allow(client, {})
    client.consume("topic://ActiveMQ.Advisory.TempQueue,topic://ActiveMQ.Advisory.TempTopic")
    with pytest.raises(AccessDeniedError, match=r"topic://ActiveMQ\.Advisory\.Connection"):
        client.consume("topic://ActiveMQ.Advisory.Connection")
    reply_to = Destination(Kind.TEMP_QUEUE, f"{client.connection.identifier}:1")
    bench.broker.destinations.create_temporary(client.connection, reply_to)
    consumer = client.consume(str(reply_to))
    other = bench.client()
    allow(other, {})
    other.send(str(reply_to), "answer")
    assert client.texts(consumer) == ["answer"]


def test_what_rules_forward_is_the_brokers_own_doing(bench: "Bench", client: "Client") -> None:
    reader = bench.client().consume("Consumer.A.VirtualTopic.NEWS")
    allow(client, {"VirtualTopic.NEWS": "wa"})
    client.send("topic://VirtualTopic.NEWS", "rain")
    client.send("topic://VirtualTopic.NEWS", "sun")
    assert [bench.depth("Consumer.A.VirtualTopic.NEWS"), len(reader.dispatched)] == [2, 2]


def test_a_durable_subscription_ends_only_by_who_could_read_it(bench: "Bench") -> None:
    owner = bench.client("app")
    consumer = owner.consume("topic://NEWS", subscription_name="sub")
    bench.broker.subscriptions.unsubscribe(consumer, 0)
    forget = bench.broker.subscriptions.lasting.forget
    with pytest.raises(AccessDeniedError, match="to read from: topic://NEWS"):
        forget("app", "sub", None, rights({"OTHER": "ra"}))
    owner.connection.rights = rights({"OTHER": "ra"})
    with pytest.raises(AccessDeniedError, match="to read from: topic://NEWS"):
        owner.consume("topic://OTHER", subscription_name="sub")
    forget("app", "sub", None, rights({"NEWS": "r"}))
    assert bench.broker.subscriptions.durables == {}


def test_nobody_takes_over_the_connection_of_another_user(bench: "Bench", client: "Client") -> None:
    client.connection.user_name = "anna"
    thief = bench.client()
    thief.connection.user_name, thief.connection.rights = "eve", rights({}, "eve")
    with pytest.raises(InvalidClientIdError, match="another user's"):
        bench.broker.connect(thief.connection, client.connection.identifier, "eve")
    assert bench.broker.connections[client.connection.identifier] is client.connection


def test_a_consumer_that_loses_its_right_is_told_why_and_closed(
    bench: "Bench", client: "Client"
) -> None:
    allow(client, {"A": "rwa", "B": "rwa"})
    lost, kept = client.consume("A"), client.consume("B")
    client.send("A", "tea")
    client.outputs()
    renew_rights(bench.broker, lambda _: rights({"A": "w", "B": "rw"}))
    told = client.outputs()
    assert isinstance(told[0], Disconnect)
    assert str(told[0].error) == "User anna is not authorized to read from: queue://A"
    assert told[1:] == [ConsumerClosed(lost.tag)]
    assert (lost.closed, kept.closed) == (True, False)
    assert bench.depth("A") == 1
    assert bench.broker.connections


def test_a_producer_that_loses_its_right_is_refused_from_then_on(
    bench: "Bench", client: "Client"
) -> None:
    allow(client, {"A": "wa"})
    client.send("A", "one")
    renew_rights(bench.broker, lambda _: rights({"A": "r"}))
    with pytest.raises(AccessDeniedError, match="to write to: queue://A"):
        client.send("A", "two")
    assert bench.depth("A") == 1


def test_a_user_who_is_gone_is_disconnected(bench: "Bench", client: "Client") -> None:
    allow(client, {})
    other = bench.client()
    renew_rights(bench.broker, lambda _: None)
    (told,) = client.outputs()
    assert isinstance(told, Disconnect)
    assert "anna may not connect any more" in str(told.error)
    assert client.connection.is_ended
    assert list(bench.broker.connections.values()) == [other.connection]


@pytest.mark.parametrize(
    ("asked", "properties"),
    [
        (MANAGEMENT, {ACTION: "BROWSE"}),
        (parse_destination("topic://ActiveMQ.Statistics.Broker"), {}),
    ],
    ids=["jobs", "statistics"],
)
@pytest.mark.parametrize(
    ("answers", "granted", "missing"),
    [("PAYMENTS", "r", "write to"), ("NEW", "w", "create"), ("PAYMENTS,NEW", "wr", "create")],
)
def test_answers_go_only_where_their_asker_may_send(
    make_bench: "type[Bench]",
    asked: Destination,
    properties: dict[str, Value],
    answers: str,
    granted: str,
    missing: str,
) -> None:
    settings = BrokerSettings(scheduler=SchedulerSettings(enabled=True), statistics_queries=True)
    bench = make_bench(settings=settings)
    bench.client().send("Q", "later", properties={"AMQ_SCHEDULED_DELAY": 3_600_000})
    bench.broker.declare(queue("PAYMENTS"))
    bench.broker.declare(asked)
    client = bench.client()
    allow(client, {asked.name: "w", "PAYMENTS": granted, "NEW": "w"})
    with pytest.raises(AccessDeniedError, match=f"anna is not authorized to {missing}: queue://"):
        client.send(str(asked), "", properties=properties, reply_to=parse_destination(answers))
    bench.tick()
    assert bench.depth("PAYMENTS") == 0
    assert bench.broker.registry.find(queue("NEW")) is None
    # Where it may send, it is answered.
    allow(client, {asked.name: "w", "PAYMENTS": "w"})
    client.send(str(asked), "", properties=properties, reply_to=queue("PAYMENTS"))
    bench.tick(1)
    assert bench.depth("PAYMENTS") == 1
