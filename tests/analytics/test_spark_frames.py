"""Frames of every table and report, by functions; the data source that Spark finds by itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from journal_lived import lived
from journal_maker import message_id
from journal_reports import asked
from network_journals import grown

from lockkeeper_analytics import frames
from lockkeeper_analytics.errors import OptionError
from lockkeeper_analytics.spark.java import find_java_home
from lockkeeper_analytics.trace.steps import trace

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
ANALYTICS = Path(__file__).parents[2] / "analytics"


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    return lived(tmp_path_factory.mktemp("lived") / "journal")


def test_every_table_and_report_is_a_frame(spark, journal):
    # The rows of all that are told from records are those of test_tables_defined.py.
    counted = {*frames.TABLE_NAMES} - frames.TOLD_TABLES.keys() | {"transactions"}
    for name in frames.TABLE_NAMES:
        found = frames.table(spark, name, str(journal))
        # Spark knows of some columns that they are never null.
        assert found.schema.simpleString() == frames.SCHEMAS[name].simpleString(), name
        if name in counted:
            (row,) = asked(f"SELECT count(*) AS n FROM {name}", journal)
            assert found.count() == row["n"], name
    backlog = frames.report(spark, "backlog", str(journal), destination="ORDERS")
    (row,) = backlog.collect()
    assert (row["destination"], row["waiting"]) == ("ORDERS", 1)


def test_a_wrong_name_says_which_there_are(spark, journal):
    with pytest.raises(OptionError, match="no table 'message' \\(known: records, messages"):
        frames.table(spark, "message", str(journal))
    with pytest.raises(OptionError, match="no report 'rate' \\(known: rates, "):
        frames.report(spark, "rate", str(journal))


@pytest.mark.parametrize("identifier", [message_id(10), "order-9", "it's \\ {messages} {"])
def test_spark_traces_a_message_as_duckdb_does(spark, journal, identifier):
    told = frames.trace(spark, identifier, str(journal)).toArrow().to_pylist()
    assert told == trace(identifier, [str(journal)])


def test_spark_follows_a_message_from_broker_to_broker(spark, tmp_path):
    some = [str(each) for each in grown(tmp_path) if each.name != "south"]
    told = frames.trace(spark, "followed", *some).toArrow().to_pylist()
    assert told == trace("followed", some)
    assert {row["step"] for row in told} >= {"passed", "forwarded", "stranded"}


def test_spark_finds_the_data_source_by_itself(journal, tmp_path):
    script = (
        "from pyspark.sql import SparkSession\n"
        'spark = SparkSession.builder.master("local[1]").getOrCreate()\n'
        'reader = spark.read.format("lockkeeper").option("columns", "kind")\n'
        f'print("count", reader.load({str(journal)!r}).count())\n'
        "from lockkeeper_analytics.spark.session import register\n"
        "register(spark)\n"
    )
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java_home()),
        # Where the package is among the modules that are listed, as an installation has it.
        "PYTHONPATH": str(ANALYTICS),
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (whole,) = asked("SELECT count(*) AS n FROM records", journal)
    assert f"count {whole['n']}\n" in done.stdout
