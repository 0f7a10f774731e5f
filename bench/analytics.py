"""How fast the analytics are, every line of the table in docs/analytics-performance.md in one run.

The demo (`demo/run.py`) writes its journal first, unless `--demo` names one; then Spark reports on
it, and DuckDB answers the same reports. Decoding is measured in this process, with one thread.
`bench/big_journal.py` writes a large journal for two cores. `--into` writes the table between the
marks of a page, with the machine and the load that it had.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import big_journal
import psutil
import pyarrow as pa
from spark_run import analyze, markdown, mebibytes

from lockkeeper.journal.batch import build_batch
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.records import RemoveMessage
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper_analytics.facts.journal import RECORD_COLUMNS
from lockkeeper_analytics.reports import USUAL
from lockkeeper_analytics.sql import query
from lockkeeper_analytics.tables import TABLES
from lockkeeper_analytics.tables.options import parse_options

BEGIN, END = "<!-- measured -->\n", "<!-- /measured -->"
HEADS = ["", "aim", "measured"]
DEMO = Path(__file__).parents[1] / "demo" / "run.py"
FEW_REPORTS = ("totals", "rates", "latency", "backlog")
"""Reports that `lockkeeper sql` is asked for one by one: of everything, each of its own kind."""

Line = tuple[str, str, str]
"""What was measured, the aim of it, and what came out."""


def demo_lines(journal: Path, out: Path) -> Iterator[Line]:
    """Measure the demo's report by Spark and by DuckDB, and views by `lockkeeper sql`."""
    size = size_of(journal)
    run = analyze([journal], out, "local[*]")
    began = time.monotonic()
    all_rows = ", ".join(f"(SELECT count(*) FROM {name}_report)" for name in USUAL)
    ask(f"SELECT {all_rows}", journal)
    by_duckdb = time.monotonic() - began
    what = f"demo's report ({size / 1e6:.0f} MB), wall; beside the same reports by DuckDB"
    yield what, "≤ 40 s", f"{run.seconds:.0f} s / {by_duckdb:.0f} s"
    yield "Spark jobs for all reports", "≤ 40", str(run.logged.jobs)
    firsts = [ask(f"FROM {name}_report", journal) for name in FEW_REPORTS]
    together = ask(
        f"SELECT {', '.join(f'(SELECT count(*) FROM {name}_report)' for name in FEW_REPORTS)}",
        journal,
    )
    more = max(0.0, together - max(firsts)) / (len(FEW_REPORTS) - 1)
    yield "`lockkeeper sql`, the slowest view of the demo", "< 10 s", f"{max(firsts):.1f} s"
    yield "`lockkeeper sql`, each further view of one query", "< 0.5 s", f"{more:.2f} s"
    yield "decode of the reports' columns, demo, a core", "≥ 100 MB/s", decoding(journal)


def ask(text: str, journal: Path) -> float:
    """Have *text* answered and return the seconds that it took."""
    began = time.monotonic()
    for _ in query.run(text, {"path": str(journal)}):
        pass
    return time.monotonic() - began


def decoding(journal: Path) -> str:
    """Return how many MB of *journal* are decoded in a second of processor time."""
    options = parse_options({"path": str(journal), "columns": ",".join(RECORD_COLUMNS)})
    began = time.process_time()
    for _ in TABLES["records"].batches(options):
        pass
    return f"{size_of(journal) / 1e6 / (time.process_time() - began):.0f} MB/s"


def write_removes(directory: Path, megabytes: float) -> None:
    """Write a journal of nothing but removes: what consumers write who drain a backlog."""
    directory.mkdir()
    producer, place = ProducerId("ID:gate-1-40122-1795261934990-3:1", 1, 1), queue("DEPARTURES")
    written = first = 0
    with (directory / "db-1.log").open("wb") as file:
        while written < megabytes * 1e6:
            gone = [str(MessageId(producer, number, 0)) for number in range(first, first + 100)]
            records = [encode_record(RemoveMessage(place, each, None, None)) for each in gone]
            written += file.write(build_batch(b"".join(records))[:-5])
            first += 100


def large_lines(journal: Path, out: Path, gigabytes: float) -> Iterator[Line]:
    """Measure the report on a large journal on two cores."""
    big_journal.make(journal, gigabytes)
    run = analyze([journal], out, "local[2]")
    size = size_of(journal) / 1e9
    aim = f"≤ {120 * size / 5:.0f} s (120 s for 5 GB), heap ≤ 1 GiB"
    java = mebibytes(run.peaks.java)
    told = f"{run.seconds:.0f} s; Java {java} in all, its heap bounded to 1 GiB"
    yield f"{size:.1f} GB, two cores", aim, told


def size_of(journal: Path) -> int:
    """Return how many bytes the files of *journal* have."""
    return sum(path.stat().st_size for path in journal.glob("db-*.log"))


def lines(asked: argparse.Namespace, folder: Path) -> Iterator[Line]:
    """Yield every line of the table, as it is measured."""
    journal = asked.demo
    if journal is None:
        command = [sys.executable, str(DEMO), "--no-report", "--directory", str(folder / "demo")]
        subprocess.run([*command, "--departures", str(asked.departures)], check=True)
        journal = folder / "demo" / "journal"
    yield from demo_lines(journal, folder / "report")
    write_removes(folder / "removes", asked.megabytes)
    yield "decode of a journal of nothing but removes", "≥ 50 MB/s", decoding(folder / "removes")
    yield from large_lines(folder / "large", folder / "report", asked.gigabytes)


def page_part(measured: list[Line]) -> str:
    """Return the table, and where and when it was measured."""
    memory = psutil.virtual_memory().total / 1e9
    load = os.getloadavg()[2]
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {memory:.0f} GB of memory; load of "
        f"the last 15 minutes {load:.1f}, this run among it.\n\n"
        f"{markdown(HEADS, [list(line) for line in measured])}\n"
    )


def put_into(page: Path, text: str) -> None:
    """Write *text* between the marks of *page*."""
    before, begin, rest = page.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", "utf-8")


def main() -> None:
    """Measure everything, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--demo", type=Path, help="journal of a demo; by default one is run")
    parser.add_argument("--departures", type=int, default=0, help="of the demo; 0: all")
    parser.add_argument("--megabytes", type=float, default=64, help="of the journal of removes")
    parser.add_argument("--gigabytes", type=float, default=3.0, help="of the large journal")
    parser.add_argument("--directory", type=Path, help="where journals are written")
    parser.add_argument("--into", type=Path, help="page whose table is to be written")
    asked = parser.parse_args()
    pa.set_cpu_count(1)
    with TemporaryDirectory(prefix="lockkeeper-bench-", dir=asked.directory) as folder:
        text = page_part(list(lines(asked, Path(folder))))
    print(text)
    if asked.into:
        put_into(asked.into, text)


if __name__ == "__main__":
    main()
