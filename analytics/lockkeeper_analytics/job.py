"""The job behind `lockkeeper analyze`: directories in, a page and Parquet files out."""

import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.facts.journal import Journal, journal_of, read_records, settled
from lockkeeper_analytics.page.build import build_page
from lockkeeper_analytics.page.story import Row, Tables
from lockkeeper_analytics.reading.partitions import plan_parts
from lockkeeper_analytics.reports import REPORTS
from lockkeeper_analytics.spark.session import DRIVER_MEMORY, start_session
from lockkeeper_analytics.tables.options import parse_options

PAGE = "index.html"
LOG = "spark.log"
RECORDS = "records.parquet"

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job has written; no page where only some reports were asked for."""

    page: Path | None
    reports: tuple[Path, ...]
    records: int


def analyze(
    directories: Sequence[str],
    out: Path,
    *,
    destination: str = "",
    since: str = "",
    until: str = "",
    reports: Sequence[str] = (),
    skip_corrupt: bool = False,
    keep_records: bool = False,
    master: str = "local[*]",
    memory: str = DRIVER_MEMORY,
    tell: Tell = lambda _step: None,
    session: SparkSession | None = None,
) -> Outcome:
    """Read the journals in *directories* and write the report page and its figures to *out*.

    *destination* (names or wildcards, commas between), *since* and *until* (ISO 8601 or ms) narrow
    what is read. With names of *reports* only these are made, and no page. *keep_records* leaves
    the decoded records as Parquet, too. *memory* bounds Spark's heap; what does not fit is spilled
    beside *out*. *tell* hears of each step. A *session* given is used and left running. Raises
    AnalyticsError, and before Spark starts where it can.
    """
    options = {"destination": destination, "since": since, "until": until}
    options["corrupt"] = "skip" if skip_corrupt else "fail"
    names = known_reports(reports)
    checked = parse_options({**options, "path": ",".join(directories)})
    files = len({part.path for part in plan_parts(checked.directories, checked.since)})
    out.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".scratch-", dir=out))
    try:
        tell("starting Spark")
        spark = session or start_session(master, memory, scratch, out / LOG)
        try:
            tell(f"reading {files} journal file{'' if files == 1 else 's'}")
            records = read_records(spark, list(checked.directories), **options)
            shared = spark.sparkContext.master.startswith("local")
            journal = settled(journal_of(records), scratch / "frames" if shared else None, tell)
            outcome = _write(journal, out, names, list(checked.directories), tell)
            if keep_records:
                _keep(scratch / "frames" / "records", out / RECORDS)
        except PySparkException as error:
            raise AnalyticsError(_reason(error)) from error
        finally:
            if session is None:
                spark.stop()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    (out / LOG).unlink(missing_ok=True)
    return outcome


def known_reports(names: Sequence[str]) -> tuple[str, ...]:
    """Return *names*, or those of all reports; raises AnalyticsError for one that there is not."""
    for name in names:
        if name not in REPORTS:
            raise AnalyticsError(f"no report {name!r} (known: {', '.join(REPORTS)})")
    return tuple(dict.fromkeys(names)) or tuple(REPORTS)


def _write(
    journal: Journal, out: Path, names: Sequence[str], directories: list[str], tell: Tell
) -> Outcome:
    """Write reports as Parquet, and the page over them if these are all."""
    tables: Tables = {}
    paths = []
    for name in names:
        tell(f"report: {name.replace('_', ' ')}")
        with warnings.catch_warnings():
            # Spark warns of a pandas that it does not know; none is used here.
            warnings.simplefilter("ignore", FutureWarning)
            found = REPORTS[name](journal).toArrow()
        path = out / f"{name}.parquet"
        pq.write_table(found, path)
        paths.append(path)
        rows: list[Row] = found.to_pylist()
        tables[name] = rows
    if set(names) != set(REPORTS):
        return Outcome(None, tuple(paths), journal.records.count())
    tell("writing the page")
    page = out / PAGE
    page.write_text(build_page(tables, directories, datetime.now(UTC), _version()), "utf-8")
    return Outcome(page, tuple(paths), sum(row["records"] for row in tables["inventory"]))


def _keep(records: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    shutil.move(records, target)


def _version() -> str:
    try:
        return version("lockkeeper")
    except PackageNotFoundError:
        return ""


def _reason(error: PySparkException) -> str:
    """Return the line of Spark's error that names the cause: what our own reader raised."""
    ours = ("lockkeeper_analytics.errors.", "lockkeeper.journal.errors.", "OSError", "MemoryError")
    lines = [line.strip() for line in str(error).splitlines()]
    for line in reversed(lines):
        if line.startswith(ours):
            return line.partition(": ")[2] or line
    return next((line for line in lines if line), type(error).__name__)
