"""Times that clients may name and few can show: before the year 1, and after 9999."""

import json
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from journal_maker import JournalMaker, rows_of
from test_bulk import one_by_one
from test_sql import printed

from lockkeeper_analytics.facts.shuffled import read_table
from lockkeeper_analytics.reports import REPORTS
from lockkeeper_analytics.results import write_rows
from lockkeeper_analytics.spark.collected import Collected
from lockkeeper_analytics.values import values_of

LAST, FIRST = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
END = "9999-12-31T23:59:59.999Z"
TIMES = {
    0: None,
    1: datetime(1970, 1, 1, 0, 0, 0, 1000, UTC),
    253_402_300_799_999: LAST.replace(microsecond=999_000),
    253_402_300_800_000: LAST,
    9_223_372_036_854_775: LAST,
    2**63 - 1: LAST,
    -62_135_596_800_000: FIRST,
    -62_135_596_800_001: FIRST,
    -(2**63): FIRST,
}


@pytest.fixture
def maker(tmp_path):
    maker = JournalMaker(tmp_path / "journal")
    for number, at in enumerate(TIMES):
        maker.add(number, number, expiration=at)
    return maker.flush()


def test_an_expiry_far_away_is_the_last_time_of_all(maker, monkeypatch):
    rows = rows_of(maker.directory, columns="expires_at")
    assert [row["expires_at"] for row in rows] == list(TIMES.values())
    assert one_by_one(maker.directory, monkeypatch, columns="expires_at") == rows
    rows = rows_of(maker.directory, table="messages", columns="message_id,expires_at")
    rows.sort(key=lambda row: int(row["message_id"].rpartition(":")[2]))
    assert [row["expires_at"] for row in rows] == list(TIMES.values())


@pytest.mark.spark
def test_spark_tells_the_same(maker, spark):
    found = read_table(spark, "messages", [str(maker.directory)], columns="expires_at").toArrow()
    told = [row["expires_at"] for row in rows_of(maker.directory, table="messages")]
    assert sorted(found["expires_at"].to_pylist(), key=str) == sorted(told, key=str)


def test_lines_of_the_flight_recorder_are_told_so_too(maker):
    maker.line("event", 2**53 - 1_795_000_000_000, event="start").flush()
    (event,) = rows_of(maker.directory, table="events")
    assert event["at"] == LAST


@pytest.mark.parametrize("output", ["table", "csv", "json"])
@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("max(expires_at)", END),
        ("max(expires_at) + interval 1000 year", END),
        ("min(expires_at) - interval 1000 year", "0001-01-01T00:00:00.000Z"),
        ("timestamp 'infinity'", "9999-12-31T23:59:59.999"),
        ("date '20000-01-01'", "9999-12-31"),
    ],
)
def test_answers_with_them_are_printed(maker, asked, shown, output):
    text = printed(f"select {asked} as at from messages", maker.directory, "-f", output)
    assert shown in text


def test_they_are_printed_inside_lists_structs_and_maps(maker):
    far = "max(expires_at) + interval 1000 year"
    text = f"select [{far}] as a, {{'b': {far}}} as s, map {{'c': {far}}} as m from messages"
    (line,) = printed(text, maker.directory, "-f", "json").splitlines()
    assert json.loads(line) == {"a": [END], "s": {"b": END}, "m": {"c": END}}


def test_reports_are_written_with_them(tmp_path):
    far = pa.array([2**62, None, 0], pa.timestamp("us", "America/New_York"))
    report = next(iter(REPORTS.values()))
    write_rows(report, Collected(pa.table({"at": far}), 3), tmp_path)
    rows = json.loads((tmp_path / f"{report.name}.json").read_text())["rows"]
    assert [row["at"] for row in rows] == [END, None, "1970-01-01T00:00:00.000Z"]


def test_values_are_as_arrow_has_them_but_far_times():
    assert values_of(pa.array([1, None])) == [1, None]
    assert values_of(pa.array([2**30, None, 0], pa.date32())) == [date.max, None, date(1970, 1, 1)]
    assert values_of(pa.chunked_array([pa.array([-(2**62)], pa.timestamp("s"))])) == [datetime.min]
