"""Tables of streams are read in parts: as a stream, by a query's filters, of a history."""

import shutil
import zlib
from datetime import UTC, datetime

import pytest
from journal_maker import rows_of
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan
from streams_journal import write_streams
from test_pushdown import kept, read
from test_tail import Query

from lockkeeper_analytics.history import keeping
from lockkeeper_analytics.reading.stream_rows import flag_of, inflated, is_compressed
from lockkeeper_analytics.tables.options import parse_options

TABLES = ("stream_messages", "stream_offsets", "declared_streams")


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    return write_streams(tmp_path_factory.mktemp("read") / "kahadb").directory


def moment(seconds):
    return datetime.fromtimestamp(1_700_000_000 + seconds, UTC)


@pytest.mark.parametrize("table", TABLES)
def test_a_stream_brings_each_row_once(journal, tmp_path, table):
    copy = tmp_path / "kahadb"
    copy.mkdir()
    shutil.copy2(journal / "db-1.log", copy)
    query = Query(f"here={copy}", table=table, columns="")
    found = query.step()
    for path in sorted(journal.glob("db-*.log"))[1:]:
        shutil.copy2(path, copy)
        found += query.step() or []
    assert query.step() is None
    for row in found:
        row.pop("written_before", None)
    rows = rows_of(f"here={copy}", table=table)
    assert found == [
        {name: value for name, value in row.items() if name != "written_before"} for row in rows
    ]
    assert len(rows) > 4


@pytest.mark.parametrize("table", TABLES)
def test_a_row_stands_for_what_is_gone(journal, tmp_path, table):
    copy = tmp_path / "kahadb"
    shutil.copytree(journal, copy, ignore=shutil.ignore_patterns("*.index", "*.streams"))
    options = {"table": table, "columns": "", "failOnDataLoss": "false", "holdBytes": "0"}
    query = Query(copy, maxBytesPerTrigger="1", **options)
    rows = query.step()
    (copy / "db-2.log").unlink()
    while (step := query.step()) is not None:
        rows += step
    (lost,) = [row for row in rows if row["file_id"] == 2]
    assert lost["location"] == 0 and lost["stream"] is None
    assert lost.get("offset") is None


CASES = [
    ("stream_messages", [EqualTo(("stream",), "orders")]),
    ("stream_messages", [In(("stream",), ("log", "%RETRY%billing"))]),
    ("stream_messages", [EqualTo(("stream",), "orders"), EqualTo(("partition",), 1)]),
    ("stream_messages", [In(("partition",), (1, 2))]),
    ("stream_messages", [EqualTo(("partition",), 1), In(("partition",), (1, 2))]),
    ("stream_messages", [GreaterThan(("written_after",), moment(9))]),
    ("stream_messages", [EqualTo(("file_id",), 2)]),
    ("stream_messages", [GreaterThan(("offset",), 7)]),
    ("stream_offsets", [EqualTo(("stream",), "orders"), EqualTo(("partition",), 0)]),
    ("stream_offsets", [GreaterThanOrEqual(("written_at",), moment(10))]),
    ("stream_offsets", [LessThan(("written_at",), moment(10))]),
    ("stream_offsets", [EqualTo(("consumer_group",), "audit")]),
    ("declared_streams", [In(("stream",), ("orders", "log"))]),
]


@pytest.mark.parametrize(("table", "filters"), CASES, ids=str)
def test_no_row_that_is_asked_for_is_missing(journal, table, filters):
    everything = read(journal, table, [])[1]
    found = read(journal, table, filters)[1]
    assert kept(found, filters) == kept(everything, filters)
    assert kept(found, filters)


def test_less_is_read(journal):
    filters = [EqualTo(("stream",), "orders"), EqualTo(("partition",), 1)]
    _, rows = read(journal, "stream_messages", filters)
    assert {(row["stream"], row["partition"]) for row in rows} == {("orders", 1)}
    _, rows = read(journal, "stream_offsets", [LessThan(("written_at",), moment(1))])
    assert {row["consumer_group"] for row in rows} == {"billing"}
    pieces, _ = read(journal, "stream_messages", [EqualTo(("file_id",), 2)])
    assert [each.value.file_id for each in pieces] == [2]


@pytest.mark.parametrize("table", TABLES)
def test_a_history_tells_the_same(journal, tmp_path, table):
    keeping.keep(parse_options({"path": f"here={journal}"}), str(tmp_path / "history"))
    folder = tmp_path / "history" / "broker=here"

    def told(directory):
        rows = rows_of(directory, table=table)
        left_out = ("directory", "broker", "written_before")
        return [
            {name: value for name, value in row.items() if name not in left_out} for row in rows
        ]

    assert sorted(told(folder), key=repr) == sorted(told(journal), key=repr)
    assert len(told(folder)) > 4


def test_until_and_since_bound_offsets_by_when_they_were_written(journal):
    whole = rows_of(journal, table="stream_offsets")
    bounds = {"since": moment(6).isoformat(), "until": moment(10).isoformat()}
    some = rows_of(journal, table="stream_offsets", **bounds)
    assert some == [row for row in whole if moment(6) <= row["written_at"] <= moment(10)]
    assert 0 < len(some) < len(whole)


@pytest.mark.parametrize(
    ("flag", "body", "expected"),
    [
        ("0", b"plain", b"plain"),
        ("", b"plain", b"plain"),
        ("1", zlib.compress(b"long" * 9), b"long" * 9),
        (str(1 | 3 << 8), zlib.compress(b"long" * 9), b"long" * 9),
        (str(1 | 1 << 8), b"LZ4", None),
        ("1", b"no zlib", None),
        ("1", zlib.compress(b"long" * 9)[:-3], None),
        ("1", zlib.compress(b"x" * 101), None),
    ],
)
def test_bodies_that_clients_compressed_are_inflated(flag, body, expected):
    assert inflated(body, flag, 100) == expected
    assert is_compressed(flag) is (flag not in ("0", ""))


def test_a_flag_is_a_number_of_32_bits():
    flags = [flag_of({"lockkeeperFlag": each}) for each in ("7", "-7", "x", str(1 << 31), "9" * 30)]
    assert flags == [7, -7, 0, 0, 0]
