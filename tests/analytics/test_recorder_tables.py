"""The flight recorder's lines as tables: events and statistics."""

import json

import pytest
from journal_maker import START, JournalMaker, rows_of


@pytest.fixture
def maker(tmp_path):
    return JournalMaker(tmp_path / "journal")


def milliseconds(moment):
    return None if moment is None else round(moment.timestamp() * 1000) - START


def test_events_tell_who_did_what(maker):
    maker.line("event", 5, event="takeover", broker="b", replica="b-1", epoch=4, cause="x")
    maker.line("event", 6, event="configuration", broker="b", hash="00ff")
    maker.line(
        "event",
        7,
        event="consumerOpened",
        broker="b",
        connection="ID:c:1",
        clientId="ann",
        user="clerk",
        consumer="ID:c:1:1:1",
        destination="queue://ORDERS",
        selector="size > 3",
        prefetch=10,
    )
    maker.line("event", 8, event="leftOut", count=12).clock(9).flush()
    takeover, configuration, opened, left_out = rows_of(maker.directory, table="events")
    assert (takeover["event"], takeover["replica"], takeover["cause"]) == ("takeover", "b-1", "x")
    assert (milliseconds(takeover["at"]), takeover["epoch"]) == (5, 4)
    assert configuration["configuration"] == "00ff"
    assert (opened["client_id"], opened["user_name"], opened["prefetch"]) == ("ann", "clerk", 10)
    assert (opened["consumer_id"], opened["selector"]) == ("ID:c:1:1:1", "size > 3")
    assert left_out["left_out"] == 12
    assert json.loads(left_out["line"])["t"] == "event"


def test_events_of_other_destinations_and_times_are_left_out(maker):
    for at, name in enumerate(("ORDERS", "NEWS", "ORDERS,NEWS")):
        maker.line("event", at, event="consumerOpened", destination=f"queue://{name}")
    maker.line("event", 9, event="stop").flush()

    def times(**options):
        rows = rows_of(maker.directory, table="events", **options)
        return [milliseconds(row["at"]) for row in rows]

    assert times(destination="NEWS") == [1, 2, 9]
    assert times(since=str(START + 2)) == [2, 9]
    assert times(until=str(START + 1)) == [0, 1]


def test_what_a_line_says_of_another_shape_is_null(maker):
    maker.line("event", 0, event=7, prefetch="many", clientId=["a"], epoch=True, destination="x://")
    maker.line(
        "stats", 0, destinations={"queue://A": 3, "nowhere": {}, "queue://B": {"depth": "x"}}
    )
    maker.line("stats", 0, destinations=[1])
    maker.line("event", 0, event="x", epoch=10**30, destination="queue://").flush()
    (event, other) = rows_of(maker.directory, table="events")
    assert (other["epoch"], other["destination"]) == (None, "queue://")
    assert len(rows_of(maker.directory, table="events", destination="A")) == 0
    assert [event[name] for name in ("event", "prefetch", "client_id", "epoch")] == [None] * 4
    (row,) = rows_of(maker.directory, table="statistics")
    assert (row["destination"], row["depth"], row["latency_le"]) == ("B", None, None)


def test_statistics_have_a_row_for_each_destination_of_a_line(maker):
    maker.statistics(10, enqueued=5, depth=2, latency=[1, 2]).roll()
    one = {"enqueued": 1, "neverWritten": 3, "deadLettered": 2}
    maker.line("stats", 20, broker="b", destinations={"topic://NEWS": one, "queue://A": one})
    maker.flush()
    orders, news, other = rows_of(maker.directory, table="statistics")
    assert (orders["enqueued"], orders["depth"], orders["latency_count"]) == (5, 2, [1, 2])
    assert orders["latency_le"] == [0, 1, 3, 7, 15]
    assert (news["destination_kind"], news["destination"], news["never_written"]) == (
        "topic",
        "NEWS",
        3,
    )
    assert (other["dead_lettered"], milliseconds(other["at"]), other["file_id"]) == (2, 20, 2)
    names = rows_of(maker.directory, table="statistics", destination="topic://>")
    assert [row["destination"] for row in names] == ["NEWS"]
