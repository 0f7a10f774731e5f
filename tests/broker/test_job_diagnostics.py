"""Why a scheduled message is not delivered, by whichever id somebody has seen of it."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.diagnostics.queues import why_message, why_queue
from lockkeeper.broker.diagnostics.reason import Reason
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.redelivery import RedeliveryPolicy
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.scheduling.job_queue import JobQueue
from lockkeeper.broker.settings import BrokerSettings, LimitSettings, SchedulerSettings
from lockkeeper.message.primitives import Value
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Bench

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
COUNT = 300
SETTINGS = BrokerSettings(scheduler=SchedulerSettings(enabled=True))
AGAIN: dict[str, Value] = {
    "AMQ_SCHEDULED_DELAY": 5,
    "AMQ_SCHEDULED_PERIOD": HOUR,
    "AMQ_SCHEDULED_REPEAT": 9,
}


@pytest.fixture
def bench(make_bench: "type[Bench]") -> "Bench":
    """Return a broker that heeds schedules."""
    return make_bench(settings=SETTINGS)


def delay(milliseconds: int) -> dict[str, Value]:
    """Return the properties of a delay."""
    return {"AMQ_SCHEDULED_DELAY": milliseconds}


def jobs_of(bench: "Bench") -> JobQueue:
    """Return the queue of jobs."""
    jobs = bench.queue(str(JOBS))
    assert isinstance(jobs, JobQueue)
    return jobs


def shown(bench: "Bench") -> str:
    """Return the JMSMessageID that browsing shows of the next job."""
    jobs = jobs_of(bench)
    first = jobs.first()
    assert first is not None
    message = jobs.peek(first)
    assert message is not None
    return message.identifier.decode()


def about(bench: "Bench", message_id: str) -> Reason:
    """Return why a job is where it is."""
    (reason,) = why_message(bench.broker, jobs_of(bench), message_id)
    return reason


def test_a_job_that_came_again_is_known_by_both_its_ids(
    make_bench: "type[Bench]", tmp_path: "Path"
) -> None:
    bench = make_bench(KahaDBStore(tmp_path), settings=SETTINGS)
    sent = bench.client().send("Q", "x", properties=AGAIN)
    bench.tick(5)
    identifier, message_id = sent.key.decode(), shown(bench)
    assert message_id != identifier
    expected = "it is a scheduled message, whose time comes in 3,600,000 ms"
    assert [about(bench, each).text for each in (identifier, message_id)] == [expected] * 2
    bench.tick(HOUR)
    assert about(bench, message_id).code == "not-there"
    message_id = shown(bench)
    bench.store.close()
    bench = make_bench(KahaDBStore(tmp_path), settings=SETTINGS)
    codes = [about(bench, each).code for each in (identifier, message_id)]
    assert codes == ["scheduled"] * 2
    bench.store.close()


def test_what_is_redelivered_later_is_known_by_the_id_that_its_sender_knows(
    make_bench: "type[Bench]",
) -> None:
    redelivery = RedeliveryPolicy(initial_redelivery_delay=MINUTE)
    bench = make_bench(Q=DestinationPolicy(redelivery=redelivery))
    client = bench.client()
    consumer = client.consume("Q")
    sent = [client.send("Q", text) for text in "xy"]
    for delivery in client.deliveries(consumer):
        bench.broker.poison(consumer, delivery.message.sequence, 1, "broken", None)
    bench.tick()
    assert jobs_of(bench).depth() == 2
    for message in sent:
        reason = about(bench, message.identifier.decode())
        assert (reason.code, reason.facts["due"]) == ("scheduled", bench.now + MINUTE)
    bench.tick(MINUTE)
    assert about(bench, sent[0].identifier.decode()).code == "not-there"


def test_one_whose_turn_has_not_come_yet_lacks_no_room(bench: "Bench") -> None:
    client = bench.client()
    for _ in range(COUNT):
        client.send("Q", "x", wait=False, properties=delay(SECOND))
    bench.tick()
    bench.now += SECOND
    bench.steady += SECOND
    # One turn is not enough for all of them.
    bench.broker.tick(bench.now, bench.steady)
    jobs = jobs_of(bench)
    assert 0 < jobs.depth() < COUNT
    (reason,) = why_queue(jobs)
    assert (reason.code, reason.facts) == ("next", {"due": bench.now})


@pytest.mark.parametrize("by", [2 * HOUR, -2 * HOUR])
def test_a_delay_is_as_long_as_it_was_to_be_whatever_the_clock_says(
    bench: "Bench", by: int
) -> None:
    bench.client().send("Q", "x", properties=delay(HOUR))
    bench.set_clock(by)
    bench.tick(MINUTE)
    (reason,) = why_queue(jobs_of(bench))
    assert (reason.code, reason.facts["due"]) == ("scheduled", bench.now + HOUR - MINUTE)
    assert "in 3,540,000 ms" in reason.text


def test_a_cron_expression_goes_by_the_clock(bench: "Bench") -> None:
    bench.client().send("Q", "x", properties={"AMQ_SCHEDULED_CRON": "0 0 1 1 *"})
    (before,) = why_queue(jobs_of(bench))
    bench.set_clock(HOUR)
    bench.tick()
    (after,) = why_queue(jobs_of(bench))
    assert after.code == "scheduled"
    assert after.facts == before.facts


def test_what_is_in_the_way_is_told_as_long_as_it_is(make_bench: "type[Bench]") -> None:
    limits = LimitSettings(destinations=1)
    bench = make_bench(settings=BrokerSettings(scheduler=SETTINGS.scheduler, limits=limits))
    bench.client().send("NEW", "x", properties=delay(SECOND))
    due = bench.now + SECOND
    bench.tick(SECOND)
    bench.tick(10 * SECOND)
    (reason,) = why_queue(jobs_of(bench))
    assert (reason.code, reason.facts) == ("scheduled-without-room", {"due": due})
    assert "(limits.destinations)" in reason.text
    bench.broker.registry._destinations_max = 2
    bench.tick(SECOND)
    assert why_queue(jobs_of(bench)) == []
    assert bench.depth("NEW") == 1
