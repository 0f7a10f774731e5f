"""Why a group stands still, where the first thing that comes to mind is not the reason."""

import asyncio

import pytest
from streams_kit import Bench
from test_group_diagnostics import PLACE, House, codes

from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.filters import sql_filter
from lockkeeper.broker.streams.groups import Member, Subscribed
from lockkeeper.server.why import group_answer
from lockkeeper.store.segment import Entry, Segment


@pytest.fixture
def house(bench: Bench) -> House:
    """Return a house whose stream has three messages, and no group."""
    house = House(bench)
    bench.append(house.producer, "S", *"abc")
    return house


def test_what_came_again_waits_where_nobody_ever_read_it(house: House) -> None:
    connection = house.join("one")
    house.streams.send_back(connection, "t", "G", "S", 0, 0, delay_level=1)
    house.bench.settle()
    house.streams.commit_offset("G", "S", 0, 3)
    house.streams.groups.leave("G", "one")
    for _ in range(2):
        house.bench.tick(5_000)
    answer = asyncio.run(group_answer(house.bench.broker, "G"))
    assert [each["reason"] for each in answer["reasons"]] == ["no-member"]
    told = [(each["stream"], each["lagMessages"]) for each in answer["streams"]]
    assert told == [("%RETRY%G", 1), ("S", 0)]


def test_who_began_at_the_first_message_has_the_others_in_hand(house: House) -> None:
    house.join("one")
    for offset in (0, 3):
        house.streams.groups.note_read("G", PLACE, "one", offset)
    assert codes(house.about_partition()) == ["in-hand"]


def test_who_does_not_subscribe_any_more_is_not_the_one_to_read(house: House) -> None:
    connection = house.join("one")
    house.join("two")
    house.streams.groups.note_read("G", PLACE, "one", 0)
    house.streams.groups.heartbeat("G", Member("one", connection, {"T": Subscribed()}))
    house.bench.tick(60_000)
    (reason,) = house.about_partition()
    assert (reason.code, reason.facts["fallsTo"]) == ("not-read", "two")


def test_who_hangs_passes_nothing_over(house: House) -> None:
    many = [Draft(b"x", {"TAGS": "blue"}) for _ in range(17_000)]
    house.bench.append(house.producer, "S", *many, Draft(b"y", {"TAGS": "red"}))
    house.join("one", "red")
    house.streams.groups.note_read("G", PLACE, "one", 0)
    assert codes(house.about_partition()) == ["filtered"]
    house.bench.tick(60_000)
    assert codes(house.about_partition()) == ["not-reading"]


def test_entries_are_fetched_once_however_few_messages_are_wanted(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.bench.append(house.producer, "S", *[Draft(b"x")] * 2_000)
    partition = house.streams.get("S").partition(0)
    fetched = []
    entries = Segment.entries

    def counted(segment: Segment, offset: int, count: int) -> list[Entry]:
        found = entries(segment, offset, count)
        fetched.extend(found)
        return found

    monkeypatch.setattr(Segment, "entries", counted)
    scan = partition.scan(0, 1, 1, sql_filter("colour = 'red'"))
    assert not scan.records
    assert len(fetched) < 3_000
