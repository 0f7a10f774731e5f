"""Tables and reports of streams say what the broker that wrote the journal answers itself."""

from collections import Counter

import pytest
from journal_maker import rows_of
from journal_reports import asked, page_of, reports_of
from streams_journal import KEPT, Streams, draft, write_one_anew, write_streams
from streams_kit import DiskBench

from lockkeeper.broker.streams.originals import BODY
from lockkeeper_analytics.reports import REPORTS

OF_THE_JOURNAL = ("garbage", "inventory", "transactions")
"""Reports that tell of records and files, the queues of streams among them."""
DELAYED = "SCHEDULE_TOPIC_XXXX"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return write_streams(tmp_path_factory.mktemp("streams") / "kahadb")


def milliseconds(moment):
    return None if moment is None else round(moment.timestamp() * 1000)


def kept(told):
    """Return the messages that the broker serves, of all streams, by their places."""
    return {
        (stream.name, partition.number, offset): record
        for stream in told.bench.broker.streams
        for partition in stream.partitions
        for offset in range(partition.minimum, partition.maximum)
        if (record := partition.record(offset)) is not None
    }


def lags_found(told):
    """Return what `lag_over_time` says of the moments that the broker was asked at, as `lags`."""
    rows = asked("FROM lag_over_time_report", told.directory)
    assert {row["seconds"] for row in rows} <= {1}
    found = {}
    for row in rows:
        at = milliseconds(row["time"])
        found.setdefault(at, {})[row["consumer_group"], row["stream"]] = row["waiting"]
    return {at: found.get(at // 1000 * 1000, {}) for at in told.lags}


def last_lag(told):
    """Return what each group has to consume of a stream in the end, and the age of the oldest."""
    return {
        (row["consumer_group"], row["stream"]): (row["waiting"], row["oldest_ms"])
        for row in asked("FROM lag_over_time_report", told.directory)
        if milliseconds(row["time"]) == told.bench.now // 1000 * 1000
    }


def properties_read(draft):
    """Return the properties of a message as the table has them: what its body is, is a column."""
    return {name: value for name, value in draft.properties.items() if name != BODY}


def test_messages_are_those_that_readers_of_streams_get(told):
    rows = rows_of(told.directory, table="stream_messages", body="true")
    found = {
        (row["stream"], row["partition"], row["offset"]): (
            row["content"],
            dict(row["properties"]),
            milliseconds(row["stored_at"]),
            milliseconds(row["born_at"]) or 0,
            row["born_host"] or "",
            row["flag"],
            row["reconsumed"],
            row["file_id"] << 32 | row["location"],
            row["record_bytes"],
        )
        for row in rows
    }
    assert len(found) == len(rows)
    expected = {
        place: (
            record.draft.body,
            properties_read(record.draft),
            record.stored_at,
            record.draft.born_at,
            record.draft.born_host,
            record.draft.flag,
            record.draft.reconsumed,
            record.location,
            record.size,
        )
        for place, record in kept(told).items()
    }
    assert {place: found[place] for place in expected} == expected
    # What retention, and who deleted a stream, have ended is in the journal still.
    sent = {place: found[place][:2] for place in told.sent}
    assert sent == {
        place: (draft.body, properties_read(draft)) for place, draft in told.sent.items()
    }
    assert found.keys() == expected.keys() | told.sent.keys()
    assert len(found) > len(expected)


def test_tags_keys_ids_and_texts_are_columns(told):
    columns = "stream,offset,tags,keys,unique_id,body,message_type,written_after"
    rows = rows_of(told.directory, table="stream_messages", columns=columns, destination="press")
    shown = [(row["offset"], row["keys"], row["body"], row["message_type"]) for row in rows]
    assert shown == [
        (0, ["c1", "c2"], "héadline", "text"),
        (1, ["c1", "c2"], '{"a": 1, "b": "01"}', "map"),
    ]
    assert [row["unique_id"] for row in rows] == ["ID:shop-1:1:1:1", "ID:shop-1:1:1:2"]
    (row,) = asked(
        "SELECT tags, keys, unique_id FROM stream_messages "
        "WHERE stream = 'orders' AND partition = 0 AND \"offset\" = 7",
        told.directory,
    )
    assert row == {"tags": "t1", "keys": ["k7", "all"], "unique_id": "u7"}


def test_offsets_are_told_in_the_order_in_which_they_were_written(told):
    rows = rows_of(told.directory, table="stream_offsets")
    found = [
        (
            row["consumer_group"],
            row["stream"],
            row["partition"],
            row["offset"],
            milliseconds(row["written_at"]),
        )
        for row in rows
        if row["offset"] is not None
    ]
    assert found == told.written
    (lock,) = (row for row in rows if row["locked_by"])
    place = ("billing", "orders", 1, "me")
    named = ("consumer_group", "stream", "partition", "locked_by")
    assert tuple(lock[name] for name in named) == place


def test_declarations_are_told(told):
    columns = "stream,partitions,retention_ms,from_topics"
    rows = rows_of(told.directory, table="declared_streams", columns=columns)
    found = {row["stream"]: tuple(row[name] for name in columns.split(",")[1:]) for row in rows}
    assert {name: row[0] for name, row in found.items() if name != "gone"} == {
        each.name: len(each.partitions) for each in told.bench.broker.streams
    }
    assert found["log"] == (1, 8_000, [])
    assert found["press"] == (1, 72 * 3_600_000, ["news"])


def test_groups_are_as_far_as_the_broker_says(told):
    streams = told.bench.broker.streams
    expected = []
    for group in streams.groups:
        for lag in streams.queries.lag(group):
            partition = streams.get(lag.stream).partition(lag.partition)
            expected.append(
                (
                    *(group.name, lag.stream, lag.partition, lag.offset, lag.maximum),
                    lag.messages,
                    partition.stored_at_offset(lag.offset),
                    streams.groups.holder(group.name, (lag.stream, lag.partition)),
                )
            )
    names = ("consumer_group", "stream", "partition", "next_offset", "end_offset", "waiting")
    rows = asked("FROM groups_report", told.directory)
    found = [
        (
            *(row[name] for name in names),
            milliseconds(row["oldest_at"]),
            row["locked_by"],
        )
        for row in rows
    ]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert len(found) == 5
    assert {row["verdict"] for row in rows} == {"ok"}
    progress = {row[:3]: 0 for row in told.written}
    last = dict.fromkeys(progress)
    for *place, offset, at in told.written:
        if last[tuple(place)] != offset:
            last[tuple(place)], progress[tuple(place)] = offset, at
    shown = {tuple(row[name] for name in names[:3]): row["progressed_at"] for row in rows}
    assert {place: milliseconds(at) for place, at in shown.items() if at} == {
        place: progress[place] for place in shown if place in progress
    }


def test_lag_over_time_is_what_the_broker_said_then(told):
    assert lags_found(told) == told.lags
    assert any(len(set(each.values())) > 1 for each in told.lags.values())


@pytest.mark.parametrize("again", [0, 1])
def test_a_stream_that_is_declared_anew_has_nothing_of_the_one_before(tmp_path, again):
    told = write_one_anew(tmp_path, again)
    assert told.lags[max(told.lags)] == {("billing", "orders"): again}
    assert lags_found(told) == told.lags
    assert last_lag(told) == {("billing", "orders"): (again, 7_000 if again else None)}


def test_a_group_that_stands_still_is_behind_until_the_journal_ends(tmp_path):
    bench = DiskBench(tmp_path)
    told = Streams(tmp_path, bench, bench.connect())
    told.send("orders", 0, draft(0), draft(1))
    told.commit("billing", ("orders", 0, 1))
    told.step(3600)
    told.step()
    rows = asked("FROM lag_over_time_report", tmp_path)
    assert {row["waiting"] for row in rows} == {1}
    cell = 1000 * rows[-1]["seconds"]
    assert milliseconds(rows[-1]["time"]) == bench.now // cell * cell


def test_partitions_are_those_of_the_broker(told):
    records = kept(told)
    counts = Counter(place[:2] for place in records)
    expected = [
        (
            *(stream.name, partition.number, partition.minimum, partition.maximum),
            *(counts[stream.name, partition.number], len(stream.partitions)),
        )
        for stream in told.bench.broker.streams
        for partition in stream.partitions
        if stream.name != DELAYED
    ]
    rows = asked("FROM partitions_report", told.directory)
    names = ("stream", "partition", "first_offset", "end_offset", "messages", "of")
    found = [tuple(row[name] for name in names) for row in rows]
    assert found == sorted(expected)
    assert [row["hot"] for row in rows if row["stream"] == "orders"] == [False] * 3


def test_retries_and_dead_letters_are_told_for_each_group(told):
    (row,) = asked("FROM retries_report", told.directory)
    names = ("consumer_group", "retries", "highest", "waiting", "dead_letters", "kept")
    assert tuple(row[name] for name in names) == ("billing", 2, 1, 1, 1, 1)


def test_queues_of_streams_are_in_no_other_report(told):
    reports = reports_of(told.directory)
    for name in REPORTS.keys() - set(OF_THE_JOURNAL):
        assert "Lockkeeper.Stream." not in str(reports[name]), name
    waits = [(row["destination"], row["waiting"]) for row in reports["backlog"]]
    assert waits == [(KEPT.name, 1)]
    assert [row["destination"] for row in reports["totals"]] == [KEPT.name]
    assert [row["waiting"] for row in reports["brokers"]] == [1]
    owners = {each for row in reports["garbage"] for each in row["pinned_by"].split("; ")}
    of_orders = [each for each in owners if each.endswith(" messages of stream://orders")]
    assert sum(int(each.split()[0]) for each in of_orders) == 48 + 5 + 1
    bodies = {(row["destination_kind"], row["destination"]) for row in reports["bodies"]}
    assert ("stream", "orders") in bodies
    page = page_of(reports, told.directory)
    for title in ("Consumer groups", "Lag of groups over time", "Partitions of streams"):
        assert f"<h2>{title}</h2>" in page
    assert "No group stays behind." in page


def test_a_page_of_streams_alone_says_when_that_was(told):
    reports = reports_of(told.directory)
    page = page_of({name: reports[name] for name in ("groups", "lag_over_time")}, told.directory)
    assert "times unknown" not in page


def test_tables_of_messages_leave_streams_out(told):
    for table in ("messages", "acks", "destinations"):
        rows = rows_of(told.directory, table=table, columns="destination")
        assert {row["destination"] for row in rows} <= {KEPT.name, "news"}, table
    assert rows_of(told.directory, table="messages", columns="outcome") == [{"outcome": "pending"}]


def test_a_time_chooses_cells_and_what_was_given_back(told):
    whole = asked("FROM lag_over_time_report", told.directory)
    since = whole[len(whole) // 2]["time"]
    some = asked("FROM lag_over_time_report", told.directory, since=since.isoformat())
    assert some == [row for row in whole if row["time"] >= since]
    assert 0 < len(some) < len(whole)
    later = str(told.bench.now + 60_000)
    assert asked("FROM retries_report", told.directory, since=later) == []
    assert len(asked("FROM groups_report", told.directory, since=later)) == 5


@pytest.mark.parametrize(
    ("destination", "streams"),
    [
        ("orders", {"orders"}),
        ("stream://orders,press", {"orders", "press"}),
        ("queue://orders", set()),
        ("*", {"orders", "log", "press", DELAYED, "gone", "%RETRY%billing", "%DLQ%billing"}),
    ],
)
def test_streams_are_chosen_by_name(told, destination, streams):
    for table in ("stream_messages", "declared_streams"):
        rows = rows_of(told.directory, table=table, columns="stream", destination=destination)
        assert {row["stream"] for row in rows} == streams
    rows = rows_of(told.directory, table="stream_offsets", destination=destination)
    assert {row["stream"] for row in rows} == streams & {"orders", "log", "gone", "%RETRY%billing"}
    shown = asked("FROM partitions_report", told.directory, destination=destination)
    assert {row["stream"] for row in shown} == streams - {DELAYED, "gone"}


def test_a_message_of_another_partition_is_none_of_the_stream(tmp_path):
    bench = DiskBench(tmp_path)
    told = Streams(tmp_path, bench, bench.connect())
    for number in range(3):
        told.send("or-de_rs|2", 0, draft(number))
        told.send("orders", 0, draft(number), draft(number))
    moved, segment = (
        next(each for each in bench.store.streams.segments if each.name.stream == name)
        for name in ("orders", "or-de_rs|2")
    )
    for offset in (1, 3, 4):
        message = told.take_out(moved, offset)
        assert message is not None
        told.put(segment, message)
    names = ("stream", "first_offset", "end_offset", "messages")
    for _ in range(2):
        rows = rows_of(tmp_path, table="stream_messages", destination="or-de_rs|2")
        assert [(row["stream"], row["offset"]) for row in rows] == [
            ("or-de_rs|2", at) for at in range(3)
        ]
        rows = asked("FROM partitions_report", tmp_path)
        found = sorted(tuple(row[name] for name in names) for row in rows if row["messages"])
        assert found == [("or-de_rs|2", 0, 3, 3), ("orders", 0, 6, 3)]
        bench.restart()
