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
from journal_maker import START, JournalMaker, rows_of
from test_cuts import Counted

from lockkeeper_analytics.reading import beginnings, edges, partitions
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.batches import read_chunks
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


# Nothing is learnt by making a seed smaller.
@settings(max_examples=40, deadline=None, phases=[Phase.generate])
@given(
    seed=st.integers(0, 2**32),
    at=st.integers(-10, 2500),
    chunk_bytes=st.integers(100, 3000),
    look_bytes=st.sampled_from([200, edges.LOOK_BYTES]),
)
def test_what_was_until_then_is_a_beginning_of_the_journal(seed, at, chunk_bytes, look_bytes):
    with TemporaryDirectory() as folder, ExitStack() as patches:
        directory = Path(folder) / "journal"
        journal(directory, seed)
        until = START + at
        younger = known_younger(directory, until)
        count = younger.index(True) if True in younger else len(younger)
        expected = rows_of(directory, columns=PLACE)[:count]
        patches.enter_context(patch.object(edges, "LOOK_BYTES", look_bytes))

        def in_small_chunks(*asked, **others):
            return read_chunks(*asked, **others, chunk_bytes=chunk_bytes)

        patches.enter_context(patch.object(beginnings, "read_chunks", in_small_chunks))
        assert rows_of(directory, columns=PLACE, until=str(until)) == expected
        options = parse_options({"path": str(directory), "columns": PLACE, "until": str(until)})
        some = replace(options, files=(3, 9))
        found = [row for batch in TABLES["records"].batches(some) for row in batch.to_pylist()]
        assert found == [row for row in expected if 3 <= row["file_id"] <= 9]


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


def test_files_are_looked_at_once_and_none_behind_the_time(maker, monkeypatch):
    counted = Counted(monkeypatch)
    options = parse_options({"path": str(maker.directory), "until": str(START + 5000)})
    assert len(TABLES["records"].plan(options)) == 7
    sizes = {path.name: path.stat().st_size for path in maker.directory.iterdir()}
    assert counted.read == sizes
    counted.read.clear()
    assert len(TABLES["records"].plan(replace(options, until=START + 500))) == 1
    assert set(counted.read) == {"db-1.log"}


def test_filters_of_a_query_choose_rows_and_no_beginning(maker):
    directory = maker.roll().clock(300).flush().directory
    options = parse_options({"path": str(directory), "columns": PLACE})
    chosen: ReadOptions = replace(options, at_most=START + 500)
    found = [row for batch in TABLES["records"].batches(chosen) for row in batch.to_pylist()]
    assert [row["file_id"] for row in found] == [1, 6, 7, 8]
