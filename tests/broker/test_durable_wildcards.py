"""Durable subscriptions to wildcards and lists: one subscription, a part for each topic."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.access.permissions import PermissionMap
from lockkeeper.broker.access.rights import Rights
from lockkeeper.broker.errors import AccessDeniedError, BrokerError
from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message.destination import topic
from lockkeeper.message.ids import XATransactionId
from lockkeeper.message.openwire import AckType
from lockkeeper.store.base import Subscription

if TYPE_CHECKING:
    from conftest import Bench, Client

    from lockkeeper.broker.subscriptions.consumer import Consumer

NEWS = "topic://NEWS.>"
HOME, WORLD, SPORT = "topic://NEWS.HOME", "topic://NEWS.WORLD", "topic://NEWS.WORLD.SPORT"
PLACES = {"NEWS.HOME", "NEWS.WORLD", "NEWS.WORLD.SPORT"}
HOUR = 3_600_000
XID = XATransactionId(1, b"global", b"branch")


def durable(client: "Client", source: str = NEWS, **options: Any) -> "Consumer":
    return client.consume(source, subscription_name="sub", **options)


def subscribed(bench: "Bench", source: str = NEWS, **options: Any) -> None:
    """Begin a subscription whose client goes."""
    client = bench.client("app")
    durable(client, source, **options)
    client.leave()


def waiting(bench: "Bench", source: str = NEWS, **options: Any) -> list[str]:
    """Return what waits for the subscription, in the order of texts; all of it goes on waiting."""
    client = bench.client("app")
    consumer = durable(client, source, **options)
    texts = client.texts(consumer)
    client.leave()
    return sorted(texts)


def topics(bench: "Bench") -> list[str]:
    """Return the topics that the subscription collects from."""
    group = bench.broker.subscriptions.durables["app:sub"]
    return sorted(place.name for place in group.parts)


def stored(bench: "Bench") -> list[tuple[str, str | None]]:
    """Return what the store has of durable subscriptions: the topic, and what was wanted."""
    bench.tick()
    found = [one.subscription for one in bench.store.open().subscriptions]
    return sorted((one.destination.name, one.wanted.name if one.wanted else None) for one in found)


def test_it_collects_from_topics_there_are_and_from_those_to_come(bench: "Bench") -> None:
    sender = bench.client()
    sender.send(HOME, "before")
    subscribed(bench)
    for place in (HOME, WORLD, SPORT, "topic://NEWS", "topic://OTHER"):
        sender.send(place, place)
    assert waiting(bench) == ["topic://NEWS", HOME, WORLD, SPORT]


def test_a_star_stands_for_one_level(bench: "Bench") -> None:
    subscribed(bench, "topic://NEWS.*")
    sender = bench.client()
    for place in (HOME, SPORT, "topic://NEWS"):
        sender.send(place, place)
    assert waiting(bench, "topic://NEWS.*") == [HOME]


def test_each_topic_is_stored_and_the_wildcard_is_not(bench: "Bench") -> None:
    subscribed(bench)
    assert stored(bench) == []
    sender = bench.client()
    sender.send(HOME, "a")
    sender.send(WORLD, "b")
    assert stored(bench) == [("NEWS.HOME", "NEWS.>"), ("NEWS.WORLD", "NEWS.>")]


def test_a_restart_keeps_what_waits_and_goes_on_with_new_topics(bench: "Bench") -> None:
    subscribed(bench)
    bench.client().send(HOME, "a")
    bench.client().send(WORLD, "b")
    after = bench.restart()
    after.client().send(SPORT, "c")
    after.client().send(HOME, "d")
    assert waiting(after) == ["a", "b", "c", "d"]


def test_an_acknowledgement_ends_the_message_of_its_topic_alone(bench: "Bench") -> None:
    subscribed(bench)
    sender = bench.client()
    sender.send(HOME, "a")
    sender.send(WORLD, "b")
    client = bench.client("app")
    consumer = durable(client)
    for delivery in client.deliveries(consumer):
        if delivery.message.destination == topic("NEWS.HOME"):
            client.acknowledge(consumer, delivery.message)
    assert waiting(bench.restart()) == ["b"]


def test_messages_of_a_topic_keep_their_order(bench: "Bench") -> None:
    subscribed(bench)
    sender = bench.client()
    for number in range(5):
        sender.send(HOME, f"h{number}")
        sender.send(WORLD, f"w{number}")
    client = bench.client("app")
    texts = client.texts(durable(client))
    assert [text for text in texts if text[0] == "h"] == [f"h{number}" for number in range(5)]
    assert [text for text in texts if text[0] == "w"] == [f"w{number}" for number in range(5)]


def test_topics_take_turns_in_a_small_window(bench: "Bench") -> None:
    subscribed(bench)
    sender = bench.client()
    for place in (HOME, WORLD, SPORT):
        for number in range(10):
            sender.send(place, str(number))
    client = bench.client("app")
    consumer, seen = durable(client, prefetch=2), list[str]()
    while found := client.deliveries(consumer):
        assert len(found) <= 2
        for delivery in found:
            seen.append(delivery.message.destination.name)
            client.acknowledge(consumer, delivery.message)
    assert Counter(seen) == dict.fromkeys(PLACES, 10)
    assert set(seen[:6]) == PLACES


def test_a_consumer_gets_messages_of_topics_that_come_while_it_is_there(bench: "Bench") -> None:
    client = bench.client("app")
    consumer = durable(client)
    bench.client().send(HOME, "a")
    assert client.texts(consumer) == ["a"]
    bench.client().send(WORLD, "b")
    assert client.texts(consumer) == ["b"]


def test_only_one_consumer_at_a_time(bench: "Bench") -> None:
    client = bench.client("app")
    durable(client)
    with pytest.raises(BrokerError, match="in use"):
        durable(client)
    with pytest.raises(BrokerError, match="in use"):
        bench.broker.subscriptions.lasting.forget("app", "sub", None)


def test_unsubscribing_ends_all_parts_for_good(bench: "Bench") -> None:
    subscribed(bench)
    bench.client().send(HOME, "a")
    bench.client().send(WORLD, "b")
    bench.broker.subscriptions.lasting.forget("app", "sub", None)
    bench.client().send(SPORT, "c")
    assert stored(bench) == []
    assert bench.broker.subscriptions.durables == {}
    assert bench.depth(HOME) == 0


@pytest.mark.parametrize(
    ("source", "options", "collected"),
    [
        (NEWS, {"selector": "n = 1"}, ["NEWS.HOME", "NEWS.WORLD"]),
        ("topic://NEWS.*", {}, ["NEWS.HOME", "NEWS.WORLD"]),
        (WORLD, {}, ["NEWS.WORLD"]),
        (NEWS, {"no_local": True}, ["NEWS.HOME", "NEWS.WORLD"]),
    ],
)
def test_wanting_something_else_begins_anew(
    bench: "Bench", source: str, options: dict[str, object], collected: list[str]
) -> None:
    subscribed(bench)
    bench.client().send(HOME, "a")
    bench.client().send(WORLD, "b")
    assert waiting(bench, source, **options) == []
    assert topics(bench) == collected
    assert [name for name, _ in stored(bench)] == collected


def test_a_plain_subscription_becomes_one_to_a_wildcard(bench: "Bench") -> None:
    subscribed(bench, HOME)
    bench.client().send(HOME, "a")
    bench.client().send(WORLD, "nobody's")
    assert waiting(bench) == []
    assert stored(bench) == [("NEWS.HOME", "NEWS.>"), ("NEWS.WORLD", "NEWS.>")]


def test_a_selector_holds_for_all_topics_after_a_restart(bench: "Bench") -> None:
    subscribed(bench, selector="n = 1")
    bench.client().send(HOME, "a", properties={"n": 1})
    after = bench.restart()
    for place in (HOME, WORLD):
        for number in (1, 2):
            after.client().send(place, f"{place}{number}", properties={"n": number})
    assert waiting(after, selector="n = 1") == ["a", f"{HOME}1", f"{WORLD}1"]


def test_own_messages_are_not_collected_from_topics_that_come_later(bench: "Bench") -> None:
    client = bench.client("app")
    consumer = durable(client, no_local=True)
    client.send(HOME, "own")
    assert client.texts(consumer) == []
    bench.broker.subscriptions.unsubscribe(consumer, -1)
    client.send(WORLD, "own, too")
    bench.client().send(WORLD, "other")
    again = durable(client, no_local=True)
    assert client.texts(again) == ["other"]


def test_advisories_and_queues_are_not_collected(bench: "Bench") -> None:
    subscribed(bench, "topic://>")
    bench.client().consume("topic://ActiveMQ.Advisory.Connection")
    sender = bench.client()
    sender.send("QUEUE", "q")
    sender.send(HOME, "a")
    assert topics(bench) == ["NEWS.HOME"]
    assert waiting(bench, "topic://>") == ["a"]


def test_a_list_collects_from_its_topics_and_wildcards(bench: "Bench") -> None:
    source = "topic://ONE,topic://NEWS.*"
    subscribed(bench, source)
    assert stored(bench) == [("ONE", "ONE,topic://NEWS.*")]
    sender = bench.client()
    for place in ("topic://ONE", HOME, SPORT):
        sender.send(place, place)
    after = bench.restart()
    after.client().send(WORLD, WORLD)
    assert waiting(after, source) == [HOME, WORLD, "topic://ONE"]


def test_a_topic_that_is_removed_leaves_and_comes_back(bench: "Bench") -> None:
    subscribed(bench)
    bench.client().send(HOME, "a")
    bench.client().send(WORLD, "b")
    bench.broker.destinations.remove_with_users(topic("NEWS.HOME"), None)
    assert stored(bench) == [("NEWS.WORLD", "NEWS.>")]
    bench.client().send(HOME, "c")
    assert waiting(bench) == ["b", "c"]


def test_a_topic_is_removed_under_a_consumer(bench: "Bench") -> None:
    client = bench.client("app")
    consumer = durable(client)
    bench.client().send(HOME, "a")
    bench.client().send(WORLD, "b")
    bench.broker.destinations.remove_with_users(topic("NEWS.HOME"), None)
    assert consumer.closed
    client.leave()
    assert waiting(bench) == ["b"]


def test_an_abandoned_one_is_deleted_with_all_its_parts(make_bench: "type[Bench]") -> None:
    bench = make_bench(
        settings=BrokerSettings(
            offline_durable_subscriber_timeout=2 * HOUR,
            offline_durable_subscriber_task_schedule=HOUR,
        )
    )
    subscribed(bench)
    bench.client().send(HOME, "a")
    bench.client().send(WORLD, "b")
    bench.tick(HOUR)
    assert topics(bench) == ["NEWS.HOME", "NEWS.WORLD"]
    bench.tick(HOUR)
    assert bench.broker.subscriptions.durables == {}
    assert stored(bench) == []


@pytest.mark.parametrize("commits", [True, False])
def test_a_prepared_transaction_has_messages_of_several_topics(
    bench: "Bench", commits: bool
) -> None:
    subscribed(bench)
    for place in (HOME, WORLD, SPORT):
        bench.client().send(place, place)
    client = bench.client("app")
    consumer = durable(client)
    transactions = bench.broker.transactions
    transactions.begin(client.connection, XID)
    for delivery in client.deliveries(consumer)[:2]:
        bench.broker.transactions.acknowledge(
            client.connection, consumer, XID, delivery.message.sequence, 1, AckType.STANDARD
        )
    transactions.prepare(client.connection, XID, Reply(client.connection, 1))
    bench.tick()
    after = bench.restart()
    assert len(waiting(after)) == 1
    transactions, anybody = after.broker.transactions, after.client().connection
    (transactions.commit if commits else transactions.rollback)(anybody, XID, None)
    after.tick()
    assert len(waiting(after)) == (1 if commits else 3)
    assert len(waiting(after.restart())) == (1 if commits else 3)


def test_who_may_not_read_a_wildcard_may_not_end_it(make_bench: "type[Bench]") -> None:
    bench = make_bench()
    subscribed(bench)
    reader = bench.client("app")
    rights = Rights("reader", frozenset(), PermissionMap([]))
    reader.connection.rights = rights
    with pytest.raises(AccessDeniedError):
        durable(reader)
    with pytest.raises(AccessDeniedError):
        bench.broker.subscriptions.lasting.forget("app", "sub", None, rights)
    assert topics(bench) == []


def test_what_a_subscriber_could_not_process_is_a_dead_letter_once(bench: "Bench") -> None:
    subscribed(bench)
    bench.client().send(HOME, "a")
    bench.client().send(WORLD, "b")
    client = bench.client("app")
    consumer = durable(client)
    for delivery in client.deliveries(consumer):
        if delivery.message.destination == topic("NEWS.WORLD"):
            bench.broker.poison(consumer, delivery.message.sequence, 1, "no good", None)
    bench.tick()
    client.leave()
    assert bench.depth("ActiveMQ.DLQ") == 1
    assert waiting(bench) == ["a"]


def test_expired_messages_of_all_topics_go(bench: "Bench") -> None:
    subscribed(bench)
    for place in (HOME, WORLD):
        bench.client().send(place, "short", expiration=bench.now + 1000)
        bench.client().send(place, "long")
    bench.tick(2000)
    assert waiting(bench) == ["long", "long"]


@pytest.mark.parametrize("wanted", ["ONE,TWO.*", "TWO.*"])
def test_what_activemq_stores_of_a_list_as_if_it_were_a_topic_goes_with_it(
    bench: "Bench", wanted: str
) -> None:
    store, source = bench.store, f"topic://{wanted}"
    whole = Subscription("app", "sub", topic(wanted), None, False)
    part = whole._replace(destination=topic("TWO.A"), wanted=topic(wanted))
    for each in (whole, part):
        store.subscribe(each, None)
    after = bench.restart()
    after.client().send("topic://ONE,topic://TWO.A,topic://TWO.B", "all")
    assert topics(after) == sorted({"TWO.A", "TWO.B", *wanted.split(",")} - {"TWO.*"})
    assert waiting(after, source) == ["all"] * len(topics(after))
    assert (wanted, None) in stored(after)
    after = after.restart()
    after.broker.subscriptions.lasting.forget("app", "sub", None)
    assert stored(after) == []
