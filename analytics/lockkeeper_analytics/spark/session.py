"""Start Spark on this machine: quiet, small, and with the `lockkeeper` format known if asked."""

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import AnalysisException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.spark.datasource import LockkeeperDataSource
from lockkeeper_analytics.spark.java import find_java_home

DRIVER_MEMORY = "1g"
_TASKS, _TASKS_OF_SPARK = "spark.sql.shuffle.partitions", "200"
"""How many tasks are behind a shuffle, and how many where nobody has said anything else."""
_KNOWN = "DATA_SOURCE_ALREADY_EXISTS"
_SETTINGS = {
    "spark.app.name": "lockkeeper",
    # Nobody but this process has business with this Spark.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Nobody looks at what was done before: plans of reports would fill the heap of a session that
    # answers many.
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "100",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
}
_JAVA_OPTIONS = "-XX:+UseSerialGC"
_EARLY_CODE = " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""With its first compiler alone Java has 48 MB for code, which that of all reports may fill: then
it ends. This is what it has with both."""

LARGE_BYTES = 512 * 1024 * 1024
"""Below, code of Java's first compiler comes sooner (268 MB: 148 s of processor time instead of
185 s). With 1 GB both take 440 s: the second one 155 s to compile, its code 150 s less."""

_REPORT_SETTINGS = {
    # Spark describes each plan to its own page, by default once more for each operator: a fifth of
    # the work on a small journal.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "1",
    # Adaptive execution makes a job of each shuffle, and plans what is behind it anew.
    "spark.sql.adaptive.enabled": "false",
    # By default Spark holds 128 groups before it sorts, and one has up to 50,000 values for each of
    # its percentiles: 120 busy destinations took more than a heap of 1 GiB.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "4",
}

_NO_BROADCASTS = {
    # A broadcast is a job of its own; where one pays for few rows, the SQL says so.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}

SMALL_BYTES = 16 * 1024 * 1024
_SMALL_SETTINGS = {
    **_REPORT_SETTINGS,
    **_NO_BROADCASTS,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    _TASKS: "1",
    # What the SQL says of broadcasts is for many records.
    "spark.sql.optimizer.disableHints": "true",
}
"""Where there is little to read, compiling code for it takes longer than doing without."""

PARTITION_BYTES = 512 * 1024 * 1024
"""Of journals, what a task behind a shuffle has of them at most. More tasks than cores only cost
their beginning: the demo's report (268 MB, two cores) took 339 s of processor time with eight, and
255 s with two."""


def start_session(master: str = "local[*]", scratch: Path | None = None) -> SparkSession:
    """Return a session that knows `spark.read.format("lockkeeper")`; see `start_spark`."""
    session = start_spark(master, scratch=scratch)
    register(session)
    return session


def start_spark(
    master: str,
    memory: str = DRIVER_MEMORY,
    scratch: Path | None = None,
    log: Path | None = None,
    size: int = 0,
) -> SparkSession:
    """Return a session whose Java writes what it has to say to *log* (None: to nowhere).

    *memory* bounds the Java heap, *scratch* is where Spark spills, *size* is how many bytes of
    journals are to be read. Raises NoJavaError, and AnalyticsError when Spark does not start.
    """
    os.environ["JAVA_HOME"] = str(find_java_home())
    # Spark's own choice is the first python3 on the path, which knows nothing of this package.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    logging.getLogger("py4j").setLevel(logging.ERROR)
    conf = SparkConf().setMaster(master).setAll(list(_SETTINGS.items()))
    conf.set("spark.driver.memory", memory)
    early = _EARLY_CODE if size < LARGE_BYTES else ""
    conf.set("spark.driver.extraJavaOptions", _JAVA_OPTIONS + early)
    if scratch is not None:
        conf.set("spark.local.dir", str(scratch))
        conf.set("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    sink = log or Path(os.devnull)
    with sink.open("ab") as output:
        try:
            gateway: Any = launch_gateway(conf, {"stdout": output, "stderr": output})
            return SparkSession(SparkContext(gateway=gateway, conf=conf))
        except Exception as error:
            raise AnalyticsError(f"Spark did not start: {error}{_tail_of(log)}") from error


def register(session: SparkSession) -> None:
    """Make `spark.read.format("lockkeeper")` known to *session*, where Spark has not found it."""
    try:
        session.dataSource.register(LockkeeperDataSource)
    except AnalysisException as error:
        # Spark finds `pyspark_lockkeeper` by itself, and lets nobody take its place.
        if error.getCondition() != _KNOWN:
            raise


def suited(session: SparkSession, size: int) -> SparkSession:
    """Return a session like *session* that is quick for the reports of journals of *size* bytes.

    It is that of the same Spark with its own settings, views and functions: *session* is somebody
    else's, who has other things to do with it, perhaps meanwhile.
    """
    java: Any = session
    own = SparkSession(session.sparkContext, java._jsparkSession.cloneSession())
    chosen = _SMALL_SETTINGS if is_small(size) else _REPORT_SETTINGS
    if own.conf.get(_TASKS) == _TASKS_OF_SPARK:
        tasks = max(session.sparkContext.defaultParallelism, -(-size // PARTITION_BYTES))
        chosen = {_TASKS: str(tasks), **chosen}
    _set(own, chosen)
    return own


def is_small(size: int) -> bool:
    """Tell whether planning takes longer than working on journals of *size* bytes."""
    return size <= SMALL_BYTES


def join_without_broadcasts(session: SparkSession) -> None:
    """Let *session* answer the questions of reports, which join what is summed up."""
    _set(session, _NO_BROADCASTS)


def _set(session: SparkSession, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        session.conf.set(name, value)


def _tail_of(log: Path | None) -> str:
    if log is None or not log.exists():
        return ""
    lines = log.read_text("utf-8", "replace").splitlines()
    # Where in Spark's code it was says nothing to who has asked.
    told = [line for line in lines if not line.startswith("\tat ")][-5:]
    return "\n".join(["", *told])
