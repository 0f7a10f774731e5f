"""A history as a Delta table: each step is a commit, whoever reads it or puts files together."""

import json
import re
import sys
from datetime import date

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from journal_maker import JournalMaker, message_id, rows_of
from journal_reports import asked as journal_asked
from journal_two_runs import write_two_runs
from test_history import DAY, SUMMED_UP, TOLD, told

from lockkeeper.journal.batch import CONTROL_START
from lockkeeper_analytics.errors import AnalyticsError, OptionError
from lockkeeper_analytics.history import deltas, keeping
from lockkeeper_analytics.history.deltas import DeltaPlace
from lockkeeper_analytics.history.formats import Format
from lockkeeper_analytics.reading.histories import kept_files
from lockkeeper_analytics.tables.options import parse_options

COLUMNS = keeping.TABLE.arrow(keeping.COLUMNS)


@pytest.fixture
def maker(tmp_path):
    """Three days, on the second of which the next file begins; the last file goes on."""
    maker = JournalMaker(tmp_path / "journal")
    maker.add(1, 0).clock(0).flush().add(2, DAY).clock(DAY).flush()
    return maker.roll().remove(1).flush().add(3, 2 * DAY).clock(2 * DAY).flush()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "history"


def keep(folder, directory, form=Format.DELTA):
    return keeping.keep(parse_options({"path": str(directory)}), str(folder), form)


def kept(folder):
    """Return the rows of the table in journal order, as anybody reads it."""
    table = DeltaTable(folder).to_pyarrow_table()
    return table.sort_by([("file_id", "ascending"), ("offset", "ascending")]).to_pylist()


def wanted(directory):
    return rows_of(directory, columns=",".join(keeping.COLUMNS))


def places(rows):
    return [(row["file_id"], row["offset"]) for row in rows]


def test_every_record_is_there_once_by_broker_and_day(maker, folder):
    assert keep(folder, f"north={maker.directory}") == (7, 0)
    rows = kept(folder)
    assert [{name: row[name] for name in keeping.COLUMNS} for row in rows] == wanted(
        maker.directory
    )
    assert keep(folder, f"north={maker.directory}", None) == (0, 0)
    table = DeltaTable(folder)
    assert sorted(table.partitions(), key=lambda each: each["day"]) == [
        {"broker": "north", "day": f"2026-11-{day}"} for day in (18, 19, 20)
    ]
    records = table.to_pyarrow_dataset()
    text = "SELECT broker, day, count(*) FROM records GROUP BY ALL ORDER BY day"
    assert duckdb.sql(text).fetchall() == [
        ("north", date(2026, 11, day), count) for day, count in ((18, 2), (19, 3), (20, 2))
    ]
    assert list(table.to_pandas()["broker"]) == ["north"] * len(records.to_table())


def test_each_step_is_a_commit_that_says_where_the_next_one_begins(maker, folder, monkeypatch):
    monkeypatch.setattr(keeping, "STEP_BYTES", 1)
    keep(folder, f"north={maker.directory}")
    created, *steps = reversed(DeltaTable(folder).history())
    assert created["operation"] == "CREATE TABLE"
    assert {step["lockkeeper.broker"] for step in steps} == {"north"}
    following = [step["lockkeeper.next"] for step in steps]
    assert [(each["file"], each["position"] > 0) for each in following] == [
        (1, True),
        (2, False),
        (2, True),
        (2, True),
    ]
    (note,) = (folder / "_lockkeeper" / "broker=north").iterdir()
    assert json.loads(note.read_text()) == {"schema": "1", **following[-1]}
    assert int(note.stem, 16) == DeltaTable(folder).transaction_version("lockkeeper.keep/north")


@pytest.mark.parametrize("step_bytes", [1, keeping.STEP_BYTES])
def test_a_run_that_ends_anywhere_loses_no_record_and_doubles_none(
    maker, tmp_path, monkeypatch, step_bytes
):
    monkeypatch.setattr(keeping, "STEP_BYTES", step_bytes)
    done = []

    def ending(work):
        def does(*given, **named):
            if len(done) == left:
                raise KeyboardInterrupt
            done.append(work)
            return work(*given, **named)

        return does

    expected = places(wanted(maker.directory))
    is_over = False
    left = 0
    while not is_over:
        folder = tmp_path / f"history-{left}"
        done.clear()
        with monkeypatch.context() as patch:
            for name in ("write_rows", "write_file", "remove_file"):
                patch.setattr(deltas, name, ending(getattr(deltas, name)))
            commit = DeltaPlace._commit
            patch.setattr(DeltaPlace, "_commit", ending(commit))
            try:
                keep(folder, maker.directory)
            except KeyboardInterrupt:
                commits = done.count(commit)
                there = places(kept(folder))
                assert there == expected[: len(there)]
                assert len(there) == ((0, 2, 4, 5, 7) if step_bytes == 1 else (0, 7))[commits]
            else:
                is_over = True
        keep(folder, maker.directory)
        assert places(kept(folder)) == expected
        assert len(list((folder / "_lockkeeper" / "broker=journal").iterdir())) <= 2
        left += 1
    assert left > 5


def test_of_two_runs_at_once_one_is_refused_and_nothing_is_doubled(maker, folder):
    name = str(maker.directory)
    options = parse_options({"path": name, "columns": ",".join(keeping.COLUMNS)})
    first, second = (DeltaPlace(str(folder), "journal", COLUMNS) for _ in range(2))
    other = DeltaPlace(str(folder), "other", COLUMNS)
    for place in (first, other):
        assert keeping._Appending(name, place, options).run().records == 7
    with pytest.raises(AnalyticsError, match=r"broker=journal: another run writes to it"):
        keeping._Appending(name, second, options).run()
    third = DeltaPlace(str(folder), "journal", COLUMNS)
    maker.add(4, 2 * DAY).flush()
    keep(folder, maker.directory)
    maker.add(5, 2 * DAY).flush()
    with pytest.raises(AnalyticsError, match=r"broker=journal: another run writes to it"):
        keeping._Appending(name, third, options).run()
    rows = kept(folder)
    assert len(rows) == 15
    assert places([row for row in rows if row["broker"] == "journal"]) == places(
        wanted(maker.directory)[:-1]
    )
    assert keep(folder, maker.directory) == (1, 0)


def test_a_question_is_answered_from_the_table_as_from_the_journal(maker, folder):
    keep(folder, f"north={maker.directory}")
    text = "SELECT broker, message_id, outcome FROM messages ORDER BY message_id"
    found = journal_asked(text, folder / "broker=north")
    assert found == journal_asked(text.replace("broker", "'north' AS broker"), maker.directory)
    assert [row["outcome"] for row in found] == ["acknowledged", "pending", "pending"]


@pytest.mark.thorough
def test_tables_say_of_a_history_what_they_say_of_activemqs_journal(folder, golden):
    directory = golden / "amq-5.17.2-crash"
    keep(folder, f"north={directory}")
    assert told(folder / "broker=north", "records", *TOLD) == told(directory, "records", *TOLD)


@pytest.mark.thorough
def test_files_may_be_put_together_between_two_runs(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(keeping, "STEP_BYTES", 1000)
    whole, live = tmp_path / "whole", tmp_path / "live"
    write_two_runs(whole)
    live.mkdir()
    for path in sorted(whole.glob("db-*.log")):
        data = path.read_bytes()
        for end in (data.index(CONTROL_START, len(data) // 2), len(data)):
            (live / path.name).write_bytes(data[:end])
            keep(folder, f"b={live}")
        table = DeltaTable(folder)
        table.optimize.compact()
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert len(kept_files(str(folder / "broker=b"))) == len(DeltaTable(folder).partitions())
    names = (*TOLD, *SUMMED_UP)
    assert told(folder / "broker=b", *names) == told(whole, *names)


def test_files_that_were_put_together_are_known_when_one_was_compacted(maker, folder):
    keep(folder, f"north={maker.directory}")
    maker.add(4, 2 * DAY + 1).flush().roll().add(5, 3 * DAY).clock(3 * DAY).flush()
    DeltaTable(folder).optimize.compact()
    maker.add(3, 2 * DAY).add(4, 2 * DAY + 1).compact(2)
    keep(folder, f"north={maker.directory}")
    rows = rows_of(folder / "broker=north")
    adds = [row["message_id"] for row in rows if row["kind"] == "add"]
    assert sorted(adds) == [message_id(number) for number in range(1, 6)]


def test_days_may_be_deleted_and_old_files_removed(maker, folder):
    keep(folder, maker.directory)
    table = DeltaTable(folder)
    table.delete("day < '2026-11-20'")
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert len(list(folder.rglob("*.parquet"))) == 1
    assert keep(folder, maker.directory) == (0, 0)
    assert len(rows_of(folder / "broker=journal")) == 2


def test_names_of_brokers_may_be_anything(tmp_path, folder):
    for number, name in enumerate(("a b=c", "50%", "é", "a+b"), 1):
        maker = JournalMaker(tmp_path / name).add(number, 0).clock(0).flush()
        keep(folder, maker.directory)
    found = {
        rows_of(place)[0]["broker"]: rows_of(place)[0]["message_id"]
        for place in folder.glob("broker=*")
    }
    assert found == {"a b=c": message_id(1), "50%": message_id(2), "é": message_id(3),
                     "a+b": message_id(4)}  # fmt: skip
    assert {row["broker"]: row["message_id"] for row in kept(folder) if row["message_id"]} == found


def test_columns_that_come_later_are_added_to_the_table(maker, folder, monkeypatch):
    few = tuple(name for name in keeping.COLUMNS if name != "priority")
    with monkeypatch.context() as patch:
        patch.setattr(keeping, "COLUMNS", few)
        keep(folder, maker.directory)
    maker.add(4, 2 * DAY).flush()
    keep(folder, maker.directory)
    assert [row["priority"] for row in kept(folder) if row["kind"] == "add"] == [None] * 3 + [4]
    rows = rows_of(folder / "broker=journal")
    assert [row["priority"] for row in rows if row["kind"] == "add"] == [None] * 3 + [4]


def test_a_history_keeps_its_format(maker, tmp_path, folder):
    keep(folder, maker.directory)
    with pytest.raises(OptionError, match=r"option format: the history in .* is delta"):
        keep(folder, maker.directory, Format.PARQUET)
    keep(tmp_path / "plain", maker.directory, None)
    assert not list((tmp_path / "plain").rglob("_delta_log"))
    with pytest.raises(OptionError, match=r"option format: the history in .* is parquet"):
        keep(tmp_path / "plain", maker.directory)
    with pytest.raises(OptionError, match=r"option format: a history in .* is kept as delta"):
        keep("memory://bucket/history", maker.directory, Format.PARQUET)
    odd = JournalMaker(tmp_path / "a b").add(1, 0).flush().directory
    with pytest.raises(OptionError, match=r"option path: the name 'a b' in an object store takes"):
        keep("memory://bucket/history", odd, None)


def test_what_is_missing_says_so(maker, tmp_path, folder, monkeypatch):
    keep(folder, maker.directory)
    (note,) = (folder / "_lockkeeper" / "broker=journal").iterdir()
    text = note.read_text()
    note.write_text(text.replace('"schema": "1"', '"schema": "2"'))
    with pytest.raises(AnalyticsError, match=f"{re.escape(str(note))}: schema 2 is not 1"):
        keep(folder, maker.directory)
    note.unlink()
    with pytest.raises(AnalyticsError, match=f"{re.escape(str(note))}: it says where the next"):
        keep(folder, maker.directory)
    place = folder / "broker=journal"
    monkeypatch.setitem(sys.modules, "deltalake", None)
    monkeypatch.delitem(sys.modules, deltas.__name__)
    monkeypatch.delattr("lockkeeper_analytics.history.deltas")
    expected = r"pip install 'lockkeeper-mq\[delta\]'"
    for refused in (
        lambda: keep(folder, maker.directory),
        lambda: keep(tmp_path / "new", maker.directory),
        lambda: rows_of(place),
    ):
        with pytest.raises(AnalyticsError, match=expected):
            refused()


def test_a_table_that_takes_more_to_read_is_refused(maker, folder):
    keep(folder, maker.directory)
    log = folder / "_delta_log"
    version = DeltaTable(folder).version() + 1
    needs = {"minReaderVersion": 3, "minWriterVersion": 7}
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    (log / f"{version:020}.json").write_text(json.dumps({"protocol": needs | features}))
    with pytest.raises(AnalyticsError, match="takes version 3 of Delta's reader protocol"):
        rows_of(folder / "broker=journal")


def test_the_table_has_the_columns_of_records(maker, folder):
    keep(folder, maker.directory)
    found = pa.schema(DeltaTable(folder).schema().to_arrow())
    assert found.names == [*keeping.COLUMNS, "broker", "day"]
    assert [found.field(name).type for name in keeping.COLUMNS] == COLUMNS.types
