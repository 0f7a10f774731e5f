"""Why a consumer group has not consumed everything: every reason, in words."""

import asyncio
from typing import Any

import pytest
from streams_kit import START, Bench

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.diagnostics.groups import (
    delayed_retries,
    streams_of,
    why_group,
    why_stream,
)
from lockkeeper.broker.diagnostics.partitions import SILENT_MS, why_partition
from lockkeeper.broker.diagnostics.reason import Reason
from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.groups import Group, Member, Model, Subscribed
from lockkeeper.broker.streams.settings import Retention, StreamSettings
from lockkeeper.server.why import group_answer

PLACE = ("S", 0)


class House:
    """A group `G` of the stream `S`, its members, and a producer."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.streams = bench.broker.streams
        self.streams.declare("S", StreamSettings(partitions=1))
        self.producer = bench.connect()

    @property
    def group(self) -> Group:
        group = self.streams.groups.find("G")
        assert group is not None
        return group

    def join(self, name: str, expression: str = "*", **others: Any) -> Connection:
        """Have a member come, or come again."""
        connection = self.bench.connect()
        self.beat(name, connection, expression, **others)
        return connection

    def beat(self, name: str, connection: Connection, expression: str = "*", **others: Any) -> None:
        """Hear of a member that subscribes to S."""
        subscriptions = {"S": Subscribed(expression, others.pop("is_sql", False))}
        self.streams.groups.heartbeat("G", Member(name, connection, subscriptions, **others))

    def about_group(self) -> list[Reason]:
        lags = self.streams.queries.lag(self.group)
        messages = sum(each.messages for each in lags)
        delayed = [*delayed_retries(self.bench.broker, self.group)]
        return why_group(self.bench.broker, self.group, messages, delayed)

    def about_stream(self, name: str = "S") -> list[Reason]:
        return why_stream(self.bench.broker, self.group, name)

    def about_partition(self, number: int = 0) -> list[Reason]:
        partition = self.streams.get("S").partition(number)
        return why_partition(self.bench.broker, self.group, partition)


@pytest.fixture
def house(bench: Bench) -> House:
    """Return a house whose group begins at the first of three messages."""
    house = House(bench)
    bench.append(
        house.producer, "S", *(Draft(each, {"TAGS": "red"}) for each in (b"a", b"b", b"c"))
    )
    house.streams.commit_offset("G", "S", 0, 0)
    return house


def codes(reasons: list[Reason]) -> list[str]:
    """Return the codes of reasons, each of which has its sentences too."""
    assert all(reason.text and reason.way_out for reason in reasons)
    return [reason.code for reason in reasons]


def test_a_group_that_has_everything_needs_no_reason(house: House) -> None:
    house.join("one")
    house.streams.commit_offset("G", "S", 0, 3)
    assert house.about_group() == house.about_stream() == house.about_partition() == []


def test_nobody_is_in_the_group(house: House) -> None:
    assert codes(house.about_group()) == ["no-member"]
    assert house.about_stream() == house.about_partition() == []


def test_members_consume_other_streams(house: House) -> None:
    connection = house.bench.connect()
    member = Member("one", connection, {"unheard-of": Subscribed()})
    house.streams.groups.heartbeat("G", member)
    assert streams_of(house.bench.broker, house.group) == ["S", "unheard-of"]
    assert house.about_group() == []
    assert codes(house.about_stream()) == ["not-subscribed"]
    (reason,) = house.about_stream("unheard-of")
    assert (reason.code, reason.facts["clientIds"]) == ("no-stream", ["one"])


def test_members_subscribe_to_different_things(house: House) -> None:
    house.join("one", "red")
    house.join("two", "blue")
    house.streams.groups.heartbeat("G", Member("three", house.bench.connect(), {}))
    (reason,) = house.about_stream()
    assert reason.code == "subscriptions-differ"
    assert "blue, red; 1 member not to this stream" in reason.text


def test_members_are_broadcast_to(house: House) -> None:
    house.join("one", model=Model.BROADCASTING)
    (reason,) = house.about_group()
    assert (reason.code, reason.facts["clientIds"]) == ("broadcasting", ["one"])


def test_nobody_reads_a_partition(house: House) -> None:
    house.join("one")
    (reason,) = house.about_partition()
    assert (reason.code, reason.facts["fallsTo"]) == ("not-read", "one")
    house.streams.groups.note_read("G", PLACE, "somebody who left", 0)
    assert codes(house.about_partition()) == ["not-read"]


def test_a_member_reads_a_partition_and_no_more(house: House) -> None:
    house.join("one")
    house.streams.groups.note_read("G", PLACE, "one", 0)
    assert codes(house.about_partition()) == ["next"]
    house.bench.tick(30_000)
    (reason,) = house.about_partition()
    assert (reason.code, reason.facts["since"]) == ("not-reading", house.bench.now - 30_000)
    assert "30 s" in reason.text


def test_a_member_does_not_come_to_an_end_with_what_it_read(house: House) -> None:
    house.join("one")
    house.bench.tick(1_000)
    house.streams.commit_offset("G", "S", 0, 1)
    house.bench.tick(9_000)
    house.streams.groups.note_read("G", PLACE, "one", 3)
    (reason,) = house.about_partition()
    assert (reason.code, reason.facts["held"]) == ("in-hand", 2)
    assert reason.facts["since"] == START + 1_000


def test_a_member_begins_at_the_end(bench: Bench) -> None:
    house = House(bench)
    bench.append(house.producer, "S", "before")
    house.join("one")
    house.streams.groups.note_read("G", PLACE, "one", 1)
    (reason,) = house.about_partition()
    assert (reason.code, reason.facts["askedFor"]) == ("begins-later", 1)


def test_a_member_reads_beyond_the_end(house: House) -> None:
    house.join("one")
    house.streams.groups.note_read("G", PLACE, "one", 99)
    (reason,) = house.about_partition()
    assert (reason.code, reason.facts["askedFor"]) == ("beyond-end", 99)


@pytest.mark.parametrize(
    ("expression", "is_sql", "code"),
    [
        ("red || blue", False, "next"),
        ("blue", False, "filtered"),
        ("TAGS = 'blue'", True, "filtered"),
        ("TAGS = 'red'", True, "next"),
        ("TAGS =", True, "filter-invalid"),
    ],
)
def test_a_subscription_lets_nothing_pass(
    house: House, expression: str, is_sql: bool, code: str
) -> None:
    house.join("one", expression, is_sql=is_sql)
    house.streams.groups.note_read("G", PLACE, "one", 0)
    (reason,) = house.about_partition()
    assert reason.code == code
    assert code == "next" or expression in reason.text


def test_the_lock_is_held_by_somebody_who_is_gone(house: House) -> None:
    gone = house.join("one")
    house.join("two")
    house.streams.groups.lock(gone, "tag", "G", "one", [PLACE])
    house.bench.settle()
    assert codes(house.about_partition()) == ["not-read"]
    house.streams.forget(gone)
    house.bench.tick(20_000)
    (reason,) = house.about_partition()
    assert (reason.code, reason.facts["clientId"]) == ("locked-by-gone", "one")
    assert reason.facts["until"] == house.bench.now + 40_000
    assert "40 s" in reason.way_out
    house.bench.tick(40_000)
    assert codes(house.about_partition()) == ["not-read"]


def test_the_lock_is_held_by_somebody_who_is_silent(house: House) -> None:
    silent = house.join("one")
    house.bench.tick(1)
    house.streams.groups.lock(silent, "tag", "G", "one", [PLACE])
    house.bench.settle()
    house.bench.tick(SILENT_MS - 1)
    (reason,) = house.about_partition()
    assert reason.code == "not-read", "who locks is heard of"
    house.group.locks[PLACE].until += 10_000
    house.bench.tick(1)
    (reason,) = house.about_partition()
    assert (reason.code, reason.facts["clientId"]) == ("locked-by-silent", "one")
    assert reason.facts["since"] == house.bench.now - SILENT_MS


def test_retention_was_quicker(bench: Bench) -> None:
    house = House(bench)
    house.streams.declare("S", StreamSettings(1, Retention(time=60_000)))
    bench.append(house.producer, "S", "a", "b")
    house.streams.commit_offset("G", "S", 0, 0)
    for _ in range(20):
        bench.tick(10_000)
        bench.append(house.producer, "S", "c")
    minimum, _maximum = house.streams.queries.offsets("S", 0)
    assert minimum > 2
    (reason,) = house.about_partition()
    assert (reason.code, reason.facts["lost"]) == ("retention", minimum)


def test_retries_and_dead_letters_are_told_of(house: House) -> None:
    member = house.join("one")
    house.streams.send_back(member, "tag", "G", "S", 0, 0, delay_level=3)
    house.streams.send_back(member, "tag", "G", "S", 0, 1, delay_level=2)
    house.streams.send_back(member, "tag", "OTHER", "S", 0, 1, delay_level=1)
    house.streams.send_back(member, "tag", "G", "S", 0, 2, delay_level=-1)
    house.bench.settle()
    house.streams.commit_offset("G", "S", 0, 3)
    pending, dead = house.about_group()
    assert (pending.code, pending.facts["messages"], pending.facts["isAll"]) == (
        "retry-pending",
        2,
        True,
    )
    assert pending.facts["dueAt"] == house.bench.now + 5_000
    assert (dead.code, dead.facts["messages"]) == ("dead-letters", 1)
    house.bench.tick(5_000)
    house.bench.settle()
    (pending, _) = house.about_group()
    assert pending.facts["messages"] == 1
    house.bench.tick(5_000)
    house.bench.settle()
    assert codes(house.about_group()) == ["dead-letters"]


def test_the_broker_itself_is_the_member_of_a_feed(house: House) -> None:
    house.streams.commit_offset("%QUEUE%billing", "S", 0, 0)
    group = house.streams.groups.find("%QUEUE%billing")
    assert group is not None
    (reason,) = why_group(house.bench.broker, group, 3, ())
    assert (reason.code, reason.facts["queue"]) == ("feed", "billing")


def test_a_stream_that_is_made_again_has_no_readers_yet(house: House) -> None:
    house.join("one")
    house.streams.groups.note_read("G", PLACE, "one", 3)
    house.streams.remove("S")
    house.streams.declare("S", StreamSettings(partitions=1))
    house.bench.append(house.producer, "S", "new")
    assert codes(house.about_partition()) == ["not-read"]


def test_others_have_their_turn_between_the_levels_of_retries(house: House) -> None:
    house.streams.send_back(house.producer, "t", "G", "S", 0, 0, delay_level=1)
    house.bench.settle()
    levels = house.streams.get("SCHEDULE_TOPIC_XXXX").partitions

    async def turns() -> int:
        """Return how often others had their turn until there was an answer."""
        asked = asyncio.ensure_future(group_answer(house.bench.broker, "G"))
        count = 0
        while not asked.done():
            await asyncio.sleep(0)
            count += 1
        assert [each["reason"] for each in asked.result()["reasons"]][-1] == "retry-pending"
        return count

    assert asyncio.run(turns()) > len(levels)
