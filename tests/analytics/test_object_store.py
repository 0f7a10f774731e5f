"""Journals in an object store: the same rows over S3's protocol."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from journal_maker import JournalMaker, rows_of
from object_store import bucket, serving, upload
from pyspark.sql import SparkSession

from lockkeeper_analytics import job
from lockkeeper_analytics.tables import TABLES

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """Return where a server that speaks S3 listens."""
    with serving() as address:
        yield address


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Three files, the first in the archive."""
    maker = JournalMaker(tmp_path / "journal")
    maker.add(1, 1).clock(2).flush().roll().add(2, 3).flush().remove(1).clock(4).flush()
    maker.roll().statistics(5, depth=1).line("event", 6, event="stop").flush()
    archive = maker.directory / "data-archive"
    archive.mkdir()
    (maker.directory / "db-1.log").rename(archive / "db-1.log")
    return maker.directory


@pytest.fixture
def copy(store: str, journal: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of a copy of the journal in a bucket."""
    query = bucket(store, "copies", monkeypatch)
    upload(journal, "copies/kahadb", query)
    return f"s3://copies/kahadb?{query}"


def test_every_table_of_a_copy_in_a_bucket_has_the_same_rows(copy: str, journal: Path) -> None:
    for table in TABLES:
        expected = [{**row, "directory": copy} for row in rows_of(journal, table=table)]
        found = rows_of(f"journal={copy}", table=table)
        assert found == expected, table


def test_a_report_is_made_of_a_copy_in_a_bucket(
    copy: str, journal: Path, tmp_path: Path, spark: SparkSession
) -> None:
    outcome = job.analyze([copy], tmp_path / "report", reports=["inventory"], session=spark)
    assert outcome.records == len(rows_of(journal))
