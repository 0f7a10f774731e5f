"""Journals in an object store: the same rows over S3's protocol, from a server of its own process.

Moto wants other versions of libraries than the operator, so `uv` runs it in an environment of its
own, made at the first run.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from journal_maker import JournalMaker, rows_of
from pyarrow.fs import FileSystem
from pyspark.sql import SparkSession

from lockkeeper_analytics import job
from lockkeeper_analytics.tables import TABLES

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SERVER = "moto[server]==5.1.15"
SECONDS_MAX = 120


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """Return where a server that speaks S3 listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    place = ("-H", "127.0.0.1", "-p", address.rpartition(":")[2])
    uv = Path(sys.executable).with_name("uv")
    command = (uv, "tool", "run", "--from", SERVER, "moto_server", *place)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        wait_for(address)
        yield address
        server.terminate()


def wait_for(address: str) -> None:
    for _ in range(SECONDS_MAX * 10):
        try:
            urllib.request.urlopen(f"http://{address}/moto-api/", timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"no server at {address}; is PyPI there?")


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
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setitem(os.environ, name, "anyone")
    query = f"endpoint_override={store}&scheme=http&region=us-east-1"
    filesystem, _ = FileSystem.from_uri(f"s3://copies?{query}&allow_bucket_creation=true")
    filesystem.create_dir("copies")
    for path in journal.rglob("*.log"):
        with filesystem.open_output_stream(f"copies/kahadb/{path.relative_to(journal)}") as file:
            file.write(path.read_bytes())
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
