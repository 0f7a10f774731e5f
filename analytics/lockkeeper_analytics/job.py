"""The job behind `lockkeeper analyze`: directories in; a page, Parquet and JSON files out."""

import json
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lockkeeper_analytics.agreements.breaches import Verdict, verdicts_of
from lockkeeper_analytics.agreements.rules import Rule, parse_rules, reports_of
from lockkeeper_analytics.comparison.changes import Comparison, compare
from lockkeeper_analytics.comparison.runs import Run, found_run, given_run, run_of
from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.facts.journal import (
    AT_A_TIME,
    Journal,
    read_journals,
    settled,
)
from lockkeeper_analytics.narrowing import Narrowing
from lockkeeper_analytics.page.build import Made, build_page
from lockkeeper_analytics.page.labels import Tables
from lockkeeper_analytics.page.story import NEEDED
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.histories import kept_files, kept_for_bytes
from lockkeeper_analytics.reading.moments import moment
from lockkeeper_analytics.reading.partitions import journal_files
from lockkeeper_analytics.reading.pins import written_bytes
from lockkeeper_analytics.reports import GROUPS, REPORTS, USUAL
from lockkeeper_analytics.results import Read, json_of, summary_of, write_rows, write_summary
from lockkeeper_analytics.spark.collected import Collected, collect
from lockkeeper_analytics.spark.failures import reason_of
from lockkeeper_analytics.spark.session import (
    DRIVER_MEMORY,
    SMALL_BYTES,
    is_small,
    join_without_broadcasts,
    start_spark,
    suited,
)
from lockkeeper_analytics.tables.options import parse_options
from lockkeeper_analytics.texts import REPORT, views_behind

PAGE = "index.html"
LOG = "spark.log"
RECORDS = "records.parquet"
BODIES = "bodies"
"""The report on fields of bodies, which is made only if it is asked for."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job has written, how many records it read, verdicts on rules, the former run."""

    page: Path
    summary: Path
    records: int
    verdicts: tuple[Verdict, ...] = ()
    comparison: Comparison | None = None


class _Asked(NamedTuple):
    """What is asked for, checked: what is read, by which options, and when.

    And what is made of it: reports by their *names*, verdicts on rules, a comparison with a former
    run.
    """

    checked: ReadOptions
    options: Mapping[str, str]
    at: datetime
    names: tuple[str, ...]
    rules: tuple[Rule, ...]
    former: Run | None


def analyze(
    directories: Sequence[str],
    out: Path,
    *,
    destination: str = "",
    since: str = "",
    until: str = "",
    reports: Sequence[str] = (),
    rules: Sequence[str] = (),
    bodies: bool = False,
    masks: Sequence[str] = (),
    beside: str = "",
    latest: str = "",
    skip_corrupt: bool = False,
    keep_records: bool = False,
    master: str = "local[*]",
    memory: str = DRIVER_MEMORY,
    at_a_time: int = AT_A_TIME,
    tell: Tell = lambda _step: None,
    session: SparkSession | None = None,
) -> Outcome:
    """Read the journals in *directories* and write the report page and its figures to *out*.

    *destination* (names or wildcards, commas between), *since* and *until* (ISO 8601, ms, or how
    long ago: `24h`) narrow what is shown: everything is told from all records. With names of
    *reports* only these are made, and the page has only these. *rules*, such as `p99 > 5s for 10m`
    (`agreements/rules.py`), are held against the reports that they need. With *bodies* there is the
    report of that name, too, whose fields *masks* hide. Figures are compared with those of the run
    *beside*, a folder or URL; without one, with those of the run whose results are in *latest*
    (absent: *out*), if it was of the same. *keep_records* leaves all decoded records as Parquet,
    too, where Spark runs on this machine. *memory* bounds Spark's heap; what does not fit is
    spilled beside *out*. *at_a_time* bounds how many jobs Spark gets at once. *tell* hears of each
    step. The Spark of a *session* given is used; the session stays as it
    is. Raises AnalyticsError, and before Spark starts where it can.
    """
    place = session.sparkContext.master if session else master
    shared = _is_here(place)
    if keep_records and not shared:
        reason = f"is on this machine, where Spark on {place} does not write"
        raise AnalyticsError(f"--keep-records: {out / RECORDS} {reason}")
    now = datetime.now(UTC)
    options = {"destination": destination}
    options |= {"since": moment(since, now), "until": moment(until, now)}
    options["corrupt"] = "skip" if skip_corrupt else "fail"
    held = parse_rules(rules)
    names = known_reports(reports and sorted({*reports, *reports_of(held)}), bodies)
    hidden = {"bodyMask": ",".join(masks)}
    checked = parse_options({**options, **hidden, "path": ",".join(directories)})
    former = _former(beside, latest or str(out), checked.directories, destination, names)
    asked = _Asked(checked, options, now, names, held, former)
    journals = [journal_files(directory) for directory in checked.directories]
    size = written_bytes(journals, SMALL_BYTES) + sum(map(kept_for_bytes, checked.directories))
    files = sum(map(len, [*journals, *map(kept_files, checked.directories)]))
    out.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".scratch-", dir=out))
    try:
        tell("starting Spark")
        with _spark(session, master, memory, scratch, out / LOG, size) as spark:
            tell(f"reading {files} journal file{'' if files == 1 else 's'}")
            folder = scratch / "frames" if shared else None
            journal = _settled(spark, asked, folder, is_small(size), at_a_time, tell)
            outcome = _write(journal, out, asked, at_a_time, tell)
            if keep_records:
                _keep(scratch / "frames" / "records", out / RECORDS)
    except (PySparkException, Py4JError, ConnectionError, EOFError) as error:
        raise AnalyticsError(reason_of(error, out / LOG, memory)) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    (out / LOG).unlink(missing_ok=True)
    return outcome


def _settled(
    spark: SparkSession,
    asked: _Asked,
    folder: Path | None,
    small: bool,
    at_a_time: int,
    tell: Tell,
) -> Journal:
    """Return the journals that are read; *folder* None: executors are on other machines."""
    checked = asked.checked
    # Executors that are lost are replaced, and what they had read is read again.
    is_pinned = folder is None
    hidden = {"bodyMask": ",".join(checked.body_masks)}
    source = read_journals(spark, checked.directories, checked.skip_corrupt, is_pinned, hidden)
    narrowing = Narrowing(checked.destinations, checked.since, checked.until)
    return settled(source, folder, narrowing, at_a_time, tell, small)


@contextmanager
def _spark(
    given: SparkSession | None, master: str, memory: str, scratch: Path, log: Path, size: int
) -> Iterator[SparkSession]:
    """Have a session that suits the work, of the Spark of the one *given*, or of one's own."""
    if given is None:
        # That of a run which failed says nothing of this one.
        log.unlink(missing_ok=True)
    spark = given or start_spark(master, memory, scratch, log, size)
    try:
        yield suited(spark, size)
    finally:
        if given is None:
            # A Java that has ended has nothing to stop.
            with suppress(ConnectionError, Py4JError):
                spark.stop()


def known_reports(names: Sequence[str], bodies: bool = False) -> tuple[str, ...]:
    """Return *names*, or those of all usual reports, and `bodies` where that is asked for, too.

    Raises AnalyticsError for one that there is not.
    """
    for name in names:
        if name not in REPORTS:
            close = get_close_matches(name, REPORTS, n=1, cutoff=0.5)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            raise AnalyticsError(f"no report {name!r}{meant} (known: {', '.join(REPORTS)})")
    asked = {*(names or USUAL), *((BODIES,) if bodies else ())}
    return tuple(name for name in REPORTS if name in asked)


def _former(
    beside: str, latest: str, directories: tuple[str, ...], destination: str, names: Sequence[str]
) -> Run | None:
    """Return the run *beside*, or the one found in *latest* if it is of the same.

    Raises AnalyticsError, too, where none is to be compared with the one given.
    """
    if not beside:
        return found_run(latest, directories, destination)
    missing = [name for name in NEEDED if name not in names]
    if missing:
        reason = f"figures are told from {', '.join(NEEDED)}: ask for these reports, or for all"
        raise AnalyticsError(f"--beside: {reason}")
    return given_run(beside)


def _write(journal: Journal, out: Path, asked: _Asked, at_a_time: int, tell: Tell) -> Outcome:
    """Write reports for machines, and the page over them."""
    places, since = asked.checked.directories, asked.checked.since
    records = journal.count()
    read = Read(places, asked.options, since, records, _version(), asked.at)
    join_without_broadcasts(journal.frames.session)
    tables, counts = _written_reports(journal, out, asked.names, at_a_time, tell)
    rules = asked.rules
    if rules:
        tell(f"holding the reports against {len(rules)} rule{'' if len(rules) == 1 else 's'}")
    verdicts = verdicts_of(rules, out) if rules else ()
    tell("writing the page")
    summary = summary_of(tables, counts, verdicts, read, PAGE)
    now = run_of(json.loads(json_of(summary)))
    comparison = compare(asked.former, now) if asked.former and now else None
    page = out / PAGE
    made = Made(read.directories, read.at, read.version, counts, verdicts, comparison)
    page.write_text(build_page(tables, made), "utf-8")
    path = write_summary(summary, comparison, out)
    return Outcome(page, path, read.records, verdicts, comparison)


def _written_reports(
    journal: Journal, out: Path, names: Sequence[str], at_a_time: int, tell: Tell
) -> tuple[Tables, dict[str, int]]:
    """Write reports for machines, and return their rows and how many they are in all.

    Those of a group are one query. Several groups are worked out at a time, and each report is told
    of when its turn to be written has come, in the page's order: the ones before it are done.
    """
    tables: Tables = {}
    counts: dict[str, int] = {}
    pool = ThreadPoolExecutor(at_a_time)
    with warnings.catch_warnings():
        # Spark warns of a pandas that it does not know; none is used here.
        warnings.simplefilter("ignore", FutureWarning)
        try:
            groups = _groups_of(names)
            # What takes longest begins first: nobody else is busy when it would be the last.
            answers = {
                group[0]: pool.submit(_answer, group, journal, out)
                for group in sorted(groups, key=_length_behind, reverse=True)
            }
            in_order = [(name, answers[group[0]]) for group in groups for name in group]
            for number, (name, answer) in enumerate(in_order, 1):
                tell(f"report {number} of {len(names)}: {REPORTS[name].title}")
                found = answer.result()[name]
                counts[name] = found.rows
                tables[name] = write_rows(REPORTS[name], found, out)
        finally:
            pool.shutdown(cancel_futures=True)
    return tables, counts


def _groups_of(names: Sequence[str]) -> list[list[str]]:
    """Return *names*, which are in the page's order, by the headings that they stand under."""
    groups = ([each.name for each in group if each.name in names] for group in GROUPS.values())
    return [group for group in groups if group]


def _length_behind(names: Sequence[str]) -> int:
    """Return how long the SQL is that reports are told by: so long they take, more or less."""
    return sum(map(len, views_behind({name + REPORT for name in names}).values()))


def _answer(names: Sequence[str], journal: Journal, out: Path) -> dict[str, Collected]:
    questions = {name: journal.question(name) for name in names}
    return collect(journal.frames.session, questions, out)


def _is_here(master: str) -> bool:
    """Tell whether what Spark's *master* makes work writes to the disks of this machine."""
    return master.startswith("local")


def _keep(records: Path, target: Path) -> None:
    """Put *records* at *target*; what was there goes with the folder that *records* was in."""
    if target.exists():
        target.rename(records.with_name("earlier"))
    records.rename(target)


def _version() -> str:
    try:
        return version("lockkeeper-mq")
    except PackageNotFoundError:
        return ""
