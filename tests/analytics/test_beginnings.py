"""`until` gives the beginning of a journal, however it is cut and whatever tells no time."""

import random
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from journal_frames import dicts, journal_in
from journal_maker import START, JournalMaker, rows_of
from pyspark.sql import SparkSession
from test_cuts import Counted

from lockkeeper.journal.files import data_file_id
from lockkeeper_analytics.facts.journal import journal_of
from lockkeeper_analytics.narrowing import Narrowing
from lockkeeper_analytics.reading import beginnings, edges, partitions
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.batches import read_chunks
from lockkeeper_analytics.spark.datasource import LockkeeperDataSource
from lockkeeper_analytics.spark.stream import ReadMaxBytes
from lockkeeper_analytics.tables import TABLES
from lockkeeper_analytics.tables.options import parse_options

PLACE = "file_id,offset"


def journal(directory: Path, seed: int) -> None:
    """Write many small files, most of which tell no time; clocks run back now and then."""
    chance = random.Random(seed)
    maker, at = JournalMaker(directory), 0
    for number in range(chance.randrange(2, 50)):
        at += chance.choice((0, 5, 100))
        match chance.randrange(12):
            case 0:
                maker.add(number, at - chance.choice((0, 0, 300)))
            case 1:
                maker.clock(at)
            case _:
                maker.remove(number)
        if chance.random() < 0.7:
            maker.flush()
            if chance.random() < 0.6:
                maker.roll()
    maker.remove(0).flush()


def known_younger(directory: Path, until: int) -> list[bool]:
    """Tell of each record whether it, or one before it, says that it is younger."""
    with ExitStack() as patches:
        patches.enter_context(patch.object(partitions, "NEIGHBOURS_MAX", 1000))
        rows = rows_of(directory, columns="written_after")
    times = [row["written_after"] for row in rows]
    return [time is not None and time.timestamp() * 1000 > until for time in times]


def known_until(directory: Path, until: int) -> list[dict]:
    """Return the rows up to the first one that says, or stands behind one that does, too late."""
    younger = known_younger(directory, until)
    return rows_of(directory, columns=PLACE)[: younger.index(True) if True in younger else None]


def streamed(directory: Path, until: int, bytes_max: int) -> list[dict]:
    """Read a journal until a time as a stream does, while files are written one by one."""
    whole = {path.name: path.read_bytes() for path in directory.iterdir()}
    names = sorted(whole, key=data_file_id)
    with TemporaryDirectory() as folder:
        options = {"path": folder, "columns": PLACE, "until": str(until)}
        reader = LockkeeperDataSource(options).streamReader(None)
        start, found = {}, []
        for name in names:
            Path(folder, name).write_bytes(whole[name])
            start = start or reader.initialOffset()
            while (end := reader.latestOffset(start, ReadMaxBytes(bytes_max))) != start:
                for piece in reader.partitions(start, end):
                    found += [row for batch in reader.read(piece) for row in batch.to_pylist()]
                start = end
        reader.stop()
    return found


def analysed(session: SparkSession, directory: Path, until: int) -> list[dict]:
    """Return the records that `lockkeeper analyze` tells everything from."""
    source = journal_in(session, directory).source
    records = journal_of(source, Narrowing(until=until)).frame("records")
    return dicts(records.select(*PLACE.split(",")).orderBy(*PLACE.split(",")))


@settings(max_examples=40, deadline=None, phases=[Phase.generate])
@given(
    seed=st.integers(0, 2**32),
    at=st.integers(-10, 2500),
    chunk_bytes=st.integers(100, 3000),
    look_bytes=st.sampled_from([200, edges.LOOK_BYTES]),
    bytes_max=st.integers(100, 4000),
    apart=st.sampled_from([300, beginnings.CLOCKS_APART_MAX]),
)
def test_what_was_until_then_is_a_beginning_of_the_journal(
    seed, at, chunk_bytes, look_bytes, bytes_max, apart
):
    with TemporaryDirectory() as folder, ExitStack() as patches:
        directory = Path(folder) / "journal"
        journal(directory, seed)
        until = START + at
        expected = known_until(directory, until)
        patches.enter_context(patch.object(edges, "LOOK_BYTES", look_bytes))
        patches.enter_context(patch.object(beginnings, "CLOCKS_APART_MAX", apart))

        def in_small_chunks(*asked, **others):
            return read_chunks(*asked, **others, chunk_bytes=chunk_bytes)

        patches.enter_context(patch.object(beginnings, "read_chunks", in_small_chunks))
        assert rows_of(directory, columns=PLACE, until=str(until)) == expected
        assert streamed(directory, until, bytes_max) == expected
        options = parse_options({"path": str(directory), "columns": PLACE, "until": str(until)})
        some = replace(options, files=(3, 9))
        found = [row for batch in TABLES["records"].batches(some) for row in batch.to_pylist()]
        assert found == [row for row in expected if 3 <= row["file_id"] <= 9]


@pytest.mark.spark
@pytest.mark.slow
def test_an_analysis_tells_everything_from_the_same_records(spark):
    for seed in range(12):
        with TemporaryDirectory() as folder:
            directory = Path(folder) / "journal"
            journal(directory, seed)
            for until in (START + 40, START + 400):
                expected = known_until(directory, until)
                assert analysed(spark, directory, until) == expected


@pytest.fixture
def maker(tmp_path):
    """Make a journal with five files that tell no time behind the one that does."""
    maker = JournalMaker(tmp_path / "journal").add(1, 0).add(2, 1000).flush().roll()
    for number in range(5):
        maker.remove(100 + number).flush().roll()
    return maker.remove(1).flush()


def test_a_message_waits_as_it_did_then(maker):
    rows = rows_of(maker.directory, table="messages", until=str(START + 500))
    assert [row["outcome"] for row in rows] == ["pending"]


def test_no_file_is_looked_at_behind_the_time_and_never_the_last(maker, monkeypatch):
    counted = Counted(monkeypatch)
    options = parse_options({"path": str(maker.directory), "until": str(START + 5000)})
    assert len(TABLES["records"].plan(options)) == 7
    assert counted.read["db-6.log"] > 0
    whole = counted.read["db-6.log"] + counted.read["db-7.log"]
    counted.read.clear()
    assert len(TABLES["records"].plan(replace(options, until=START + 500))) == 1
    assert counted.read["db-6.log"] + counted.read["db-7.log"] <= whole


HOUR = 3_600_000


@pytest.fixture
def long(tmp_path):
    """Make a journal with a file an hour for more than a week, each of 20 KB."""
    maker = JournalMaker(tmp_path / "journal")
    for number in range(200):
        maker.add(number, HOUR * number, properties={"x": "y" * 20_000}).flush().roll()
    return maker.directory


@pytest.mark.parametrize("hours", [-1, 0, 7, 99, 150, 198, 199, 1000])
def test_a_driver_looks_at_few_heads(long, monkeypatch, hours):
    counted = Counted(monkeypatch)
    monkeypatch.setattr(edges, "LOOK_BYTES", 4096)
    options = parse_options({"path": str(long), "until": str(START + HOUR * hours)})
    parts = TABLES["records"].plan(options)
    # The first file that tells later is read, too: what of it was before only it tells.
    assert len(parts) == min(max(hours + 2, 1), 200)
    assert len(counted.read) <= 10
    assert sum(counted.read.values()) < 0.06 * sum(path.stat().st_size for path in long.iterdir())


def test_filters_of_a_query_choose_rows_and_no_beginning(maker):
    directory = maker.roll().clock(300).flush().directory
    options = parse_options({"path": str(directory), "columns": PLACE})
    chosen: ReadOptions = replace(options, at_most=START + 500)
    found = [row for batch in TABLES["records"].batches(chosen) for row in batch.to_pylist()]
    assert [row["file_id"] for row in found] == [1, 6, 7, 8]
