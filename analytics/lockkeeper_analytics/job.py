"""The job: journals in, a page and Parquet files out."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from lockkeeper.journal.files import list_data_files
from lockkeeper_analytics.errors import NoJournalError
from lockkeeper_analytics.html_page import write_page
from lockkeeper_analytics.journal import journal_of, read_records, settled
from lockkeeper_analytics.reports import REPORTS
from lockkeeper_analytics.session import start_session

ARCHIVE = "data-archive"


def analyze(
    directories: Sequence[Path],
    out: Path,
    master: str = "local[*]",
    say: Callable[[str], None] = lambda text: None,
    **options: str,
) -> Path:
    """Write the report of the journals in *directories* into *out*; returns the page's path.

    A `data-archive` below a directory is read too. *options* are the data source's
    (`destination`, `since`). Raises AnalyticsError.
    """
    places = [place for directory in directories for place in _with_archive(directory)]
    out.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="lockkeeper-"))
    try:
        say("starting Spark")
        session = start_session(master, scratch=scratch, log=scratch / "spark.log")
        try:
            say(f"reading {', '.join(map(str, directories))}")
            records = read_records(session, places, **options)
            journal = settled(journal_of(records), scratch)
            reports: dict[str, pd.DataFrame] = {}
            for name, report in REPORTS.items():
                say(f"report: {name.replace('_', ' ')}")
                frame = report(journal).toPandas()
                frame.to_parquet(out / f"{name}.parquet", index=False)
                reports[name] = frame
        finally:
            session.stop()
        say("writing the page")
        return write_page(out, [str(directory) for directory in directories], reports)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _with_archive(directory: Path) -> list[str]:
    if not directory.is_dir():
        raise NoJournalError(f"{directory}: no such directory")
    if not list_data_files(directory):
        raise NoJournalError(f"{directory}: no journal here, that is no file db-1.log or the like")
    archive = directory / ARCHIVE
    return [str(directory), str(archive)] if archive.is_dir() else [str(directory)]
