"""Streams that feed queues: each message once, at the pace of the disk and of the queue's room."""

from itertools import pairwise

import pytest
from streams_kit import Bench, DiskBench

from lockkeeper.broker.context import LOOK_BYTES
from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.flow.space import PASSING_BYTES_MAX
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.streams import feeding
from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.settings import StreamSettings
from lockkeeper.message.bodies import decode_body
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.openwire import Message as Fields
from lockkeeper.message.rewrite import decoded, properties_of

BILLING = queue("billing")
FED = StreamSettings(2, to_queues=("billing",))
GROUP = "%QUEUE%billing"
ON_DEMAND = StreamSettings(2, to_queues=("Consumer.*.orders",))
READER = "Consumer.billing.orders"


def run(bench: Bench, times: int = 12) -> None:
    """Let the broker work until it has nothing to do."""
    for _ in range(times):
        bench.tick()


def region(bench: Bench, name: str = "billing") -> Queue:
    """Return a queue."""
    found = bench.broker.registry.find_queue(queue(name))
    assert found is not None
    return found


def messages(bench: Bench, name: str = "billing") -> list[Fields]:
    """Return what waits in a queue."""
    waiting = list(region(bench, name).waiting())
    bench.store.load(waiting, bench.broker.context.next_sequence(len(waiting) + 1))
    return [decoded(reference.loaded) for reference in waiting]


def bodies(bench: Bench, name: str = "billing") -> list[str]:
    """Return the bodies of what waits in a queue."""
    return [(fields.content or b"").decode() for fields in messages(bench, name)]


def test_a_stream_feeds_a_queue(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.broker.streams.declare("orders", FED)
    any_bench.append(client, "orders", *"abc")
    run(any_bench)
    any_bench.append(client, "orders", *"de")
    run(any_bench)
    assert bodies(any_bench) == [*"abcde"]
    assert any_bench.bodies(client, "orders") == [*"abcde"]


def test_a_queue_gets_what_was_there_before(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.append(client, "orders", *"abc")
    any_bench.append(client, "orders", *"xyz", partition=1)
    any_bench.broker.streams.declare("orders", FED)
    run(any_bench)
    assert sorted(bodies(any_bench)) == [*"abcxyz"]


def test_a_message_comes_once_over_a_restart_and_a_crash(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    disk_bench.broker.streams.declare("orders", FED)
    sent = [f"{number}" for number in range(60)]
    for at, body in enumerate(sent):
        disk_bench.append(client, "orders", body)
        # The steps of a feed are cut wherever they are just then.
        if at % 3 == 0:
            disk_bench.broker.tick(disk_bench.now)
        if at % 7 == 0:
            disk_bench.crash()
            client = disk_bench.connect()
        if at % 11 == 0:
            disk_bench.restart()
            client = disk_bench.connect()
    run(disk_bench)
    assert sorted(bodies(disk_bench), key=int) == sent


def test_several_queues_are_fed_each_at_its_own_pace(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.broker.streams.declare("orders", FED)
    any_bench.append(client, "orders", *"ab")
    run(any_bench)
    both = StreamSettings(2, to_queues=("billing", "audit"))
    any_bench.broker.streams.declare("orders", both)
    any_bench.append(client, "orders", "c")
    run(any_bench)
    assert bodies(any_bench) == bodies(any_bench, "audit") == [*"abc"]


def test_a_queue_that_is_no_longer_fed_goes_on_later(any_bench: Bench) -> None:
    client, streams = any_bench.connect(), any_bench.broker.streams
    streams.declare("orders", FED)
    any_bench.append(client, "orders", "a")
    run(any_bench)
    streams.declare("orders", StreamSettings(2))
    any_bench.append(client, "orders", "b")
    run(any_bench)
    assert bodies(any_bench) == ["a"]
    streams.declare("orders", FED)
    run(any_bench)
    assert bodies(any_bench) == ["a", "b"]


def test_a_deleted_stream_feeds_nothing(any_bench: Bench) -> None:
    client, streams = any_bench.connect(), any_bench.broker.streams
    streams.declare("orders", FED)
    any_bench.append(client, "orders", "a")
    run(any_bench)
    streams.remove("orders")
    any_bench.append(client, "orders", "b")
    run(any_bench)
    assert bodies(any_bench) == ["a"]


def test_a_feed_is_a_group_with_a_lag_and_may_begin_again(any_bench: Bench) -> None:
    client, streams = any_bench.connect(), any_bench.broker.streams
    streams.declare("orders", FED)
    any_bench.append(client, "orders", *"ab")
    run(any_bench)
    group = streams.groups.find(GROUP)
    assert group is not None
    assert [lag.messages for lag in streams.queries.lag(group)] == [0, 0]
    streams.reset_offsets(GROUP, "orders", 0)
    run(any_bench)
    assert bodies(any_bench) == [*"abab"]


def test_an_offset_of_a_feed_that_somebody_sets_counts_at_once(any_bench: Bench) -> None:
    client, streams = any_bench.connect(), any_bench.broker.streams
    streams.declare("orders", FED)
    any_bench.append(client, "orders", *"ab")
    run(any_bench)
    streams.commit_offset(GROUP, "orders", 0, 1)
    run(any_bench)
    assert bodies(any_bench) == [*"abb"]


@pytest.mark.parametrize("settings", [FED, ON_DEMAND], ids=["named", "wildcard"])
def test_the_group_of_a_feed_is_deleted_once_its_queue_is_not_fed(
    any_bench: Bench, settings: StreamSettings
) -> None:
    client, streams = any_bench.connect(), any_bench.broker.streams
    name = "billing" if settings is FED else READER
    open_queue(any_bench, name)
    for stream in ("orders", "invoices"):
        streams.declare(stream, settings)
        any_bench.append(client, stream, *"ab")
    run(any_bench)
    group = f"%QUEUE%{name}"
    before = dict(streams.groups.find(group).offsets)  # type: ignore[union-attr]
    with pytest.raises(BrokerError, match="queue from invoices, orders: reset it to feed every"):
        streams.groups.delete(group)
    run(any_bench)
    assert streams.groups.find(group).offsets == before  # type: ignore[union-attr]
    streams.declare("orders", StreamSettings(2))
    with pytest.raises(BrokerError, match="queue from invoices: reset"):
        streams.groups.delete(group)
    streams.remove("invoices")
    assert streams.groups.delete(group)
    assert not streams.groups.delete(group)
    streams.declare("orders", settings)
    run(any_bench)
    assert sorted(bodies(any_bench, name)) == [*"aaabbb"]


def test_the_group_of_a_queue_that_nobody_has_opened_is_deleted(any_bench: Bench) -> None:
    client, streams = any_bench.connect(), any_bench.broker.streams
    streams.declare("orders", ON_DEMAND)
    any_bench.append(client, "orders", *"ab")
    streams.reset_offsets(f"%QUEUE%{READER}", "orders", {0: 2})
    assert streams.groups.delete(f"%QUEUE%{READER}")
    open_queue(any_bench)
    run(any_bench)
    assert bodies(any_bench, READER) == [*"ab"]


def test_a_feed_waits_for_room(any_bench: Bench) -> None:
    client, memory = any_bench.connect(), any_bench.broker.memory
    any_bench.broker.streams.declare("orders", FED)
    full = memory.limit + PASSING_BYTES_MAX
    memory.used += full
    for body in "abc":
        any_bench.append(client, "orders", body)
        run(any_bench)
    assert bodies(any_bench) == []
    memory.used -= full
    any_bench.tick(feeding.RETRY_MS)
    run(any_bench)
    assert bodies(any_bench) == [*"abc"]


def test_a_long_stream_moves_in_small_steps(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "MESSAGES_AT_ONCE", 10)
    client = bench.connect()
    bench.append(client, "orders", *[f"{number}" for number in range(100)])
    bench.broker.streams.declare("orders", FED)
    depths = []
    for _ in range(30):
        bench.tick()
        found = bench.broker.registry.find_queue(BILLING)
        depths.append(found.depth() if found else 0)
    steps = [after - before for before, after in pairwise(depths)]
    assert depths[-1] == 100
    assert max(steps) <= 20


def test_headers_and_properties_of_a_message_that_was_fed(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.broker.streams.declare("orders", StreamSettings(1, to_queues=("billing",)))
    properties = {
        "TAGS": "paid",
        "KEYS": "k1 k2",
        "UNIQ_KEY": "7F0001",
        "__SHARDINGKEY": "customer-7",
        "colour": "red",
    }
    any_bench.append(client, "orders", Draft(b"body", properties, born_at=1_234))
    run(any_bench)
    (fields,) = messages(any_bench)
    assert type(fields).__name__ == "ActiveMQBytesMessage"
    assert (fields.type, fields.correlation_id) == ("paid", "k1 k2")
    assert (fields.group_id, str(fields.message_id)) == ("customer-7", "ID:7F0001")
    assert (fields.timestamp, fields.persistent, fields.expiration) == (1_234, True, 0)
    assert (fields.destination, fields.original_destination) == (BILLING, topic("orders"))
    place = {"lockkeeperStream": "orders", "lockkeeperPartition": 0, "lockkeeperOffset": 0}
    assert properties_of(fields) == {**properties, **place}


@pytest.mark.parametrize(
    ("body", "kind"), [("grün".encode(), "Text"), (b"\xff\x00", "Bytes")], ids=["text", "none"]
)
def test_a_body_that_says_it_is_text_becomes_a_text_message(
    bench: Bench, body: bytes, kind: str
) -> None:
    client = bench.connect()
    bench.broker.streams.declare("orders", FED)
    bench.append(client, "orders", Draft(body, {"lockkeeperBody": "text"}))
    run(bench)
    (fields,) = messages(bench)
    assert type(fields).__name__ == f"ActiveMQ{kind}Message"
    is_text = kind == "Text"
    assert not is_text or decode_body(28, fields.content) == "grün"


def test_messages_without_an_id_get_one_by_their_place(bench: Bench) -> None:
    client = bench.connect()
    bench.broker.streams.declare("orders", FED)
    bench.append(client, "orders", *"ab", partition=1)
    run(bench)
    assert [str(each.message_id) for each in messages(bench)] == ["ID:orders:1:0", "ID:orders:1:1"]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("a b",), "no name of a group"),
        ((">",), "begin with a level"),
        (("*.orders",), "begin with a level"),
        (("Lockkeeper.Stream.States",), "the broker's own"),
        (("a", "a"), "twice"),
    ],
)
def test_queues_that_no_stream_can_feed(bench: Bench, names: tuple[str, ...], why: str) -> None:
    with pytest.raises(BrokerError, match=why):
        bench.broker.streams.declare("orders", StreamSettings(to_queues=names))


def open_queue(bench: Bench, name: str = READER) -> None:
    """Open a queue, as a consumer that comes does."""
    bench.broker.registry.open(bench.broker.context, queue(name))


def test_a_wildcard_stands_for_the_queues_that_somebody_opens(any_bench: Bench) -> None:
    client = any_bench.connect()
    open_queue(any_bench, "Consumer.early.orders")
    any_bench.broker.streams.declare("orders", ON_DEMAND)
    any_bench.append(client, "orders", *"ab")
    run(any_bench)
    open_queue(any_bench)
    open_queue(any_bench, "Consumer.billing.invoices")
    run(any_bench)
    any_bench.append(client, "orders", "c")
    run(any_bench)
    assert bodies(any_bench, "Consumer.early.orders") == [*"abc"]
    assert bodies(any_bench, READER) == [*"abc"]
    assert bodies(any_bench, "Consumer.billing.invoices") == []
    assert any_bench.broker.registry.find_queue(queue("Consumer.*.orders")) is None


def test_a_queue_of_a_wildcard_goes_on_after_a_restart_and_when_it_is_opened_again(
    disk_bench: DiskBench,
) -> None:
    client = disk_bench.connect()
    disk_bench.broker.streams.declare("orders", ON_DEMAND)
    open_queue(disk_bench)
    disk_bench.append(client, "orders", *"ab")
    run(disk_bench)
    disk_bench.crash()
    client = disk_bench.connect()
    disk_bench.append(client, "orders", "c")
    run(disk_bench)
    assert bodies(disk_bench, READER) == [*"abc"]
    disk_bench.broker.destinations.remove(queue(READER), None)
    disk_bench.append(client, "orders", "d")
    run(disk_bench)
    assert disk_bench.broker.registry.find_queue(queue(READER)) is None
    open_queue(disk_bench)
    run(disk_bench)
    assert bodies(disk_bench, READER) == ["d"]


def test_where_a_queue_begins_can_be_said_before_it_is_opened(any_bench: Bench) -> None:
    client, streams = any_bench.connect(), any_bench.broker.streams
    streams.declare("orders", ON_DEMAND)
    any_bench.append(client, "orders", *"abcd")
    any_bench.append(client, "orders", *"xyz", partition=1)
    found = streams.reset_offsets(f"%QUEUE%{READER}", "orders", {0: 3, 1: 99})
    assert found == {0: 3, 1: 3}
    open_queue(any_bench)
    run(any_bench)
    assert bodies(any_bench, READER) == ["d"]


def test_queues_are_let_be_whose_wildcard_is_taken_back(any_bench: Bench) -> None:
    client, streams = any_bench.connect(), any_bench.broker.streams
    streams.declare("orders", ON_DEMAND)
    open_queue(any_bench)
    any_bench.append(client, "orders", "a")
    run(any_bench)
    streams.declare("orders", StreamSettings(2))
    any_bench.append(client, "orders", "b")
    open_queue(any_bench, "Consumer.late.orders")
    run(any_bench)
    assert bodies(any_bench, READER) == ["a"]
    assert bodies(any_bench, "Consumer.late.orders") == []
    streams.declare("orders", ON_DEMAND)
    run(any_bench)
    assert bodies(any_bench, READER) == ["a", "b"]
    assert bodies(any_bench, "Consumer.late.orders") == ["a", "b"]


def test_a_queue_without_a_name_for_a_group_is_opened_and_not_fed(bench: Bench) -> None:
    client = bench.connect()
    bench.broker.streams.declare("orders", ON_DEMAND)
    bench.append(client, "orders", "a")
    open_queue(bench, "Consumer.bïlling.orders")
    run(bench)
    assert bodies(bench, "Consumer.bïlling.orders") == []
    assert not any(bench.broker.containment.counts.values())


def test_a_queue_that_is_deleted_while_it_is_fed_keeps_no_file(disk_bench: DiskBench) -> None:
    client, broker = disk_bench.connect(), disk_bench.broker
    broker.streams.declare("orders", ON_DEMAND)
    disk_bench.append(client, "orders", *["x" * 500] * 10)
    broker.registry.ensure_queue(broker.context, queue(READER))
    for _ in range(2):
        broker.tick(disk_bench.now)
    assert disk_bench.store.usage().waiting_operations
    broker.destinations.remove(queue(READER), None)
    run(disk_bench)
    broker.streams.remove("orders")
    run(disk_bench)
    live = sum(each.live for each in disk_bench.store._file_references.files.values())
    disk_bench.restart()
    files = disk_bench.store._file_references.files.values()
    assert live == sum(each.live for each in files)


def test_a_crash_while_a_stream_is_deleted_feeds_nothing_twice(
    disk_bench: DiskBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, streams = disk_bench.connect(), disk_bench.broker.streams
    streams.declare("orders", FED)
    disk_bench.append(client, "orders", *"ab")
    run(disk_bench)
    forget = streams.groups.forget_stream

    def forget_and_die(name: str) -> None:
        forget(name)
        raise InterruptedError

    monkeypatch.setattr(streams.groups, "forget_stream", forget_and_die)
    with pytest.raises(InterruptedError):
        streams.remove("orders")
    disk_bench.settle()
    disk_bench.crash()
    run(disk_bench)
    assert bodies(disk_bench) == [*"ab"]


def test_small_messages_weigh_in_a_batch(bench: Bench) -> None:
    client = bench.connect()
    bench.append(client, "orders", *["x"] * 3_000)
    bench.broker.streams.declare("orders", FED)
    bench.tick()
    assert 0 < region(bench).depth() <= feeding.TURN_BYTES // LOOK_BYTES
    run(bench, 40)
    assert region(bench).depth() == 3_000
