"""Durable subscriptions that no client could begin here come back all the same, and keep others."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.settings import BrokerSettings, LimitSettings
from lockkeeper.message.destination import queue, topic
from lockkeeper.store.base import Subscription
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench

NAMES = ("GO\x01D.TOPIC", "T" * 5000, " ", "A..B")
SELECTORS = ("XPATH '//book'", "price >", "'\x00")


def write(tmp_path: Path, *subscriptions: Subscription) -> None:
    """Leave a journal with these subscriptions, and one that is like any other."""
    store = KahaDBStore(tmp_path)
    store.open()
    for subscription in (*subscriptions, Subscription("anna", "s", topic("T"), None, False)):
        store.subscribe(subscription, None)
    store.flush()
    store.close()


def texts(bench: "Bench") -> list[str]:
    """Send a message, and return what the subscription that is like any other gets."""
    bench.client().send("topic://T", "m")
    anna = bench.client("anna")
    return anna.texts(anna.consume("topic://T", subscription_name="s"))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_none_may_have_harms_nobody(
    make_bench: "type[Bench]", tmp_path: Path, name: str
) -> None:
    write(tmp_path, Subscription("odd", "s", topic(name), None, False))
    bench = make_bench(KahaDBStore(tmp_path))
    assert texts(bench) == ["m"]
    assert bench.broker.subscriptions.durables["odd:s"].destination == topic(name)


@pytest.mark.parametrize("selector", SELECTORS)
def test_with_a_selector_that_is_not_understood_everything_is_kept(
    make_bench: "type[Bench]", tmp_path: Path, selector: str
) -> None:
    write(tmp_path, Subscription("odd", "s", topic("T"), selector, False))
    bench = make_bench(KahaDBStore(tmp_path))
    assert texts(bench) == ["m"]
    group = bench.broker.subscriptions.durables["odd:s"]
    assert [part.depth() for part in group.parts.values()] == [1]
    assert group.subscription.selector == selector
    (record,) = bench.broker.containment.records.values()
    assert "odd:s" in record.what
    assert "selector" in record.error.lower()


def test_a_limit_of_destinations_is_for_new_ones(make_bench: "type[Bench]", tmp_path: Path) -> None:
    several = [Subscription("odd", f"s{n}", topic(f"T{n}"), None, False) for n in range(5)]
    write(tmp_path, *several)
    settings = BrokerSettings(limits=LimitSettings(destinations=2))
    bench = make_bench(KahaDBStore(tmp_path), settings=settings)
    assert len(bench.broker.subscriptions.durables) == 6


def test_a_subscription_of_a_queue_does_not_hide_the_queue(
    make_bench: "type[Bench]", tmp_path: Path
) -> None:
    before = make_bench(KahaDBStore(tmp_path))
    before.client().send("queue://Q", "kept")
    before.store.close()
    write(tmp_path, Subscription("odd", "s", queue("Q"), None, False))
    bench = make_bench(KahaDBStore(tmp_path))
    assert texts(bench) == ["m"]
    reader = bench.client()
    assert reader.texts(reader.consume("queue://Q")) == ["kept"]
