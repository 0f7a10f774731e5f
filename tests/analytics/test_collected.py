"""Reports that one query answers together have the rows that each has alone."""

import pyarrow.parquet as pq
import pytest
from journal_two_runs import write_two_runs
from pyspark.sql import functions as F

from lockkeeper_analytics import job
from lockkeeper_analytics.facts.journal import read_journals, settled
from lockkeeper_analytics.reports import GROUPS, REPORTS, USUAL
from lockkeeper_analytics.spark.questions import Question, answers

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOBS_MAX = 12
"""Of a small journal: its records and their number, the length of cells, five groups of reports."""


def each_of(some, every):
    """Try names of *some* reports, and those of *every* one where there is time."""
    return pytest.mark.parametrize(
        "names",
        [pytest.param(some, id="some"), pytest.param(every, id="all", marks=pytest.mark.thorough)],
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("journals") / "journal"
    write_two_runs(directory)
    return directory


@pytest.fixture(scope="module")
def source(spark, directory):
    return read_journals(spark, [str(directory)])


@pytest.fixture(scope="module")
def written(source, tmp_path_factory):
    """The journal whose parts are files."""
    return settled(source, tmp_path_factory.mktemp("frames"))


def jobs_of(spark):
    """Return how many jobs the session has run."""
    return spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()


def test_frames_come_as_they_are(spark):
    numbers = spark.range(5)
    frames = {
        "ordered": numbers.withColumn("seconds", F.lit(3)).orderBy(F.desc("id")).limit(4),
        "nested": numbers.select(
            F.create_map(F.lit("a"), F.col("id")).alias("map"),
            F.array("id", F.lit(None)).alias("list"),
            F.when(F.col("id") > 2, F.timestamp_millis("id")).alias("id"),
        ),
        "empty": spark.createDataFrame([], "id string, other double"),
        "nulls": numbers.select(F.lit(None).cast("string").alias("id")),
    }
    alone = {name: frame.toArrow() for name, frame in frames.items()}
    before = jobs_of(spark)
    questions = {
        name: Question(f"SELECT * FROM {{{name}}}", {name: frame}) for name, frame in frames.items()
    }
    found = answers(spark, questions, 100)
    assert jobs_of(spark) == before + 1
    assert list(found) == list(frames)
    for name, table in found.items():
        assert table.equals(alone[name]) and table.schema.equals(alone[name].schema), name


@each_of(("producers", "latency", "backlog", "dead_letters"), USUAL)
def test_all_reports_have_the_rows_that_each_has_alone(spark, directory, written, tmp_path, names):
    out = tmp_path / "report"
    before = jobs_of(spark)
    job.analyze([str(directory)], out, session=spark)
    assert jobs_of(spark) - before <= JOBS_MAX
    for name in names:
        alone, told = written.report(name).toArrow(), pq.read_table(out / f"{name}.parquet")
        assert told.equals(alone) and told.schema.equals(alone.schema), name


def leaves_of(frame):
    """Return how many tables the plan of *frame* reads."""
    return frame._jdf.queryExecution().analyzed().collectLeaves().size()


@each_of(("garbage", "totals"), ("backlog", "redeliveries", "garbage", "totals"))
def test_rows_that_executors_keep_are_those_of_files_and_their_plans_as_small(
    source, written, names
):
    kept = settled(source, None)
    for name in names:
        ours, theirs = kept.report(name), written.report(name)
        assert leaves_of(ours) == leaves_of(theirs), name
        assert ours.toArrow().equals(theirs.toArrow()), name


@each_of(("groups", "lag_over_time"), [each.name for each in GROUPS["Streams"]])
def test_reports_of_streams_take_nothing_where_there_are_none(source, written, tmp_path, names):
    small = settled(source, tmp_path / "small", is_small=True)
    for name in names:
        found = written.report(name)
        plan = found._jdf.queryExecution().executedPlan().toString()
        assert plan.startswith("LocalTableScan <empty>"), plan
        theirs = small.report(name).toArrow()
        assert found.toArrow().equals(theirs) and theirs.num_rows == 0
        assert found.toArrow().schema.equals(theirs.schema), name


def exchanges_of(journal, name):
    """Return how often rows change partitions for a report."""
    plan = journal.report(name)._jdf.queryExecution().executedPlan().toString()
    return sum(" Exchange " in line for line in plan.splitlines())


@each_of(("totals", "latency", "producers"), REPORTS)
def test_a_small_journal_is_shuffled_only_where_tables_are_put_together(
    source, written, tmp_path, names
):
    small = settled(source, tmp_path / "small", is_small=True)
    # Rows of one table behind those of another are two partitions.
    put_together = {"rates", "totals", "skew", "anomalies", "consumers", "backlog", "brokers"}
    put_together.add("network")
    put_together |= {"backlog_over_time", "subscriptions", "redeliveries", "takeovers", "garbage"}
    # Messages of streams beside the offsets of their groups.
    put_together |= {"groups", "lag_over_time", "retries", "partitions"}
    # Fields of bodies beside the number of the bodies.
    put_together.add("bodies")
    shuffled = {name for name in names if exchanges_of(small, name)}
    assert shuffled == put_together.intersection(names)
    without = {each.name for each in GROUPS["Streams"]}
    assert all(exchanges_of(written, name) for name in names if name not in without)


def test_reports_of_a_group_are_one_query():
    assert job._groups_of(["rates", "pattern", "backlog", "garbage"]) == [
        ["rates", "pattern"],
        ["backlog"],
        ["garbage"],
    ]
    assert job._groups_of(list(REPORTS)) == [
        [each.name for each in group] for group in GROUPS.values()
    ]
