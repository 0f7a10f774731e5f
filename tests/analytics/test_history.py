"""The history of records: each once, whatever ends a run, and also when its file is gone."""

import fcntl
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from journal_maker import START, JournalMaker, message_id, rows_of, transaction
from journal_reports import asked as journal_asked
from journal_two_runs import write_two_runs
from report_rows import assert_same
from typer.testing import CliRunner

from lockkeeper.journal.batch import CONTROL_START
from lockkeeper.message.destination import topic
from lockkeeper_analytics import job
from lockkeeper_analytics.errors import (
    AnalyticsError,
    ForeignFileError,
    NoJournalError,
    OptionError,
)
from lockkeeper_analytics.history import command, keeping, sameness
from lockkeeper_analytics.reports import REPORTS
from lockkeeper_analytics.tables import TABLES
from lockkeeper_analytics.tables.options import parse_options

DAY = 86_400_000
PLACE = ("file_id", "offset")
COLUMNS = ",".join(f'"{name}"' for name in keeping.COLUMNS)


@pytest.fixture
def maker(tmp_path):
    """Three days, on the second of which the next file begins; the last file goes on."""
    maker = JournalMaker(tmp_path / "journal")
    maker.add(1, 0).clock(0).flush().add(2, DAY).clock(DAY).flush()
    return maker.roll().remove(1).flush().add(3, 2 * DAY).clock(2 * DAY).flush()


def keep(folder, *directories, **options):
    path = ",".join(map(str, directories))
    return keeping.keep(parse_options({"path": path, **options}), str(folder))


def asked(folder, text):
    """Return what DuckDB says of the files, as anybody would ask it."""
    files = f"read_parquet('{folder}/*/*/*.parquet', hive_partitioning = true)"
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.sql(text.replace("HISTORY", files)).to_arrow_table().to_pylist()


def kept(folder):
    rows = asked(folder, f'SELECT {COLUMNS} FROM HISTORY ORDER BY file_id, "offset"')
    return [{**row, "properties": None} for row in rows]


def wanted(directory):
    rows = rows_of(directory, columns=",".join(keeping.COLUMNS))
    return [{**row, "properties": None} for row in rows]


def places(rows):
    return [tuple(row[name] for name in PLACE) for row in rows]


def test_every_record_is_there_once_by_broker_and_day(maker, tmp_path):
    folder = tmp_path / "history"
    directory = f"north={maker.directory}"
    assert keep(folder, directory) == (7, 0)
    assert kept(folder) == wanted(maker.directory)
    assert keep(folder, directory) == (0, 0)
    text = "SELECT broker, CAST(day AS VARCHAR) AS day, count(*) AS n FROM HISTORY GROUP BY ALL"
    assert asked(folder, f"{text} ORDER BY day") == [
        {"broker": "north", "day": "2026-11-18", "n": 2},
        {"broker": "north", "day": "2026-11-19", "n": 3},
        {"broker": "north", "day": "2026-11-20", "n": 2},
    ]


def test_a_file_that_grows_is_read_on_from_where_it_ended(maker, tmp_path, monkeypatch):
    folder = tmp_path / "history"
    keep(folder, maker.directory)
    maker.add(4, 2 * DAY + 1).clock(2 * DAY + 1).flush()
    read = []
    rows = keeping.TABLE.read

    def reading(part, options):
        read.append((part.file_id, part.start))
        return rows(part, options)

    before = places(kept(folder))[-1]
    monkeypatch.setattr(keeping, "TABLE", keeping.TABLE._replace(read=reading))
    assert keep(folder, maker.directory) == (2, 0)
    ((file_id, start),) = read
    assert (file_id, start) > before
    maker.roll().add(5, 2 * DAY + 2).clock(2 * DAY + 2).flush()
    assert keep(folder, maker.directory) == (2, 0)
    assert kept(folder) == wanted(maker.directory)


def test_a_batch_that_is_being_written_waits_for_the_next_run(maker, tmp_path):
    folder = tmp_path / "history"
    data = maker.path.read_bytes()
    maker.path.write_bytes(data[: data.rindex(CONTROL_START) + 40])
    assert keep(folder, maker.directory) == (5, 0)
    maker.path.write_bytes(data)
    assert keep(folder, maker.directory) == (2, 0)
    assert places(kept(folder)) == places(wanted(maker.directory))


@pytest.mark.parametrize("step_bytes", [1, keeping.STEP_BYTES])
def test_a_run_that_ends_anywhere_loses_no_record_and_doubles_none(
    maker, tmp_path, monkeypatch, step_bytes
):
    monkeypatch.setattr(keeping, "STEP_BYTES", step_bytes)
    move, moves = Path.replace, []

    def moving(path, target):
        if len(moves) == left:
            raise KeyboardInterrupt
        moves.append(target)
        return move(path, target)

    expected = wanted(maker.directory)
    for left in range(6):
        folder = tmp_path / str(left)
        moves.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", moving)
            try:
                keep(folder, maker.directory)
            except KeyboardInterrupt:
                assert places(kept(folder) if moves else []) != places(expected)
            else:
                assert left >= 3
        if left % 2:
            maker.add(10 + left, 2 * DAY + 10 + left).clock(2 * DAY + 10 + left).flush()
            expected = wanted(maker.directory)
        keep(folder, maker.directory)
        assert places(kept(folder)) == places(expected)
        assert not list(folder.rglob("*.unfinished"))


@pytest.mark.parametrize("moves", [1, 2])
def test_a_step_that_counts_is_finished_though_the_broker_has_removed_its_records(
    maker, tmp_path, monkeypatch, moves
):
    folder, move, left = tmp_path / "history", Path.replace, [moves]

    def moving(path, target):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return move(path, target)

    expected = places(wanted(maker.directory))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", moving)
        with pytest.raises(KeyboardInterrupt):
            keep(folder, maker.directory)
    (maker.directory / "db-1.log").unlink()
    keep(folder, maker.directory)
    assert places(kept(folder)) == expected
    assert not list(folder.rglob("*.unfinished"))


def test_what_the_broker_removes_stays_and_what_nobody_read_is_named(maker, tmp_path):
    folder = tmp_path / "history"
    keep(folder, maker.directory)
    before = kept(folder)
    maker.roll().add(4, 3 * DAY).clock(3 * DAY).flush().roll().add(5, 3 * DAY).flush()
    for number in (1, 2, 3):
        (maker.directory / f"db-{number}.log").unlink()
    assert keep(folder, maker.directory) == (1, 2)
    rows = kept(folder)
    lost = [row for row in rows if row["kind"] == "lost"]
    assert [row["file_id"] for row in lost] == [2, 3]
    assert lost[1]["trace"] == "db-3.log from byte 0 on"
    assert [row for row in rows if row in before] == before
    assert rows[-1]["message_id"] == message_id(5)


def test_another_journal_is_not_put_behind_the_first(maker, tmp_path):
    folder = tmp_path / "history"
    keep(folder, f"north={maker.directory}")
    other = JournalMaker(tmp_path / "other").add(1, 0).clock(0).flush().roll()
    for number in range(9):
        other.add(number, number).flush()
    for directory in (other.directory, JournalMaker(tmp_path / "new").add(1, 0).flush().directory):
        with pytest.raises(AnalyticsError, match=r"it is not the journal of which .*broker=north"):
            keep(folder, f"north={directory}")
    assert places(kept(folder)) == places(wanted(maker.directory))


@pytest.mark.parametrize("left", [1, 2])
def test_another_journal_is_told_by_any_file_that_was_there(tmp_path, left):
    folder = tmp_path / "history"
    ours, theirs = (JournalMaker(tmp_path / name) for name in ("ours", "theirs"))
    for number, maker in ((1, ours), (20, theirs)):
        for more in range(3):
            maker.add(number + more, more).flush().roll()
    keep(folder, f"north={ours.directory}")
    theirs.add(30, 3).flush()
    for number in {1, 2, 3} - {left}:
        (theirs.directory / f"db-{number}.log").unlink()
    with pytest.raises(AnalyticsError, match=r"it is not the journal of which .*broker=north"):
        keep(folder, f"north={theirs.directory}")
    ours.add(4, 3).flush()
    for number in {1, 2, 3} - {left}:
        (ours.directory / f"db-{number}.log").unlink()
    assert keep(folder, f"north={ours.directory}").records == 1


def test_so_many_files_are_noted_at_most(tmp_path, monkeypatch):
    monkeypatch.setattr(sameness, "OTHERS_MAX", 4)
    maker = JournalMaker(tmp_path / "journal")
    for number in range(1, 9):
        maker.add(number, number).flush().roll()
    keep(tmp_path / "history", maker.directory)
    (path,) = (tmp_path / "history").rglob("*.parquet")
    noted = json.loads(pq.read_schema(path).metadata[b"lockkeeper.next"])["others"]
    assert list(noted) == ["1", "2", "6", "7"]


def test_what_cannot_be_kept_says_why(maker, tmp_path):
    folder = tmp_path / "history"
    other = JournalMaker(tmp_path / "other" / "journal").add(1, 0).flush().directory
    with pytest.raises(OptionError, match="two directories are of 'journal': name each, NAME=DIR"):
        keep(folder, maker.directory, other)
    keep(folder, maker.directory)
    place = folder / "broker=journal"
    with (place / ".lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(AnalyticsError, match="broker=journal: another run writes to it"):
            keep(folder, maker.directory)
    last = max(place.rglob("*.parquet"), key=lambda path: path.parent.name)
    table = pq.read_table(last, partitioning=None)
    told = {**table.schema.metadata, b"lockkeeper.schema": b"2"}
    pq.write_table(table.replace_schema_metadata(told), last)
    with pytest.raises(AnalyticsError, match=f"{re.escape(str(last))}: schema 2 is not 1"):
        keep(folder, maker.directory)
    with pytest.raises(NoJournalError, match="broker=journal: no journal file"):
        keep(folder, f"again={place}")


@pytest.mark.parametrize("damage", ["cut", "empty", "overwritten", "of somebody else"])
def test_a_damaged_file_is_named_and_nothing_is_built_upon_it(maker, tmp_path, damage):
    folder = tmp_path / "history"
    keep(folder, maker.directory)
    path = max(folder.rglob("*.parquet"))
    whole = path.read_bytes()
    if damage == "of somebody else":
        pq.write_table(pa.table({"kind": ["add"]}), path)
    else:
        damaged = {"cut": whole[:100], "empty": b"", "overwritten": bytes(len(whole))}
        path.write_bytes(damaged[damage])
    expected = f"{re.escape(str(path))}: it is no file of a history"
    with pytest.raises(AnalyticsError, match=expected):
        keep(folder, maker.directory)
    with pytest.raises(AnalyticsError, match=expected):
        rows_of(path.parents[1])
    path.write_bytes(whole)
    assert keep(folder, maker.directory) == (0, 0)


@pytest.mark.parametrize("day", ["2026-11-18", "2026-11-20"])
def test_the_folder_of_a_day_may_be_deleted(maker, tmp_path, day):
    folder = tmp_path / "history"
    keep(folder, maker.directory)
    before = kept(folder)
    shutil.rmtree(folder / "broker=journal" / f"day={day}")
    (maker.directory / "db-1.log").unlink()
    left = kept(folder)
    assert 0 < len(left) < len(before)
    assert keep(folder, maker.directory) == (0, 0)
    assert kept(folder) == left


def test_a_clock_that_went_back_costs_no_row(tmp_path):
    folder = tmp_path / "history"
    maker = JournalMaker(tmp_path / "journal").remove(1).flush()
    maker.clock(DAY).add(2, DAY).flush().roll().clock(0).add(3, 0).flush()
    for number in (0, 4):
        assert keep(folder, maker.directory) == (5 - number, 0)
        assert places(kept(folder)) == places(wanted(maker.directory))
        maker.add(4, 1).flush()


def test_rows_without_a_time_have_no_day(tmp_path):
    folder = tmp_path / "history"
    maker = JournalMaker(tmp_path / "journal").remove(1).flush()
    keep(folder, maker.directory)
    assert asked(folder, "SELECT kind, day FROM HISTORY") == [{"kind": "remove", "day": None}]


def test_each_file_of_a_step_says_where_the_next_one_begins(maker, tmp_path):
    folder = tmp_path / "history"
    keep(folder, maker.directory)
    told = [pq.read_schema(path).metadata for path in sorted(folder.rglob("*.parquet"))]
    assert {each[b"lockkeeper.schema"] for each in told} == {b"1"}
    following, *same = [json.loads(each[b"lockkeeper.next"]) for each in told]
    assert same == [following, following]
    assert (following["file"], following["first"]) == (2, 1)
    assert following["position"] < maker.path.stat().st_size


# What tells of now, as `garbage` does, needs the files of now.
TOLD = tuple(name for name in TABLES if name not in ("records", "files", "body_fields"))
SUMMED_UP = tuple(f"{name}_report" for name in REPORTS if name not in ("garbage", "bodies"))


def told(directory, *names):
    """Return the rows of tables and views, but for where they are."""
    lists = [f"(SELECT list(told) FROM {name} told) AS {name}" for name in names]
    (found,) = journal_asked(f"SELECT {', '.join(lists)}", directory)
    here = {"directory": None, "files": None, "broker": None}
    return {name: sorted(repr(row | here) for row in found[name] or ()) for name in found}


def test_tables_say_of_a_history_what_they_say_of_activemqs_journal(tmp_path, golden):
    directory, place = golden / "amq-5.17.2-crash", tmp_path / "broker=north"
    keep(tmp_path, f"north={directory}")
    assert told(place, "records", *TOLD) == told(directory, "records", *TOLD)
    assert rows_of(place)[0]["broker"] == "north"
    (row,) = journal_asked("SELECT broker FROM brokers_report", place)
    assert row["broker"] == "north"


def test_a_history_of_many_runs_tells_what_the_journal_would_that_no_broker_cleaned(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(keeping, "STEP_BYTES", 1000)
    whole, folder = tmp_path / "whole", tmp_path / "history"
    write_two_runs(whole)
    live = tmp_path / "live"
    live.mkdir()
    for number, path in enumerate(sorted(whole.glob("db-*.log")), 1):
        data = path.read_bytes()
        for end in (data.index(CONTROL_START, len(data) // 2), len(data)):
            (live / path.name).write_bytes(data[:end])
            keep(folder, f"b={live}")
        if number > 1:
            (live / f"db-{number - 1}.log").unlink()
    names = (*TOLD, *SUMMED_UP)
    assert told(folder / "broker=b", *names) == told(whole, *names)


def test_options_choose_rows_of_a_history_as_of_a_journal(maker, tmp_path):
    folder = tmp_path / "history"
    maker.add(7, 2 * DAY, topic("NEWS"), tx=transaction(1)).commit(transaction(1)).flush()
    keep(folder, f"north={maker.directory}")
    place = folder / "broker=north"
    for options in (
        {"destination": "topic://NEWS"},
        {"since": str(START + DAY)},
        {"destination": "ORDERS", "since": str(START + 2 * DAY), "columns": "kind,message_id"},
        {"table": "acks", "since": str(START + DAY), "columns": "message_id,latency_at_most_ms"},
    ):
        found = rows_of(place, **options)
        expected = rows_of(f"north={maker.directory}", **options)
        for row in (*found, *expected):
            row.pop("directory", None)
        assert found == expected and found
    with pytest.raises(OptionError, match=r"option until: .*broker=north is a history of records"):
        rows_of(place, until=str(START + DAY))
    (row, *_) = rows_of(place, body="true")
    assert row["body"] is None and row["directory"] == str(place)
    assert rows_of(place, table="files") == []
    assert rows_of(f"south={place}")[0]["broker"] == "south"


def test_a_question_about_data_files_finds_them_within_the_steps_of_a_history(maker, tmp_path):
    folder = tmp_path / "history"
    keep(folder, f"north={maker.directory}")
    maker.roll().add(4, 2 * DAY).flush()
    keep(folder, f"north={maker.directory}")
    for first, last in ((1, 1), (2, 2), (3, 9), (0, 2)):
        options = parse_options({"path": str(folder / "broker=north")})
        asked_for = replace(options, files=(first, last))
        found = [row for batch in keeping.TABLE.batches(asked_for) for row in batch.to_pylist()]
        there = places(wanted(maker.directory))
        assert {each for each in there if first <= each[0] <= last} <= set(places(found))


def test_the_command_says_how_much_is_new_and_what_is_lost(maker, tmp_path):
    app = typer.Typer()
    app.command()(command.keep)

    def run(*more):
        return CliRunner().invoke(app, [str(maker.directory), "--out", str(tmp_path / "h"), *more])

    assert run().stdout == f"7 records added to {tmp_path / 'h'}\n"
    maker.roll().add(5, 3 * DAY).flush()
    (maker.directory / "db-2.log").unlink()
    done = run("--skip-corrupt")
    assert (done.exit_code, done.stdout) == (0, f"1 records added to {tmp_path / 'h'}\n")
    assert done.stderr.startswith("lockkeeper: 1 ranges were removed before they were read")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "reports", [["inventory"], pytest.param(["totals", "backlog"], marks=pytest.mark.thorough)]
)
def test_a_report_by_spark_tells_the_whole_history(spark, maker, tmp_path, reports):
    folder, out = tmp_path / "history", tmp_path / "report"
    keep(folder, f"north={maker.directory}")
    maker.roll().add(4, 3 * DAY).clock(3 * DAY).flush()
    keep(folder, f"north={maker.directory}")
    place = folder / "broker=north"
    whole = rows_of(maker.directory)
    (maker.directory / "db-1.log").unlink()
    outcome = job.analyze([str(place)], out, reports=reports, session=spark)
    assert outcome.records == len(whole)
    for name in reports:
        found = pq.read_table(out / f"{name}.parquet").to_pylist()
        assert_same(found, journal_asked(f"FROM {name}_report", place))


def test_a_last_file_that_is_none_of_a_journal_costs_no_record(maker, tmp_path):
    folder = tmp_path / "history"
    keep(folder, maker.directory)
    foreign = maker.directory / "db-3.log"
    foreign.write_bytes(b"not a journal")
    maker.add(4, 2 * DAY + 1).flush()
    with pytest.raises(ForeignFileError, match=r"db-3\.log: the file does not begin as one"):
        keep(folder, maker.directory)
    foreign.unlink()
    assert keep(folder, maker.directory) == (1, 0)
    assert kept(folder) == wanted(maker.directory)
