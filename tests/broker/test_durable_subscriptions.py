"""What durable subscriptions collect while nobody is there, and when they end by themselves."""

from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.context import MESSAGE_BYTES
from lockkeeper.broker.errors import BrokerError, InvalidClientIdError, InvalidDestinationError
from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message.ids import XATransactionId
from lockkeeper.message.openwire import AckType
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Bench, Client

    from lockkeeper.broker.subscriptions.consumer import Consumer

TOPIC = "topic://T"
HOUR = 3_600_000
INACTIVE = BrokerSettings(keep_durable_subs_active=False)
ABANDONED = BrokerSettings(
    offline_durable_subscriber_timeout=2 * HOUR, offline_durable_subscriber_task_schedule=HOUR
)
XIDS = [XATransactionId(1, b"global", branch) for branch in (b"one", b"two")]


def durable(client: "Client", name: str = "sub", **options: Any) -> "Consumer":
    return client.consume(TOPIC, subscription_name=name, **options)


def names(bench: "Bench") -> list[str]:
    return sorted(bench.broker.subscriptions.durables)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [(BrokerSettings(), ["stored", "passing"]), (INACTIVE, ["stored"])],
    ids=["active", "inactive"],
)
def test_settings_say_whether_passing_messages_are_collected(
    make_bench: "type[Bench]", settings: BrokerSettings, expected: list[str]
) -> None:
    bench = make_bench(settings=settings)
    client = bench.client("app")
    durable(client)
    sender = bench.client()
    sender.send(TOPIC, "online", persistent=False)
    assert client.texts() == ["online"]
    client.leave()
    sender.send(TOPIC, "stored")
    sender.send(TOPIC, "passing", persistent=False)
    back = bench.client("app")
    durable(back)
    # What the consumer held when it went comes back first.
    assert back.texts() == ["online", *expected]


def test_an_abandoned_subscription_is_deleted(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=ABANDONED)
    there, away = bench.client("there"), bench.client("away")
    durable(there)
    durable(away)
    away.leave()
    bench.client().send(TOPIC, "m")
    bench.tick(HOUR)
    assert names(bench) == ["away:sub", "there:sub"]
    bench.tick(HOUR)
    assert names(bench) == ["there:sub"]
    assert bench.restart().broker.subscriptions.durables.keys() == {"there:sub"}


def test_time_offline_begins_anew_with_the_broker(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=ABANDONED)
    client = bench.client("app")
    durable(client)
    client.leave()
    bench.tick(HOUR)
    after = make_bench(bench.store, settings=ABANDONED)
    after.tick(HOUR)
    assert names(after) == ["app:sub"]
    after.tick(HOUR)
    assert names(after) == []


def test_subscriptions_stay_for_ever_by_default(bench: "Bench") -> None:
    client = bench.client("app")
    durable(client)
    client.leave()
    assert bench.broker.next_deadline() is None


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("Q", InvalidDestinationError),
        ("topic://A,queue://B", InvalidDestinationError),
        ("topic://A,topic://ActiveMQ.Advisory.>", BrokerError),
        ("topic://ActiveMQ.Advisory.Connection", BrokerError),
    ],
)
def test_a_durable_subscription_is_for_topics_of_clients(
    bench: "Bench", source: str, error: type[BrokerError]
) -> None:
    client = bench.client("app")
    with pytest.raises(error, match=r"for topics|advisory"):
        client.consume(source, subscription_name="sub")
    assert names(bench) == []


def test_a_durable_subscription_needs_a_client_id(bench: "Bench") -> None:
    client = bench.client()
    client.connection.client_id = ""
    with pytest.raises(InvalidClientIdError):
        durable(client)


def test_wanting_own_messages_again_begins_the_subscription_anew(bench: "Bench") -> None:
    client = bench.client("app")
    deaf = durable(client, no_local=True)
    client.send(TOPIC, "own")
    bench.client().send(TOPIC, "other")
    assert client.texts(deaf) == ["other"]
    bench.broker.subscriptions.unsubscribe(deaf, -1)
    hearing = durable(client)
    client.send(TOPIC, "own, too")
    assert client.texts(hearing) == ["own, too"]


def test_a_selector_holds_while_the_subscriber_is_away(bench: "Bench") -> None:
    client = bench.client("app")
    durable(client, selector="n = 1")
    client.leave()
    sender = bench.client()
    for number in (1, 2, 1):
        sender.send(TOPIC, f"m{number}", properties={"n": number})
    assert bench.depth(TOPIC) == 2


def test_a_message_in_two_prepared_transactions_is_there_for_both_outcomes(
    make_bench: "type[Bench]",
) -> None:
    bench = make_bench()
    clients = [bench.client(name) for name in ("one", "two")]
    consumers = [durable(client) for client in clients]
    message = bench.client().send(TOPIC, "m")
    transactions = bench.broker.transactions
    for client, consumer, xid in zip(clients, consumers, XIDS, strict=True):
        transactions.begin(client.connection, xid)
        bench.broker.transactions.acknowledge(
            client.connection, consumer, xid, message.sequence, 1, AckType.STANDARD
        )
        transactions.prepare(client.connection, xid, Reply(client.connection, 1))
    bench.tick()

    after = bench.restart()
    memory, transactions = after.broker.memory, after.broker.transactions
    size = MESSAGE_BYTES + len(message.body)
    assert memory.used == size, "one body, however many hold it"
    anybody = after.client()
    transactions.commit(anybody.connection, XIDS[0], None)
    after.tick()
    assert memory.used == size
    transactions.rollback(anybody.connection, XIDS[1], None)
    after.tick()
    one, two = after.client("one"), after.client("two")
    assert one.texts(durable(one)) == []
    (delivery,) = two.deliveries(consumer := durable(two))
    two.acknowledge(consumer, delivery.message)
    assert memory.used == 0


def test_a_subscription_is_not_ended_by_one_whose_names_read_the_same(bench: "Bench") -> None:
    durable(bench.client("orders:eu"), "audit")
    other = bench.client("orders")
    for topic in (TOPIC, "topic://OTHER"):
        with pytest.raises(BrokerError, match="the durable subscription audit of orders:eu"):
            other.consume(topic, subscription_name="eu:audit")
    with pytest.raises(InvalidDestinationError, match="No durable subscription exists"):
        bench.broker.subscriptions.lasting.forget("orders", "eu:audit", None)
    assert names(bench) == ["orders:eu:audit"]


@pytest.mark.parametrize(("client_id", "name"), [("c\ud800", "s"), ("c", "\udfff😀")])
def test_a_subscription_that_no_journal_can_name_leaves_nothing_behind(
    tmp_path: "Path", make_bench: "type[Bench]", client_id: str, name: str
) -> None:
    bench = make_bench(store=KahaDBStore(tmp_path))
    with pytest.raises(BrokerError, match="holds half of a character"):
        durable(bench.client(client_id), name)
    assert names(bench) == []
    bench.store.close()


class Settled:
    """A receipt that tells whether it was settled."""

    done = False

    def settle(self) -> None:
        self.done = True


def test_an_acknowledgement_is_answered_when_all_that_it_ends_is_written(
    tmp_path: "Path", make_bench: "type[Bench]"
) -> None:
    """Also where the last message is not persistent, and has nothing to be written of."""
    store = KahaDBStore(tmp_path)
    bench = make_bench(store=store)
    subscriber, producer = bench.client("me"), bench.client()
    consumer = durable(subscriber)
    producer.send(TOPIC, "persistent")
    producer.send(TOPIC, "not", persistent=False)
    last = subscriber.deliveries(consumer)[-1].message.sequence
    receipt = Settled()
    bench.broker.acknowledge(consumer, AckType.STANDARD, last, 2, receipt)
    assert store.waiting() > 0
    assert not receipt.done
    bench.tick()
    assert receipt.done


def test_browsing_in_a_transaction_gives_no_memory_back(
    tmp_path: "Path", make_bench: "type[Bench]"
) -> None:
    bench = make_bench(store=KahaDBStore(tmp_path))
    producer, client = bench.client(), bench.client()
    for number in range(10):
        producer.send("Q", str(number))
    used = bench.broker.memory.used
    browser = client.consume("Q", prefetch=10, browser=True)
    transaction = client.begin()
    last = client.deliveries(browser)[-1].message.sequence
    bench.broker.transactions.acknowledge(
        client.connection, browser, transaction, last, 10, AckType.STANDARD
    )
    bench.tick()
    bench.broker.transactions.commit(client.connection, transaction, None)
    bench.tick()
    assert bench.broker.memory.used == used
    assert bench.depth("Q") == 10
