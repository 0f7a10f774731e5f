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


@pytest.fixture
def directory(tmp_path):
    write_two_runs(tmp_path / "journal")
    return tmp_path / "journal"


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


def test_all_reports_have_the_rows_that_each_has_alone(spark, directory, tmp_path):
    out = tmp_path / "report"
    before = jobs_of(spark)
    job.analyze([str(directory)], out, session=spark)
    assert jobs_of(spark) - before <= JOBS_MAX
    journal = settled(read_journals(spark, [str(directory)]), tmp_path / "frames")
    for name in USUAL:
        alone, told = journal.report(name).toArrow(), pq.read_table(out / f"{name}.parquet")
        assert told.equals(alone) and told.schema.equals(alone.schema), name


def leaves_of(frame):
    """Return how many tables the plan of *frame* reads."""
    return frame._jdf.queryExecution().analyzed().collectLeaves().size()


def test_rows_that_executors_keep_are_those_of_files_and_their_plans_as_small(
    spark, directory, tmp_path
):
    source = read_journals(spark, [str(directory)])
    written, kept = settled(source, tmp_path / "frames"), settled(source, None)
    for name in ("backlog", "redeliveries", "garbage", "totals"):
        ours, theirs = kept.report(name), written.report(name)
        assert leaves_of(ours) == leaves_of(theirs), name
        assert ours.toArrow().equals(theirs.toArrow()), name


def exchanges_of(journal, name):
    """Return how often rows change partitions for a report."""
    plan = journal.report(name)._jdf.queryExecution().executedPlan().toString()
    return sum(" Exchange " in line for line in plan.splitlines())


def test_a_small_journal_is_shuffled_only_where_tables_are_put_together(spark, directory, tmp_path):
    source = read_journals(spark, [str(directory)])
    small = settled(source, tmp_path / "small", is_small=True)
    large = settled(source, tmp_path / "large")
    # Rows of one table behind those of another are two partitions.
    put_together = {"rates", "totals", "skew", "anomalies", "consumers", "backlog", "brokers"}
    put_together |= {"backlog_over_time", "subscriptions", "redeliveries", "takeovers", "garbage"}
    # Fields of bodies beside the number of the bodies.
    put_together.add("bodies")
    assert {name for name in REPORTS if exchanges_of(small, name)} == put_together
    assert {name for name in REPORTS if exchanges_of(large, name)} == set(REPORTS)


def test_reports_of_a_group_are_one_query():
    assert job._groups_of(["rates", "pattern", "backlog", "garbage"]) == [
        ["rates", "pattern"],
        ["backlog"],
        ["garbage"],
    ]
    assert job._groups_of(list(REPORTS)) == [
        [each.name for each in group] for group in GROUPS.values()
    ]
