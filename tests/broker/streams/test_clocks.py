"""Clocks of people that are set: how long something waits or is kept does not go by them."""

import pytest
from streams_kit import START, Bench, DiskBench, taken

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.outputs import CheckTransaction
from lockkeeper.broker.streams.settings import Retention, StreamSettings

SECOND, HOUR = 1_000, 3_600_000


class Clocks:
    """A bench whose clock of people is `ahead` of the one that only passes."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.ahead = 0

    def set(self, ahead: int) -> None:
        self.ahead = ahead
        self.pass_time(0)

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass, in some turns."""
        bench = self.bench
        bench.now += milliseconds
        for _ in range(3):
            bench.broker.tick(bench.now + self.ahead, bench.now)
            bench.broker.settle(bench.store.flush())
        bench.broker.tick(bench.now + self.ahead, bench.now)

    def append(self, client: Connection, body: str, **options: int) -> None:
        draft = Draft(body.encode())
        self.bench.broker.streams.append(client, body, "orders", 0, [draft], **options)
        self.pass_time(0)
        taken(client)


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_delays_go_by_time_that_passes(bench: Bench, ahead: int) -> None:
    client, clocks = bench.connect(), Clocks(bench)
    clocks.set(ahead)
    clocks.append(client, "a", delay_level=3)
    clocks.set(0)
    clocks.append(client, "b", delay_level=3)
    clocks.pass_time(5 * SECOND)
    clocks.set(-ahead)
    clocks.append(client, "c", delay_level=3)
    clocks.pass_time(5 * SECOND - 1)
    assert bench.bodies(client, "orders") == []
    clocks.pass_time(1)
    assert bench.bodies(client, "orders") == ["a", "b"]
    clocks.pass_time(5 * SECOND)
    assert bench.bodies(client, "orders") == ["a", "b", "c"]


def test_a_message_with_a_time_of_its_own_is_never_early(bench: Bench) -> None:
    client, clocks = bench.connect(), Clocks(bench)
    clocks.append(client, "a", deliver_at=START + 10 * SECOND)
    clocks.set(-HOUR)
    for _ in range(20):
        clocks.pass_time(SECOND)
    assert bench.bodies(client, "orders") == []
    clocks.set(0)
    for _ in range(3_600):
        clocks.pass_time(SECOND)
    assert bench.bodies(client, "orders") == ["a"]


def test_delayed_messages_wait_a_level_more_at_most_after_a_start(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    disk_bench.now += HOUR
    disk_bench.tick()
    disk_bench.append(client, "orders", "a", delay_level=3)
    disk_bench.tick(4 * SECOND)
    # The next machine's clock is right.
    disk_bench.now -= HOUR
    disk_bench.crash()
    client = disk_bench.connect()
    disk_bench.append(client, "orders", "b", delay_level=3)
    disk_bench.tick(10 * SECOND - 1)
    assert disk_bench.bodies(client, "orders") == []
    disk_bench.tick(1)
    disk_bench.tick(1)
    assert disk_bench.bodies(client, "orders") == ["a", "b"]


def test_delayed_messages_count_the_time_in_which_no_broker_was(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    disk_bench.append(client, "orders", "a", delay_level=3)
    disk_bench.now += 8 * SECOND
    disk_bench.crash()
    client = disk_bench.connect()
    disk_bench.tick(2 * SECOND - 1)
    assert disk_bench.bodies(client, "orders") == []
    disk_bench.tick(1)
    disk_bench.tick(1)
    assert disk_bench.bodies(client, "orders") == ["a"]


def keep(clocks: Clocks, client: Connection, seconds: int) -> list[str]:
    """Send a message each second; returns what is kept in the end."""
    for number in range(seconds):
        clocks.append(client, f"{number}")
        clocks.pass_time(SECOND)
    return clocks.bench.bodies(client, "orders", offset=kept_from(clocks.bench), count=999)


def kept_from(bench: Bench) -> int:
    return bench.broker.streams.get("orders").partition(0).minimum


@pytest.mark.parametrize("ahead", [100 * HOUR, -100 * HOUR])
def test_retention_goes_by_time_that_passes(bench: Bench, ahead: int) -> None:
    client, clocks = bench.connect(), Clocks(bench)
    bench.broker.streams.declare("orders", StreamSettings(1, Retention(time=40 * SECOND)))
    assert len(keep(clocks, client, 30)) == 30
    clocks.set(ahead)
    clocks.pass_time(0)
    keep(clocks, client, 5)
    # Nothing that is younger ends, and what was sent meanwhile does not stay for 100 hours.
    assert kept_from(bench) == 0
    clocks.set(0)
    keep(clocks, client, 100)
    assert 135 - 60 <= kept_from(bench) <= 135 - 40


def test_what_the_journal_dates_later_is_kept_no_longer_than_from_the_start(
    disk_bench: DiskBench,
) -> None:
    client = disk_bench.connect()
    settings = StreamSettings(1, Retention(time=40 * SECOND))
    disk_bench.broker.streams.declare("orders", settings)
    disk_bench.now += HOUR
    disk_bench.tick()
    for _ in range(3):
        disk_bench.append(client, "orders", "a")
        disk_bench.tick(6 * SECOND)
    disk_bench.now -= HOUR
    disk_bench.crash()
    client = disk_bench.connect()
    disk_bench.tick(6 * SECOND)
    disk_bench.append(client, "orders", "b")
    disk_bench.tick(30 * SECOND)
    assert kept_from(disk_bench) == 0
    disk_bench.tick(11 * SECOND)
    disk_bench.tick(11 * SECOND)
    assert disk_bench.bodies(client, "orders", offset=kept_from(disk_bench)) == ["b"]


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_questions_about_transactions_go_by_time_that_passes(bench: Bench, ahead: int) -> None:
    client, clocks = bench.connect(), Clocks(bench)
    clocks.append(client, "a")
    bench.broker.streams.producer_heartbeat(client, "p", "producer")
    bench.broker.streams.begin_transaction(client, 1, "p", "orders", 0, Draft(b"x"))
    clocks.set(ahead)
    taken(client)
    clocks.pass_time(6 * SECOND - 1)
    assert taken(client) == []
    clocks.pass_time(1)
    clocks.set(-ahead)
    (question,) = taken(client)
    assert isinstance(question, CheckTransaction)
