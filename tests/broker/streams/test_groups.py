"""Consumer groups: members, how far they are, and who holds which partition."""

import pytest
from streams_kit import START, Bench, DiskBench, only, taken

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.errors import BrokerError, ResourceAllocationError
from lockkeeper.broker.streams.errors import NoSuchStreamError
from lockkeeper.broker.streams.groups import Member, Subscribed, allocate
from lockkeeper.broker.streams.outputs import Locked, MembersChanged
from lockkeeper.broker.streams.settings import (
    Retention,
    StreamLimits,
    StreamSettings,
    StreamsSettings,
)
from lockkeeper.store.memory import MemoryStore

GROUP = "billing"
ORDERS = {"orders": Subscribed("*")}
FIRST, SECOND = ("orders", 0), ("orders", 1)


def join(bench: Bench, client_id: str, connection: Connection | None = None) -> Connection:
    """Let a client join the group; returns its connection."""
    connection = connection or bench.connect()
    bench.broker.streams.groups.heartbeat(GROUP, Member(client_id, connection, ORDERS))
    return connection


def members(bench: Bench) -> list[str]:
    """Return the client ids of the group."""
    group = bench.broker.streams.groups.find(GROUP)
    return [] if group is None else sorted(group.members)


def lock(bench: Bench, connection: Connection, client_id: str, *places: tuple[str, int]) -> object:
    """Ask for locks; returns those that are held."""
    bench.broker.streams.open("orders")
    bench.broker.streams.groups.lock(connection, "l", GROUP, client_id, places)
    bench.settle()
    return only(connection, Locked).partitions


def test_members_are_told_of_each_other(bench: Bench) -> None:
    one = join(bench, "one")
    assert taken(one) == [MembersChanged(GROUP)]
    two = join(bench, "two")
    assert taken(one) == taken(two) == [MembersChanged(GROUP)]
    join(bench, "one", one)
    assert taken(one) == taken(two) == []
    bench.broker.streams.groups.leave(GROUP, "one")
    assert taken(two) == [MembersChanged(GROUP)]
    bench.broker.disconnect(two)
    assert members(bench) == []


def test_members_are_told_of_other_subscriptions(bench: Bench) -> None:
    one, two = join(bench, "one"), join(bench, "two")
    taken(one), taken(two)
    changed = Member("two", two, {"orders": Subscribed("a || b")})
    bench.broker.streams.groups.heartbeat(GROUP, changed)
    assert taken(one) == taken(two) == [MembersChanged(GROUP)]


def test_a_member_that_is_silent_is_out(bench: Bench) -> None:
    one, two = join(bench, "one"), join(bench, "two")
    for _ in range(13):
        bench.tick(10_000)
        join(bench, "one", one)
    assert members(bench) == ["one"]
    assert MembersChanged(GROUP) in taken(one)
    taken(two)


def test_a_member_that_comes_again_replaces_its_former_connection(bench: Bench) -> None:
    former = join(bench, "one")
    later = join(bench, "one")
    bench.broker.disconnect(former)
    assert members(bench) == ["one"]
    bench.broker.disconnect(later)
    assert members(bench) == []


def test_offsets_outlive_the_broker(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.append(client, "orders", *"abcde")
    streams = any_bench.broker.streams
    streams.commit_offset(GROUP, "orders", 0, 2)
    streams.commit_offset("other", "orders", 0, 5)
    streams.commit_offset(GROUP, "orders", 0, 3)
    any_bench.restart()
    group = any_bench.broker.streams.groups.find(GROUP)
    assert group is not None
    assert group.offsets == {FIRST: 3}


def test_what_is_known_is_never_mistaken_for_that_of_a_former_run(any_bench: Bench) -> None:
    """The clock stands still here: what a broker numbers by it comes again."""
    client = any_bench.connect()
    any_bench.append(client, "orders", *"abcde")
    for offset in range(1, 5):
        any_bench.broker.streams.commit_offset(GROUP, "orders", 0, offset)
        any_bench.restart()
        group = any_bench.broker.streams.groups.find(GROUP)
        assert group is not None
        assert group.offsets == {FIRST: offset}


def test_a_crash_takes_back_no_more_than_five_seconds(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    disk_bench.append(client, "orders", *"abcdefgh")
    for offset in range(7):
        disk_bench.broker.streams.commit_offset(GROUP, "orders", 0, offset)
        disk_bench.tick(1_000)
    disk_bench.crash()
    group = disk_bench.broker.streams.groups.find(GROUP)
    assert group is not None
    assert group.offsets[FIRST] >= 2


def test_an_offset_is_never_beyond_the_last_message(bench: Bench) -> None:
    client = bench.connect()
    bench.append(client, "orders", "a")
    bench.broker.streams.commit_offset(GROUP, "orders", 0, 1 << 60)
    group = bench.broker.streams.groups.find(GROUP)
    assert group is not None
    assert group.offsets == {FIRST: 1}
    with pytest.raises(NoSuchStreamError):
        bench.broker.streams.commit_offset(GROUP, "none", 0, 1)


def lags(bench: Bench, name: str = GROUP) -> list[tuple[int, int, int, int]]:
    """Return partition, offset, messages and ms of each lag of a group."""
    group = bench.broker.streams.groups.find(name)
    assert group is not None
    found = bench.broker.streams.queries.lag(group)
    return [(each.partition, each.offset, each.messages, each.milliseconds) for each in found]


def test_lag_counts_all_partitions_of_a_stream_that_a_group_has_begun(bench: Bench) -> None:
    client = bench.connect()
    bench.append(client, "others", "x")
    bench.append(client, "orders", "a", partition=0)
    bench.tick(1_000)
    bench.append(client, "orders", *"bcdef", partition=1)
    bench.tick(2_000)
    bench.broker.streams.commit_offset(GROUP, "orders", 0, 1)
    assert lags(bench) == [(0, 1, 0, 0), (1, 0, 5, 2_000)]


def test_lag_counts_messages_that_are_kept(bench: Bench) -> None:
    client, streams = bench.connect(), bench.broker.streams
    streams.declare("orders", StreamSettings(2, Retention(time=8_000)))
    for _ in range(30):
        bench.append(client, "orders", "a", "b")
        bench.append(client, "orders", "c", partition=1)
        bench.tick(2_000)
    streams.commit_offset(GROUP, "orders", 0, 1)
    first, second = (each for each in streams.get("orders").partitions)
    kept = first.maximum - first.minimum
    assert (first.minimum > 1, second.minimum > 0) == (True, True)
    age = bench.now - (first.stored_at_offset(first.minimum) or 0)
    ages = bench.now - (second.stored_at_offset(second.minimum) or 0)
    assert lags(bench) == [
        (0, first.minimum, kept, age),
        (1, second.minimum, second.maximum - second.minimum, ages),
    ]


def test_lag_is_told_in_messages_and_time(bench: Bench) -> None:
    client = bench.connect()
    for body in "abc":
        bench.append(client, "orders", body)
        bench.tick(1_000)
    bench.broker.streams.commit_offset(GROUP, "orders", 0, 1)
    bench.broker.streams.commit_offset(GROUP, "orders", 1, 0)
    group = bench.broker.streams.groups.find(GROUP)
    assert group is not None
    first, second = bench.broker.streams.queries.lag(group)
    assert (first.messages, first.milliseconds) == (2, 2_000)
    assert (second.messages, second.milliseconds) == (0, 0)


def test_a_group_is_reset_by_time(bench: Bench) -> None:
    client = bench.connect()
    for body in "abcd":
        bench.append(client, "orders", body)
        bench.tick(1_000)
    assert bench.broker.streams.reset_offsets(GROUP, "orders", START + 1_500) == {0: 2, 1: 0}
    group = bench.broker.streams.groups.find(GROUP)
    assert group is not None
    assert group.offsets == {FIRST: 2, SECOND: 0}


def test_a_partition_has_one_holder(any_bench: Bench) -> None:
    one, two = any_bench.connect(), any_bench.connect()
    assert lock(any_bench, one, "one", FIRST, SECOND) == (FIRST, SECOND)
    assert lock(any_bench, two, "two", FIRST) == ()
    any_bench.broker.streams.groups.unlock(GROUP, "two", [FIRST])
    assert any_bench.broker.streams.groups.holder(GROUP, FIRST) == "one"
    any_bench.broker.streams.groups.unlock(GROUP, "one", [FIRST])
    assert lock(any_bench, two, "two", FIRST, SECOND) == (FIRST,)


def test_a_lock_that_is_not_renewed_is_free(bench: Bench) -> None:
    one, two = bench.connect(), bench.connect()
    lock(bench, one, "one", FIRST)
    bench.tick(40_000)
    assert lock(bench, one, "one", FIRST) == (FIRST,)
    bench.tick(59_999)
    assert lock(bench, two, "two", FIRST) == ()
    bench.tick(1)
    assert lock(bench, two, "two", FIRST) == (FIRST,)


def test_locks_outlive_a_crash_until_their_holders_could_renew_them(
    disk_bench: DiskBench,
) -> None:
    one = disk_bench.connect()
    assert lock(disk_bench, one, "one", FIRST) == (FIRST,)
    disk_bench.crash()
    one, two = disk_bench.connect(), disk_bench.connect()
    assert lock(disk_bench, two, "two", FIRST) == ()
    assert lock(disk_bench, one, "one", FIRST) == (FIRST,)


def test_a_lock_is_durable_before_it_is_told(disk_bench: DiskBench) -> None:
    one = disk_bench.connect()
    disk_bench.broker.streams.open("orders")
    disk_bench.broker.streams.groups.lock(one, "l", GROUP, "one", [FIRST])
    assert taken(one) == []
    disk_bench.settle()
    assert only(one, Locked).partitions == (FIRST,)
    disk_bench.broker.streams.groups.lock(one, "l", GROUP, "one", [FIRST])
    assert only(one, Locked).partitions == (FIRST,)


def test_locks_stay_when_a_connection_breaks_and_go_when_a_member_leaves(bench: Bench) -> None:
    one, two = join(bench, "one"), join(bench, "two")
    taken(one), taken(two)
    lock(bench, one, "one", FIRST)
    bench.broker.disconnect(one)
    taken(two)
    assert lock(bench, two, "two", FIRST) == ()
    one = join(bench, "one")
    bench.broker.streams.groups.leave(GROUP, "one")
    taken(two)
    assert lock(bench, two, "two", FIRST) == (FIRST,)


def test_a_group_is_deleted_once_nobody_is_in_it(any_bench: Bench) -> None:
    client = join(any_bench, "one")
    any_bench.append(any_bench.connect(), "orders", "a")
    any_bench.broker.streams.commit_offset(GROUP, "orders", 0, 1)
    with pytest.raises(BrokerError, match="1 members"):
        any_bench.broker.streams.groups.delete(GROUP)
    any_bench.broker.disconnect(client)
    any_bench.broker.streams.groups.write()
    assert any_bench.broker.streams.groups.delete(GROUP)
    assert not any_bench.broker.streams.groups.delete(GROUP)
    any_bench.restart()
    assert any_bench.broker.streams.groups.find(GROUP) is None


def test_limits_of_groups_are_named(bench: Bench) -> None:
    bench = Bench(MemoryStore(), StreamsSettings(limits=StreamLimits(groups=1, members=1)))
    join(bench, "one")
    with pytest.raises(ResourceAllocationError, match=r"limits\.members"):
        join(bench, "two")
    with pytest.raises(ResourceAllocationError, match=r"limits\.groups"):
        bench.broker.streams.groups.open("other")


def test_partitions_are_shared_out_evenly() -> None:
    assert allocate(["b", "a", "c"], 8) == {"a": [0, 1, 2], "b": [3, 4, 5], "c": [6, 7]}
    assert allocate(["b", "a"], 1) == {"a": [0], "b": []}
    assert allocate([], 4) == {}


def test_a_lock_asked_for_twice_is_not_told_before_it_is_durable(disk_bench: DiskBench) -> None:
    client, groups = disk_bench.connect(), disk_bench.broker.streams.groups
    disk_bench.append(client, "orders", "a")
    groups.lock(client, 1, "g", "one", [("orders", 0)])
    groups.lock(client, 2, "g", "one", [("orders", 0)])
    told = [each for each in taken(client) if isinstance(each, Locked) and each.partitions]
    disk_bench.crash()
    other = disk_bench.connect()
    disk_bench.broker.streams.groups.lock(other, 3, "g", "two", [("orders", 0)])
    disk_bench.settle()
    assert not (told and only(other, Locked).partitions), "two owners were told"


def test_a_lock_that_is_renewed_is_not_given_to_another(bench: Bench) -> None:
    one, two, groups = bench.connect(), bench.connect(), bench.broker.streams.groups
    bench.append(one, "orders", "a")
    groups.heartbeat("g", Member("one", one, {}))
    for _ in range(7):
        groups.lock(one, 1, "g", "one", [("orders", 0)])
        bench.settle()
        bench.tick(20_000)
        renewed = [each for each in taken(one) if isinstance(each, Locked)]
        assert renewed[0].partitions
    # 20 s ago it was told that the lock is its own for 60 s.
    groups.lock(two, 2, "g", "two", [("orders", 0)])
    bench.settle()
    assert only(two, Locked).partitions == ()
