"""The session that reports are worked out in."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from journal_maker import JournalMaker

from lockkeeper_analytics.job import analyze
from lockkeeper_analytics.spark.datasource import FORMAT
from lockkeeper_analytics.spark.session import suited

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ADAPTIVE = "spark.sql.adaptive.enabled"


def test_java_has_as_much_room_for_code_as_with_both_its_compilers(spark):
    pools = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    room = sum(pool.getUsage().getMax() for pool in pools if "Code" in pool.getName())
    assert room == 240 * 1024 * 1024


@pytest.mark.parametrize("size", [0, 2**30])
def test_reports_are_planned_once(spark, size):
    own = suited(spark, size)
    assert own.conf.get(ADAPTIVE) == "false"
    assert own.sparkContext is spark.sparkContext
    assert own.read.format(FORMAT) is not None


@pytest.mark.parametrize(
    ("size", "said", "tasks"),
    [
        (2**28, None, "2"),
        (2**30, None, "2"),
        (2**30 + 1, None, "3"),
        (2**30, "77", "77"),
        (0, None, "1"),
        (0, "77", "1"),
    ],
)
def test_tasks_behind_a_shuffle_are_as_many_as_cores_or_bytes_ask_for(spark, size, said, tasks):
    setting = "spark.sql.shuffle.partitions"
    given = suited(spark, 0)
    given.conf.unset(setting)
    if said is not None:
        given.conf.set(setting, said)
    assert suited(given, size).conf.get(setting) == tasks


def test_runs_in_several_threads_leave_a_session_as_it_was(spark, tmp_path):
    given = suited(spark, 2**30)
    given.conf.set(ADAPTIVE, "true")
    given.conf.set("spark.sql.shuffle.partitions", "77")
    before = given.conf.getAll, given.catalog.functionExists("file_causes")
    maker = JournalMaker(tmp_path / "journal").add(1, 0).remove(1).clock(1).flush()

    def run(name):
        out = tmp_path / name
        return analyze([str(maker.directory)], out, reports=["inventory"], session=given).records

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, ["one", "other"])) == [3, 3]
    assert (given.conf.getAll, given.catalog.functionExists("file_causes")) == before
    assert given.range(3).count() == 3
