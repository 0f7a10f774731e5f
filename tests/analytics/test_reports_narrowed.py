"""Narrowed reports: all is told from the whole journal, and only what is shown is narrowed."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
import pytest
from journal_frames import journal_in
from journal_maker import START
from journal_two_runs import write_two_runs
from report_rows import assert_same

from lockkeeper.message.destination import SCHEMES, Destination
from lockkeeper_analytics import job
from lockkeeper_analytics.facts.journal import AT_A_TIME, journal_of, read_journals, settled
from lockkeeper_analytics.narrowing import COUNTING, REPORTS, Narrowing
from lockkeeper_analytics.reading.asked import is_asked_for
from lockkeeper_analytics.reports import GROUPS
from lockkeeper_analytics.reports import REPORTS as ALL_REPORTS
from lockkeeper_analytics.spark.questions import answers
from lockkeeper_analytics.sql import query
from lockkeeper_analytics.tables.options import parse_options

CRASH = "amq-5.17.2-crash"
LONG_AFTER = "2036-01-01"
FILTERS = {
    "since": ("", True),
    "destination": ("GOLD.ACKED,topic://GOLD.TOPIC,ORDERS", False),
    "both": ("GOLD.*,topic://NEWS,ORDERS.>", True),
    "absent": ("NOT.THERE", False),
}
"""The destinations of each, and whether it has a bound in the middle of the journal."""

FACTS = (
    "applied_operations",
    "acknowledged",
    "counted",
    "uncounted",
    "latency_buckets",
    "message_lifetimes",
    "deaths",
    "moves",
)
WHOLE_FACTS = ("connections", "statistics", "dead_letter_queues")

# Of the crash journal: file, bytes, live messages, and whether a clean-up removes it.
GARBAGE = [
    ("db-1.log", 65536, 43, False),
    ("db-2.log", 65536, 0, True),
    ("db-3.log", 65536, 0, True),
    ("db-4.log", 65536, 20, False),
    ("db-5.log", 65536, 0, False),
]
# Destination, subscription, and how many messages wait: 65.
WAITING = [
    ("GOLD.BULK", None, 20),
    ("GOLD.TYPES", None, 17),
    ("GOLD.ACKED", None, 8),
    ("GOLD.TOPIC", "client-1:sub-all", 6),
    ("GOLD.INDIVIDUAL", None, 4),
    ("GOLD.XA", None, 4),
    ("GOLD.TOPIC", "client-1:sub-sel", 4),
    ("GOLD.TX", None, 2),
]


@pytest.fixture(scope="module", params=["ActiveMQ's", "ours"])
def place(request, tmp_path_factory):
    """A journal, and a whole second in the middle of what it tells."""
    if request.param == "ours":
        directory = tmp_path_factory.mktemp("journals") / "made"
        write_two_runs(directory)
        return str(directory), START + 1000
    golden = request.path.parents[1] / "golden" / "kahadb" / CRASH
    return str(golden), 1_795_247_373_000


@pytest.fixture(scope="module")
def told(place):
    """Every report and fact of the whole journal, in SQL."""
    names = [*FACTS, *WHOLE_FACTS, *(f"{name}_report" for name in REPORTS)]
    return together(names, {"path": place[0]})


def together(names, options):
    """Return several tables and views by one query, which is much quicker than one for each."""
    several = ", ".join(f"(SELECT list(told) FROM {name} told) AS {name}" for name in names)
    found = pa.Table.from_batches(query.run(f"SELECT {several}", options))
    return {
        name: pa.Table.from_struct_array(found.column(name).combine_chunks().flatten())
        for name in names
    }


def options_of(name, place):
    """Return the options of one of FILTERS."""
    destination, has_bound = FILTERS[name]
    since = str(place[1]) if has_bound else ""
    return {"path": place[0], "destination": destination, "since": since}


def narrowing_of(options):
    asked = parse_options({name: value for name, value in options.items() if value})
    return Narrowing(asked.destinations, asked.since, asked.until)


def is_of(narrowing, kind, name):
    return not narrowing.destinations or (
        kind is not None and is_asked_for(Destination(SCHEMES[kind], name), narrowing.destinations)
    )


def latest(row, *names):
    return max((row[name] for name in names if row[name] is not None), default=None)


def is_shown(report, row, narrowing):
    """Tell whether *row* of a report of the whole journal stays, by rules written once more."""
    whole = ("brokers", "network", "garbage", "inventory")
    if report not in (*whole, "pattern", "transactions", "takeovers"):
        prefix = "origin" if report in ("dead_letters", "poison") else "destination"
        kind, name = row[f"{prefix}_kind"], row["origin" if prefix == "origin" else prefix]
        if not is_of(narrowing, kind, name):
            return False
    if not narrowing.since or report in whole or report in COUNTING:
        return True
    since = datetime.fromtimestamp(narrowing.since / 1000, UTC)
    cell = row.get("period", row.get("time"))
    if cell is not None:
        return cell + timedelta(seconds=row["seconds"]) > since
    if report in ("poison", "duplicates"):
        moment = row["last_at"]
    elif report == "takeovers":
        moment = row["at"]
    elif report == "transactions":
        moment = row["ended_at"]
    elif report == "consumers" and row["verdict"] == "gone":
        moment = latest(row, "opened_at", "closed_at", "last_ack_at")
    else:
        moment = None
    return moment is None or moment >= since


def is_counted(fact, row, narrowing):
    """Tell whether *row* of a fact of the whole journal is counted."""
    if fact == "moves":
        place = row["destination_kind"], row["destination"]
        return is_of(narrowing, *place) and row["second"] >= narrowing.since // 1000
    since = datetime.fromtimestamp(narrowing.since / 1000, UTC)
    names = {"message_lifetimes": ("added_at", "stored_at")}.get(
        fact, ("happened_at", "happened_before", "at")
    )
    known = [row[name] for name in names if row.get(name) is not None]
    return not known or known[0] >= since


def cut_down(report, told, narrowing):
    """Return the rows of *report* of the whole journal, cut down to what is asked for."""
    rows = told[f"{report}_report"].to_pylist()
    if report in COUNTING:
        with duckdb.connect(":memory:") as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(query.dialect())
            for name in WHOLE_FACTS:
                connection.register(name, told[name])
            for name in FACTS:
                kept = [is_counted(name, row, narrowing) for row in told[name].to_pylist()]
                connection.register(name, told[name].filter(pa.array(kept, pa.bool_())))
            rows = connection.sql(ALL_REPORTS[report].sql).to_arrow_table().to_pylist()
    return [row for row in rows if is_shown(report, row, narrowing)]


def asked(text, options):
    return [row for batch in query.run(text, options) for row in batch.to_pylist()]


def test_every_report_says_what_narrowing_means():
    assert REPORTS.keys() == ALL_REPORTS.keys() >= set(COUNTING)


@pytest.mark.slow
@pytest.mark.patient
@pytest.mark.parametrize("name", FILTERS)
def test_narrowed_reports_in_sql_are_those_of_the_whole_journal_cut_down(place, told, name):
    options = options_of(name, place)
    found = together([f"{report}_report" for report in REPORTS], options)
    for report in REPORTS:
        rows = found[f"{report}_report"].to_pylist()
        assert_same(rows, cut_down(report, told, narrowing_of(options)))


def test_the_text_of_a_report_is_narrowed_as_its_view_is(place):
    options = options_of("both", place)
    for report in ("takeovers", "totals"):
        found = asked(ALL_REPORTS[report].sql, options)
        assert found == asked(f"FROM {report}_report", options)


def test_what_keeps_files_is_told_of_now_until_whenever(place, told):
    options = {"path": place[0], "until": "2000-01-01"}
    assert_same(asked("FROM garbage_report", options), told["garbage_report"].to_pylist())
    assert asked("FROM backlog_report", options) == []


def test_views_take_destinations_with_signs_of_sql_and_of_patterns(place):
    options = {"path": place[0], "destination": "it's,a+b.(c),[x]\\d"}
    assert asked("FROM backlog_report", options) == []
    assert asked("FROM backlog_report", {"path": place[0], "destination": ">"})


@pytest.mark.spark
@pytest.mark.slow
def test_narrowed_reports_of_spark_are_those_of_the_whole_journal_cut_down(
    spark, place, told, tmp_path
):
    narrowing = narrowing_of(options_of("both", place))
    source = read_journals(spark, [place[0]])
    journal = settled(source, tmp_path / "frames", narrowing, is_small=True)

    def answer(group):
        questions = {report.name: journal.question(report.name) for report in GROUPS[group]}
        return answers(spark, questions, 10_000)

    # As many at a time as a job asks for.
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for tables in pool.map(answer, GROUPS):
            for name, table in tables.items():
                assert_same(table.to_pylist(), cut_down(name, told, narrowing))


@pytest.mark.spark
@pytest.mark.slow
def test_until_tells_what_was_then_but_for_what_keeps_files(spark, tmp_path):
    write_two_runs(tmp_path / "made")
    options = {"path": str(tmp_path / "made"), "until": str(START + 1000)}
    source = journal_in(spark, tmp_path / "made").source
    source.records.persist()
    journal = journal_of(source, narrowing_of(options), is_small=True)
    garbage = journal.report("garbage").toArrow().to_pylist()
    assert_same(garbage, asked("FROM garbage_report", {"path": options["path"]}))
    backlog = journal.report("backlog").toArrow().to_pylist()
    assert_same(backlog, asked("FROM backlog_report", options))
    source.records.unpersist()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("narrowed", [{"since": LONG_AFTER}, {"destination": "GOLD.ACKED"}])
def test_a_narrowed_job_says_of_no_file_with_live_messages_that_it_goes(
    spark, golden, tmp_path, narrowed
):
    reports = ("garbage", "backlog")
    job.analyze([str(golden / CRASH)], tmp_path, reports=reports, session=spark, **narrowed)
    garbage, backlog = (
        json.loads((tmp_path / f"{name}.json").read_text("utf-8"))["rows"] for name in reports
    )
    names = ("file", "bytes", "live_messages", "freed")
    assert [tuple(row[name] for name in names) for row in garbage] == GARBAGE
    waiting = [(row["destination"], row["subscription"], row["waiting"]) for row in backlog]
    chosen = narrowed.get("destination")
    assert waiting == [row for row in WAITING if chosen in (None, row[0])]
