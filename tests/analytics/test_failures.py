"""Failures of Spark: a line that says what became of it, and what to do."""

import subprocess
import sys

import psutil
import pytest
from journal_maker import JournalMaker
from py4j.protocol import Py4JNetworkError

from lockkeeper_analytics.spark.failures import reason_of

NO_ANSWER = Py4JNetworkError("Answer from Java side is empty")
OUT_OF_MEMORY = "java.lang.OutOfMemoryError: Java heap space\n"


def test_a_java_without_memory_is_told_as_that(tmp_path):
    log = tmp_path / "spark.log"
    log.write_text(f"WARN something\n{OUT_OF_MEMORY}\tat somewhere\n", "utf-8")
    said = "Spark ran out of memory with a heap of 1g: give it more with --memory"
    assert reason_of(NO_ANSWER, log, "1g") == said
    # More heap would help neither: what is short is threads, or room for classes.
    log.write_text("java.lang.OutOfMemoryError: unable to create native thread\n", "utf-8")
    ended = "Spark has ended before the reports were written"
    assert reason_of(NO_ANSWER, log, "1g") == f"{ended}; {log} has what it said"
    log.unlink()
    assert reason_of(NO_ANSWER, log, "1g") == reason_of(EOFError(), log, "1g") == ended


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_whose_java_is_killed_says_so_in_one_line(tmp_path):
    maker = JournalMaker(tmp_path / "journal").add(1, 0).remove(1).clock(1).flush()
    out = tmp_path / "report"
    out.mkdir()
    # What a former run left is no word about this one.
    (out / "spark.log").write_text(OUT_OF_MEMORY, "utf-8")
    command = [sys.executable, "-m", "lockkeeper_analytics", str(maker.directory)]
    with subprocess.Popen(
        [*command, "--out", str(out)], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        while "matching acknowledgements" not in process.stderr.readline():
            assert process.poll() is None
        children = psutil.Process(process.pid).children(recursive=True)
        (java,) = [each for each in children if each.name() == "java"]
        java.kill()
        said = process.stderr.read()
    assert process.returncode == 1
    log = out / "spark.log"
    assert said.splitlines()[-1] == (
        f"lockkeeper: Spark has ended before the reports were written; {log} has what it said"
    )
    assert OUT_OF_MEMORY not in log.read_text("utf-8")
    assert [each.name for each in out.iterdir()] == ["spark.log"]
