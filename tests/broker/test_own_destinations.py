"""Queues that the broker keeps for itself: no client can remove them, no wildcard names them."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.errors import InvalidDestinationError
from lockkeeper.broker.policies.inactivity import InactivityPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy, PolicyEntry, PolicyMap
from lockkeeper.broker.policies.redelivery import RedeliveryPolicy
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.broker.streams.transactions import HALVES
from lockkeeper.message.bodies import MessageType, decode_body
from lockkeeper.message.destination import Destination, queue
from lockkeeper.message.rewrite import decoded

if TYPE_CHECKING:
    from conftest import Bench

    from lockkeeper.message.primitives import Value

SEGMENT = queue("Lockkeeper.Stream.0.00000000000000000000.ORDERS")
SCHEDULED = BrokerSettings(scheduler=SchedulerSettings(enabled=True))
REDELIVERS = RedeliveryPolicy()
LATER: "dict[str, Value]" = {"AMQ_SCHEDULED_DELAY": 60_000}
EVERYTHING = ["ActiveMQ.>", ">", "*.*.*", "ActiveMQ.Scheduler.*", ">,ActiveMQ.*.Jobs"]


@pytest.mark.parametrize("destination", [JOBS, HALVES, SEGMENT], ids=str)
def test_they_are_removed_by_nobody(bench: "Bench", destination: Destination) -> None:
    with pytest.raises(InvalidDestinationError, match="is the broker's own"):
        bench.broker.destinations.remove(destination, None)
    with pytest.raises(InvalidDestinationError, match="is the broker's own"):
        bench.broker.destinations.remove_with_users(destination, None)


@pytest.mark.parametrize("wildcard", EVERYTHING)
@pytest.mark.parametrize("enabled", [True, False], ids=["scheduler on", "scheduler off"])
def test_a_wildcard_consumes_only_what_is_the_clients(
    make_bench: "type[Bench]", wildcard: str, enabled: bool
) -> None:
    bench = make_bench(settings=SCHEDULED)
    client = bench.client()
    client.send("ActiveMQ.Scheduler.Mine", "before")
    client.send("ActiveMQ.Scheduler.Mine", "later", properties=LATER)
    consumer = client.consume(wildcard)
    client.send("ActiveMQ.Scheduler.Yours", "after")
    assert sorted(client.texts(consumer)) == ["after", "before"]
    again = make_bench(bench.store, settings=SCHEDULED if enabled else None)
    reader = again.client()
    reader.consume(wildcard)
    reader.send("ActiveMQ.Scheduler.New", "new")
    assert sorted(reader.texts()) == ["after", "before", "new"]
    again.tick(60_000)
    assert reader.texts() == (["later"] if enabled else [])
    assert again.depth(str(JOBS)) == (0 if enabled else 1)


@pytest.mark.parametrize("wildcard", EVERYTHING)
def test_a_wildcard_consumes_where_messages_are_delivered_again(
    make_bench: "type[Bench]", wildcard: str
) -> None:
    bench = make_bench(FAILED_Q=DestinationPolicy(redelivery=REDELIVERS))
    assert bench.broker.registry.find(JOBS) is not None
    client = bench.client()
    client.send("ActiveMQ.Scheduler.Mine", "mine")
    client.consume(wildcard)
    assert client.texts() == ["mine"]


@pytest.mark.parametrize("wildcard", EVERYTHING)
def test_a_wildcard_browses_only_what_is_the_clients(
    make_bench: "type[Bench]", wildcard: str
) -> None:
    bench = make_bench(settings=SCHEDULED)
    client = bench.client()
    client.send("ActiveMQ.Scheduler.Mine", "now")
    client.send("ActiveMQ.Scheduler.Mine", "later", properties=LATER)
    for _ in range(2):
        browser = client.consume(wildcard, browser=True)
        assert [each.destination for each in browser.backlogs] == [queue("ActiveMQ.Scheduler.Mine")]
        assert client.texts(browser) == ["now"]
        bench = make_bench(bench.store)
        client = bench.client()


def test_a_wildcard_asks_for_figures_of_what_is_the_clients(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=replace(SCHEDULED, statistics_queries=True))
    client = bench.client()
    client.send("ActiveMQ.Mine", "later", properties=LATER)
    client.send("ActiveMQ.Mine", "now")
    answers = client.consume("ANSWERS")
    question = "ActiveMQ.Statistics.Destination.ActiveMQ.>"
    client.send(question, "", reply_to=queue("ANSWERS"), persistent=False)
    told: list[Any] = [
        decode_body(MessageType.MAP, decoded(each.message).content)
        for each in client.deliveries(answers)
    ]
    assert [figures["destinationName"] for figures in told] == ["queue://ActiveMQ.Mine"]


def test_one_that_is_made_late_is_not_removed_for_want_of_use(make_bench: "type[Bench]") -> None:
    unused = DestinationPolicy(inactivity=InactivityPolicy(True, 1_000))
    settings = BrokerSettings(schedule_period_for_destination_purge=1_000)
    policies: dict[str, Any] = {">": unused}
    bench = make_bench(settings=settings, **policies)
    redelivers = PolicyMap([PolicyEntry("FAILED", None, DestinationPolicy(redelivery=REDELIVERS))])
    bench.broker.schedulers.prepare_redelivery(redelivers)
    made = bench.broker.registry.find(JOBS)
    assert made is not None
    for _ in range(4):
        bench.tick(1_000)
    assert bench.broker.registry.find(JOBS) is made
