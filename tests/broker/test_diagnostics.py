"""Why a message is not delivered, and why a journal file is kept: every reason, in words."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.diagnostics.files import Survey, why_file
from lockkeeper.broker.diagnostics.producers import why_producers
from lockkeeper.broker.diagnostics.queues import why_message, why_queue
from lockkeeper.broker.diagnostics.reason import Reason
from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.policies.dispatch import DispatchPolicy
from lockkeeper.broker.policies.flow import FlowPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.destination import parse_destination, queue
from lockkeeper.message.ids import XATransactionId
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import AckType
from lockkeeper.message.primitives import Value
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench

XID = XATransactionId(1, b"global", b"branch")


def queue_of(bench: "Bench", name: str = "Q") -> Queue:
    """Return a queue of the core."""
    region = bench.broker.registry.find(parse_destination(name))
    assert isinstance(region, Queue)
    return region


def codes(reasons: list[Reason]) -> list[str]:
    """Return the codes of reasons, each of which has its sentences too."""
    assert all(reason.text and reason.way_out for reason in reasons)
    return [reason.code for reason in reasons]


def about(bench: "Bench", message: Message) -> list[Reason]:
    """Return why a message of Q is where it is."""
    return why_message(bench.broker, queue_of(bench), message.key.decode())


def test_an_empty_queue_needs_no_reason(bench: "Bench") -> None:
    bench.client().consume("Q")
    assert why_queue(queue_of(bench)) == []


def test_nobody_is_there(bench: "Bench") -> None:
    message = bench.client().send("Q", "x")
    assert codes(why_queue(queue_of(bench))) == ["no-consumer"]
    assert codes(about(bench, message)) == ["waiting", "no-consumer"]


def test_the_window_is_full(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q", prefetch=1)
    held, waiting = client.send("Q", "x"), client.send("Q", "y")
    (reason,) = why_queue(queue_of(bench))
    assert reason.code == "window-full"
    assert reason.facts["unacknowledged"] == reason.facts["prefetch"] == 1
    assert reason.facts["since"] == bench.now
    assert client.connection.address in reason.text
    bench.tick(later=500)
    (reason,) = about(bench, held)
    assert (reason.code, reason.facts["since"]) == ("held", bench.now - 500)
    assert codes(about(bench, waiting)) == ["waiting", "window-full"]


def test_nobody_pulls(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q", prefetch=0)
    client.send("Q", "x")
    assert codes(why_queue(queue_of(bench))) == ["no-pull"]


def test_the_connection_is_congested(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    client.connection.congested = True
    client.send("Q", "x")
    assert codes(why_queue(queue_of(bench))) == ["congested"]


def test_no_selector_wants_it(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q", selector="colour = 'red'")
    message = client.send("Q", "x")
    (reason,) = about(bench, message)[1:]
    assert reason.code == "selector"
    assert "colour = 'red'" in reason.text


def test_somebody_else_has_the_queue_for_itself(bench: "Bench") -> None:
    client = bench.client()
    first = client.consume("Q", prefetch=1, exclusive=True)
    client.consume("Q")
    client.send("Q", "x")
    client.send("Q", "y")
    reasons = why_queue(queue_of(bench))
    assert codes(reasons) == ["window-full", "exclusive"]
    assert reasons[1].facts["exclusive"] == str(first.identifier)


def test_somebody_else_owns_its_group(bench: "Bench") -> None:
    client = bench.client()
    owner = client.consume("Q", prefetch=1)
    client.send("Q", "x", group_id="g")
    client.consume("Q")
    message = client.send("Q", "y", group_id="g")
    reasons = about(bench, message)[1:]
    assert codes(reasons) == ["window-full", "message-group"]
    assert reasons[1].facts["owner"] == str(owner.identifier)


def test_another_of_its_group_comes_first(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q", selector="colour = 'red'")
    client.send("Q", "x", group_id="g", properties={"colour": "red"})
    client.send("Q", "y", group_id="g")
    client.consume("Q")
    message = client.send("Q", "z", group_id="g", group_sequence=1)
    (reason,) = about(bench, message)[1:]
    assert (reason.code, reason.facts["group"]) == ("group-order", "g")


def test_its_time_is_over(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q", selector="colour = 'red'")
    message = client.send("Q", "x", expiration=bench.now + 10)
    bench.tick(later=20)
    (reason,) = about(bench, message)[1:]
    assert (reason.code, reason.facts["expiration"]) == ("expired", bench.now - 10)


def test_asking_reads_nothing_into_memory(make_bench: "type[Bench]", tmp_path: Path) -> None:
    before = make_bench(KahaDBStore(tmp_path))
    message = before.client().send("Q", "x")
    before.store.close()
    bench = make_bench(KahaDBStore(tmp_path))
    bench.client().consume("Q", selector="colour = 'red'")
    bench.broker.memory.used = 0
    assert codes(about(bench, message)) == ["waiting", "selector"]
    assert bench.broker.memory.used == 0
    bench.store.close()


def test_the_queue_is_paused(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    queue_of(bench).gate.pause()
    client.send("Q", "x")
    (reason,) = why_queue(queue_of(bench))
    assert (reason.code, reason.facts["since"]) == ("paused", bench.now)


def test_dispatch_has_not_started(make_bench: "type[Bench]") -> None:
    policy = DispatchPolicy(consumers_before_dispatch_starts=2, time_before_dispatch_starts=5_000)
    bench = make_bench(Q=DestinationPolicy(dispatch=policy))
    client = bench.client()
    client.consume("Q")
    client.send("Q", "x")
    (reason,) = why_queue(queue_of(bench))
    assert reason.code == "not-started"
    assert reason.facts == {"startsAt": bench.now + 5_000, "consumers": 1, "wanted": 2}


def test_a_transaction_has_it(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q", prefetch=1)
    consumed = client.send("Q", "in")
    (delivery,) = client.deliveries()
    transactions = bench.broker.transactions
    transactions.begin(client.connection, XID)
    sent = client.send("Q", "out", transaction_id=XID)
    bench.broker.transactions.acknowledge(
        client.connection, consumer, XID, delivery.message.sequence, 1, AckType.STANDARD
    )
    for state in ("open", "prepared"):
        for message, done in ((sent, "sent"), (consumed, "consumed")):
            (reason,) = about(bench, message)
            assert reason.code == f"{done}-in-transaction"
            assert reason.facts["state"] == state
        if state == "open":
            transactions.prepare(client.connection, XID, Reply(client.connection, 0))


def test_it_is_not_there(bench: "Bench") -> None:
    bench.client().send("Q", "x")
    found = why_message(bench.broker, queue_of(bench), "ID:nobody:1")
    assert codes(found) == ["not-there"]


def test_it_is_about_to_be_delivered(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    message = client.send("Q", "x", wait=False)
    assert codes(about(bench, message)) == ["waiting", "next"]


def test_the_json_form_has_all_of_it(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q", prefetch=1)
    client.send("Q", "x")
    client.send("Q", "y")
    (reason,) = why_queue(queue_of(bench))
    assert reason.view() == {
        "reason": "window-full",
        "text": reason.text,
        "wayOut": reason.way_out,
        "consumer": str(consumer.identifier),
        "connection": client.connection.identifier,
        "clientId": client.connection.client_id,
        "address": client.connection.address,
        "unacknowledged": 1,
        "prefetch": 1,
        "since": bench.now,
    }


def test_a_producer_waits_for_memory(make_bench: "type[Bench]") -> None:
    flow = FlowPolicy(spool_non_persistent=False)
    bench = make_bench(memory_limit=10_000, BIG=DestinationPolicy(flow=flow))
    client = bench.client("greedy")
    assert why_producers(bench.broker) == []
    for _ in range(20):
        client.send("BIG", "x" * 1_000, persistent=False)
    began = bench.now
    bench.tick(5_000)
    (reason,) = why_producers(bench.broker)
    assert reason.code == "no-room"
    assert "queue://BIG" in reason.text
    assert reason.facts["limit"] == "systemUsage.memoryUsage"
    assert reason.facts["since"] == began
    assert reason.facts["holders"][0]["destination"] == "queue://BIG"
    assert [each["clientId"] for each in reason.facts["producers"]] == ["greedy"]
    for name in ("BIG", "queue://BIG", "greedy", client.connection.identifier):
        assert why_producers(bench.broker, name) == [reason]
    assert why_producers(bench.broker, "SMALL") == []


@pytest.fixture
def disk(tmp_path: Path) -> KahaDBStore:
    """Return a store with files of 64 KiB."""
    return KahaDBStore(tmp_path, file_bytes_max=1 << 16)


def test_what_keeps_each_journal_file(make_bench: "type[Bench]", disk: KahaDBStore) -> None:
    bench = make_bench(disk)
    client, durable = bench.client(), bench.client("app")
    durable.consume("topic://T", subscription_name="sub")
    client.send("LEFT", "stays")
    client.send("topic://T", "stays too")
    transactions = bench.broker.transactions
    transactions.begin(client.connection, XID)
    client.send("OUT", "undecided", transaction_id=XID)
    transactions.prepare(client.connection, XID, Reply(client.connection, 0))
    consumer = client.consume("Q")
    for _ in range(200):
        client.send("Q", "x" * 1_000)
        for delivery in client.deliveries(consumer):
            client.acknowledge(consumer, delivery.message)

    disk.maintain(bench.now)
    bench.tick()
    survey = Survey(bench.broker)
    for _ in survey.steps():
        pass
    files = disk.files()
    assert len(files) > 2
    why = {each.number: why_file(bench.broker, each, survey) for each in files}
    first = why[files[0].number]
    assert codes(first) == ["messages", "messages", "subscription", "transaction"]
    kept = {reason.facts["destination"]: reason.facts["messages"] for reason in first[:2]}
    assert kept == {"queue://LEFT": 1, "topic://T": 1}
    assert first[2].facts == {"subscription": "app:sub"}
    assert first[3].facts == {"transaction": str(XID)}
    assert codes(why[files[-1].number])[0] == "current"
    followers = {code for each in files[1:-1] for code in codes(why[each.number])}
    assert followers <= {"acknowledgements", "nothing"}
    disk.close()


def test_a_file_with_names_is_kept_until_they_were_told_again(
    make_bench: "type[Bench]", disk: KahaDBStore
) -> None:
    bench = make_bench(disk)
    for number in range(300):
        bench.broker.route(queue(f"Q.{number}.{'x' * 900}"))
    survey = Survey(bench.broker)

    def reasons() -> dict[int, list[str]]:
        return {each.number: codes(why_file(bench.broker, each, survey)) for each in disk.files()}

    bench.tick()
    before = reasons()
    *first, current = before
    assert before == {number: ["names"] for number in first} | {current: ["current"]}
    assert len(first) > 2
    disk.maintain(bench.now)
    bench.tick()
    after = reasons()
    assert [after[number] for number in first if number in after] == [["nothing"]] * len(first)
    *second, last = list(after)[len(first) :]
    assert [after[number] for number in second] == [["names"]] * len(second)
    assert after[last] == ["current"]
    disk.close()


def test_a_job_waits_for_its_time_and_then_for_room(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=BrokerSettings(scheduler=SchedulerSettings(enabled=True)))
    later: dict[str, Value] = {"AMQ_SCHEDULED_DELAY": 5000}
    message = bench.client().send("Q", "x", properties=later, persistent=False)
    jobs = queue_of(bench, str(JOBS))
    (reason,) = why_queue(jobs)
    assert (reason.code, reason.facts["due"]) == ("scheduled", bench.now + 5000)
    assert "in 5,000 ms" in reason.text
    assert why_message(bench.broker, jobs, message.key.decode()) == [reason]
    assert codes(why_message(bench.broker, jobs, "other")) == ["not-there"]
    # No transaction may have so much: see `FlowControl`.
    bench.broker.memory.used += 8 << 30
    bench.tick(5000)
    assert codes(why_queue(jobs)) == ["scheduled-without-room"]
    bench.broker.memory.used -= 8 << 30
    bench.tick(1000)
    assert why_queue(jobs) == []
    assert bench.depth("Q") == 1
