"""One run of `lockkeeper analyze`, with what Spark's event log and its processes tell of it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil
from big_journal import MEBIBYTE, SAMPLE_SECONDS, Peaks

_SETTINGS = """\
spark.eventLog.enabled true
spark.eventLog.compress false
spark.eventLog.rolling.enabled false
spark.eventLog.dir {}
"""
_WORKERS = ("pyspark.daemon", "pyspark.sql.worker")


class Logged(NamedTuple):
    """What the event log says: jobs, stages and tasks; bytes shuffled; seconds of GC."""

    jobs: int
    stages: int
    tasks: int
    shuffled: int
    gc_seconds: float


class SparkRun(NamedTuple):
    """A run: its wall time in seconds, bytes that Python workers have read from files, peaks."""

    seconds: float
    bytes_read: int
    peaks: Peaks
    logged: Logged


def analyze(
    journals: list[Path], out: Path, master: str, *more: str, cores: int | None = None
) -> SparkRun:
    """Have *journals* analysed on *master*, with so many cores for all of it, by default every one.

    Raises RuntimeError when that fails.
    """
    with TemporaryDirectory(prefix="lockkeeper-bench-") as folder:
        events = Path(folder) / "events"
        events.mkdir()
        (Path(folder) / "spark-defaults.conf").write_text(_SETTINGS.format(events.as_uri()))
        named = [f"{each.name}={each}" for each in journals]
        command = [sys.executable, "-m", "lockkeeper_analytics", *named, "--out", str(out)]
        environment = {**os.environ, "SPARK_CONF_DIR": folder}
        everything = sorted(os.sched_getaffinity(0))
        began = time.monotonic()
        with (Path(folder) / "output").open("w+b") as output:
            process = subprocess.Popen(
                [*command, "--master", master, *more], env=environment, stdout=output, stderr=output
            )
            # Before it has begun anything: what it begins inherits that.
            os.sched_setaffinity(process.pid, everything[:cores])
            peaks, read = _watched(process)
            seconds = time.monotonic() - began
            if process.returncode:
                output.seek(0)
                raise RuntimeError(output.read().decode("utf-8", "replace"))
        return SparkRun(seconds, read, peaks, logged_in(events))


def _watched(process: "subprocess.Popen[bytes]") -> tuple[Peaks, int]:
    """Sample the processes until the first one ends; return peaks, and what workers have read.

    A worker's figure counts calls of `read`: files, and not the sockets over which Spark talks.
    """
    peaks, read = Peaks(), dict[int, int]()
    root = psutil.Process(process.pid)
    while process.poll() is None:
        peaks.sample(root, [])
        for child in _children_of(root):
            try:
                if any(each in word for word in child.cmdline() for each in _WORKERS):
                    read[child.pid] = child.io_counters().read_chars
            except psutil.Error:
                continue
        time.sleep(SAMPLE_SECONDS)
    return peaks, sum(read.values())


def _children_of(root: psutil.Process) -> list[psutil.Process]:
    try:
        return list(root.children(recursive=True))
    except psutil.Error:
        return []


def logged_in(folder: Path) -> Logged:
    """Return what the event log in *folder* says."""
    jobs = stages = tasks = shuffled = collected = 0
    (path,) = [each for each in folder.rglob("*") if each.is_file()]
    with path.open("rb") as lines:
        for event in map(json.loads, lines):
            name = event["Event"]
            jobs += name == "SparkListenerJobStart"
            stages += name == "SparkListenerStageCompleted"
            if name == "SparkListenerTaskEnd" and "Task Metrics" in event:
                metrics = event["Task Metrics"]
                tasks += 1
                shuffled += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                collected += metrics["JVM GC Time"]
    return Logged(jobs, stages, tasks, shuffled, collected / 1000)


def mebibytes(size: int) -> str:
    """Return *size* for a table."""
    return f"{size / MEBIBYTE:,.0f} MiB"


def markdown(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table whose columns behind the first one are figures."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(map(table_line, lines))


def table_line(cells: list[str]) -> str:
    """Return one line of a table."""
    return f"| {' | '.join(cells)} |"
