"""The bench of the analytics: its journals are read, its figures are those of Spark's log."""

import json
import subprocess
import sys
from pathlib import Path

import analytics
import analytics_cores
import pytest
import spark_run

from lockkeeper_analytics.tables import TABLES
from lockkeeper_analytics.tables.options import parse_options

BENCH = Path(__file__).parents[2] / "bench"


def test_a_journal_of_removes_has_nothing_else(tmp_path: Path) -> None:
    analytics.write_removes(tmp_path / "journal", 0.1)
    options = parse_options({"path": str(tmp_path / "journal"), "columns": "kind,message_id"})
    rows = [row for each in TABLES["records"].batches(options) for row in each.to_pylist()]
    assert {row["kind"] for row in rows} == {"remove"}
    assert len({row["message_id"] for row in rows}) == len(rows) > 1000
    assert analytics.decoding(tmp_path / "journal").endswith(" MB/s")


def test_the_event_log_is_summed_up(tmp_path: Path) -> None:
    metrics = {"JVM GC Time": 500, "Shuffle Write Metrics": {"Shuffle Bytes Written": 7}}
    events = [
        {"Event": "SparkListenerJobStart"},
        {"Event": "SparkListenerTaskEnd", "Task Metrics": metrics},
        {"Event": "SparkListenerTaskEnd", "Task Metrics": metrics},
        {"Event": "SparkListenerTaskEnd"},
        {"Event": "SparkListenerStageCompleted"},
    ]
    (tmp_path / "local-1").write_text("\n".join(map(json.dumps, events)))
    assert spark_run.logged_in(tmp_path) == (1, 1, 2, 14, 1.0)


def test_the_table_goes_between_the_marks_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n\n{analytics.BEGIN}old{analytics.END}\n\nAfter.\n")
    for lines in ([("what", "≤ 1 s", "2 s")], [("what", "≤ 1 s", "3 s")]):
        analytics.put_into(page, analytics.page_part(lines))
    text = page.read_text()
    assert "| what | ≤ 1 s | 3 s |" in text and "2 s" not in text and "old" not in text
    assert text.startswith("# Before\n\n") and text.endswith("\n\nAfter.\n")


def test_a_terabyte_is_told_from_the_rate_of_a_core() -> None:
    told = analytics_cores.told_of_a_terabyte(2_000_000_000, 100, cores=2)
    assert told.startswith("At 10.0 MB/s of a core, a terabyte takes 32 cores 0.9 hours")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_runs_with_fewer_and_more_cores_are_compared() -> None:
    command = [sys.executable, str(BENCH / "analytics_cores.py"), "--gigabytes", "0.07"]
    command += ["--brokers", "2", "--fewer", "1", "--report", "totals"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| `local")]
    assert [row[:2] for row in rows] == [["| `local[1]`", "1"], *[["| `local[2]`", "2"]] * 2]
    assert "a terabyte takes 32 cores" in done.stdout
