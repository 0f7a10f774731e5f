"""`lockkeeper sql` answers queries over the tables of journals."""

import csv
import json
import re
from io import StringIO
from pathlib import Path
from unittest.mock import ANY

import duckdb
import pytest
import typer
from journal_maker import START, JournalMaker, message_id
from typer.testing import CliRunner

from lockkeeper.journal.batch import CONTROL_START
from lockkeeper.message.destination import queue
from lockkeeper_analytics.errors import AnalyticsError, NoJournalError, OptionError, QueryError
from lockkeeper_analytics.sql import query
from lockkeeper_analytics.sql.command import sql
from lockkeeper_analytics.tables import TABLES
from lockkeeper_analytics.tables.base import BASE
from lockkeeper_analytics.texts import view_texts


@pytest.fixture
def maker(tmp_path):
    """Two acknowledged messages of three, one of another queue."""
    maker = JournalMaker(tmp_path / "journal")
    maker.add(1, 0).add(2, 1).add(3, 2).add(4, 3, queue("OTHER")).clock(3).flush()
    return maker.remove(1).clock(103).flush().remove(2).clock(203).flush()


def asked(text, directory, **options):
    batches = list(query.run(text, {"path": str(directory), **options}))
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def printed(*arguments):
    app = typer.Typer()
    app.command()(sql)
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_query_counts_and_groups(maker):
    text = "select destination, outcome, count(*) from messages group by all order by all"
    assert asked(text, maker.directory) == [
        ("ORDERS", "acknowledged", 2),
        ("ORDERS", "pending", 1),
        ("OTHER", "pending", 1),
    ]


def test_tables_are_joined_with_each_other_and_themselves(maker):
    text = """
        with late as (select * from acks where latency_at_least_ms > 150)
        select m.message_id, late.latency_at_least_ms, (select count(*) from acks), f.file
        from messages m join late using (message_id) join acks a on a.message_id = m.message_id
        join files f on f.file_id = m.file_id
    """
    assert asked(text, maker.directory) == [(message_id(2), 202, 2, "db-1.log")]


@pytest.mark.parametrize("table", TABLES)
def test_every_table_can_be_read_whole_and_counted(golden, table):
    directory = golden / "amq-5.17.2-crash"
    rows = asked(f"select * from {table}", directory)
    assert asked(f"select count(*) from {table}", directory) == [(len(rows),)]
    assert rows or table in ("statistics", "events") or "stream" in table
    assert all(len(row) == len(TABLES[table].default_columns) for row in rows)


@pytest.mark.parametrize(
    ("text", "read", "unread"),
    [
        ("select count(*) from records", {"directory"}, {"kind"}),
        ("select destination from records where priority > 3", {"priority"}, {"message_id"}),
        ("select max(stored_at) from messages", {"stored_at", "message_id"}, {"properties"}),
        ("select m from messages m", {"properties", "jms_type"}, {"selector", "body"}),
        ('select "OUTCOME" from messages order by Priority', {"priority"}, {"properties"}),
        ("select state from subscriptions", {"subscription"}, {"selector", "properties"}),
    ],
)
def test_only_columns_that_a_query_needs_are_read(maker, monkeypatch, text, read, unread):
    seen = []
    table = BASE["records"]

    def reading(piece, options):
        seen.append(set(options.columns))
        return table.read(piece, options)

    monkeypatch.setitem(BASE, "records", table._replace(read=reading))
    asked(text, maker.directory)
    (columns,) = seen
    assert read <= columns
    assert not unread & columns


def test_tables_that_a_query_does_not_name_are_not_read(maker, monkeypatch):
    table = BASE["data_files"]

    def read(piece, options):
        raise AssertionError("data files are listed")

    monkeypatch.setitem(BASE, "data_files", table._replace(read=read))
    assert asked("select count(*) from acks where 'files' = 'files'", maker.directory) == [(2,)]


def test_bodies_are_there_by_name(golden):
    text = "select body from records where body = 'hello world'"
    assert asked(text, golden / "amq-5.17.2-crash") == [("hello world",)]


def test_names_may_be_in_any_case(maker):
    assert asked("SELECT COUNT(*) FROM Main.Acks WHERE Cause IS NULL", maker.directory) == [(2,)]


def test_options_narrow_what_is_read(maker):
    count = "select count(*) from messages"
    assert asked(count, maker.directory, destination="OTHER") == [(1,)]
    assert asked("select count(*) from files", maker.directory, destination="OTHER") == [(1,)]
    text = "select count(*) from messages where outcome = 'pending'"
    assert asked(text, maker.directory, until=str(START + 150)) == [(3,)]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("select * from mesages", 'Did you mean "messages"'),
        ("select outcom from messages", "outcom"),
        ("selec 1", "syntax error"),
        ("select 1; select 2", "one SELECT"),
        ("drop table messages", "one SELECT"),
        ("", "one SELECT"),
    ],
)
def test_a_wrong_query_is_told_before_anything_is_read(tmp_path, text, complaint):
    with pytest.raises(QueryError, match=complaint):
        asked(text, tmp_path / "nowhere")


def test_a_wrong_place_or_option_is_told(maker, tmp_path):
    with pytest.raises(NoJournalError, match="no such directory"):
        asked("select 1 from messages", tmp_path / "nowhere")
    with pytest.raises(OptionError, match="option since"):
        asked("select 1 from messages", maker.directory, since="x")
    with pytest.raises(QueryError, match="must have a number"):
        list(query.run("select 1", {}, memory_limit="much"))


def test_damage_is_an_error_with_its_place(maker):
    data = bytearray(maker.path.read_bytes())
    data[data.index(CONTROL_START, 1) + 40] ^= 1
    maker.path.write_bytes(data)
    with pytest.raises(AnalyticsError, match=r"db-1\.log: corrupt batch at offset"):
        asked("select count(*) from messages", maker.directory)
    counted = asked("select count(*) from acks", maker.directory, corrupt="skip")
    assert counted == [(1,)]


def test_who_asks_of_a_file_of_somebody_else_is_told_the_options_that_leave_it_out(maker):
    count = "select count(*) from messages"
    (maker.directory / "db-2.log").write_bytes(b"not a journal")
    with pytest.raises(AnalyticsError) as complaint:
        asked(count, maker.directory)
    (option,) = re.findall(r"--[a-z-]+", str(complaint.value))
    assert json.loads(printed(count, maker.directory, "--format", "json", option)) == {
        "count_star()": 4
    }
    ((name, value),) = re.findall(r"option (\w+)=(\w+)", str(complaint.value))
    assert asked(count, maker.directory, **{name: value}) == [(4,)]


def test_answers_are_printed_as_a_table_csv_or_json(maker):
    text = "select message_id, acked_at_latest, stored_at is null, cause from acks order by 1"
    lines = printed(text, maker.directory).splitlines()
    assert lines[0].split() == [
        "message_id",
        "acked_at_latest",
        "(stored_at",
        "IS",
        "NULL)",
        "cause",
    ]
    assert lines[1].startswith(message_id(1))
    rows = list(csv.reader(StringIO(printed(text, maker.directory, "--format", "csv"))))
    assert rows[0][:2] == ["message_id", "acked_at_latest"]
    assert rows[1][1] == "2026-11-18T11:06:40.103Z"
    text = "select live_by_destination, pinned_by, freed_by_cleanup, first_at from files"
    (line,) = printed(text, maker.directory, "-f", "json").splitlines()
    told = json.loads(line)
    assert told["live_by_destination"] == {"queue://ORDERS": 1, "queue://OTHER": 1}
    assert (told["freed_by_cleanup"], told["first_at"]) == (False, "2026-11-18T11:06:40.003Z")


def test_the_questions_in_the_documentation_have_answers(maker):
    text = (Path(__file__).parents[2] / "docs" / "analytics.md").read_text("utf-8")
    blocks = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    of_streams, usual = ([each for each in block.split(";") if each.strip()] for block in blocks)
    assert (len(of_streams), len(usual)) == (3, 4)
    assert [asked(question, maker.directory) for question in of_streams] == [[], [], []]
    answers = [asked(question, maker.directory) for question in usual]
    assert answers[0] == [("db-1.log", ANY, False)]


def test_reports_and_what_they_start_from_are_views(maker):
    (row,) = asked(
        "select waiting, oldest_at from backlog_report where destination = 'ORDERS'",
        maker.directory,
    )
    assert row[0] == 1
    text = "select kind, count(*) from applied_operations group by all order by all"
    assert asked(text, maker.directory) == [("add", 4), ("remove", 2)]
    text = (
        "select t.enqueued, l.max_ms from totals_report t join latency_report l using (destination)"
    )
    assert asked(text, maker.directory) == [(3, 202.0)]


def test_views_are_a_script_for_any_database_that_has_the_tables(maker):
    script = printed("--views")
    with duckdb.connect(":memory:") as database:
        for name, table in BASE.items():
            empty = table.arrow(tuple(table.columns)).empty_table()
            database.register("empty", empty)
            database.execute(f"create table {name} as select * from empty")
            database.unregister("empty")
        database.execute(script)
        views = database.execute("select view_name from duckdb_views() where not internal")
        assert {name for (name,) in views.fetchall()} == set(view_texts())
        assert database.execute("select * from latency_report").fetchall() == []


def test_sums_are_numbers_in_json(maker):
    text = "select sum(message_bytes) as bytes, 0.5::DECIMAL(3, 1) as half from messages"
    (line,) = printed(text, maker.directory, "-f", "json").splitlines()
    assert json.loads(line) == {"bytes": ANY, "half": 0.5}
    assert isinstance(json.loads(line)["bytes"], int)


def test_since_and_until_may_be_how_long_ago(maker):
    text = "select count(*) as messages from messages"
    lines = printed(text, maker.directory, "-f", "csv", "--until", "36500d").splitlines()
    assert lines == ["messages", "0"]


def test_a_table_is_not_folded_where_a_program_reads(golden):
    text = "select file, pinned_by from files order by file_id"
    lines = printed(text, golden / "amq-5.17.2-crash").splitlines()
    assert len(lines) == 6
    assert "subscription client-1:sub-all" in lines[1]


def test_no_rows_are_a_header(maker):
    assert printed("select message_id from acks where false", maker.directory, "-f", "csv") == (
        "message_id\n"
    )


def test_tables_and_columns_are_listed(maker):
    listed = {name for (name,) in asked("show tables", maker.directory)}
    assert listed == set(BASE) | view_texts().keys()
    assert listed >= set(TABLES)
    described = asked("describe messages", maker.directory)
    assert [row[0] for row in described] == list(TABLES["messages"].columns)
