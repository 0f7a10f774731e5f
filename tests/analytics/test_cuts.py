"""What is told of a journal does not depend on how it is cut, and each byte of it is read once."""

import random
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from journal_maker import ORDERS, JournalMaker, rows_of
from test_times import bounds

from lockkeeper.journal.batch import CONTROL_SIZE, control_record
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.records import RemoveMessage, Trace
from lockkeeper_analytics.reading import batches, edges, partitions, rows
from lockkeeper_analytics.reading.batches import read_chunks
from lockkeeper_analytics.reading.partitions import plan_parts
from lockkeeper_analytics.reading.storage import open_file
from lockkeeper_analytics.spark.datasource import LockkeeperDataSource
from lockkeeper_analytics.spark.stream import ReadMaxBytes
from lockkeeper_analytics.tables import TABLES
from lockkeeper_analytics.tables.options import parse_options

COLUMNS = "file_id,offset,kind,message_id,recorder,written_after,written_before"


def journal(directory: Path, seed: int) -> None:
    """Write files with adds, clock lines, and stretches of removes that tell no time."""
    chance = random.Random(seed)
    maker, at = JournalMaker(directory), 0
    for number in range(chance.randrange(5, 60)):
        at += chance.choice((0, 1, 7, 40, 200))
        for _ in range(chance.choice((0, 0, 1, 30))):
            maker.remove(number)
            if chance.random() < 0.5:
                maker.flush()
        match chance.randrange(12):
            case 0 | 1 | 2:
                maker.add(number, at - chance.choice((0, 0, 90)))
            case 3:
                maker.clock(at)
            case 4:
                maker.line("event", at, event=chance.choice(("start", "stop", "slowConsumer")))
            case 5:
                maker.record(Trace("LOADED"))
            case _:
                maker.remove(number)
        if maker.waiting and chance.random() < 0.6:
            maker.flush()
        if not maker.waiting and maker.path.exists() and chance.random() < 0.05:
            maker.roll()
    if maker.waiting or not maker.path.exists():
        maker.add(0, at).flush()


def in_pieces(directory: Path, chance: random.Random) -> list[dict]:
    """Read a journal in parts that begin and end at any batch."""
    options = parse_options({"path": str(directory), "columns": COLUMNS})
    found: list[dict] = []
    for part in plan_parts(options.directories):
        begins = {
            chunk.base + start - CONTROL_SIZE
            for chunk in read_chunks(part.path)
            for start, _ in chunk.batches
        }
        cuts = sorted(cut for cut in begins if cut and chance.random() < 0.2)
        for start, end in zip([0, *cuts], [*cuts, None], strict=True):
            piece = replace(part, start=start, end=end)
            for batch in TABLES["records"].rows(piece, options):
                found += batch.to_pylist()
    return found


def streamed(directory: Path, bytes_max: int) -> list[dict]:
    """Read a journal as a stream does, at most so many bytes at a time."""
    reader = LockkeeperDataSource({"path": str(directory), "columns": COLUMNS}).streamReader(None)
    start, found = reader.initialOffset(), []
    while (end := reader.latestOffset(start, ReadMaxBytes(bytes_max))) != start:
        for piece in reader.partitions(start, end):
            found += [row for batch in reader.read(piece) for row in batch.to_pylist()]
        start = end
    reader.stop()
    return found


# Nothing is learnt by making a seed smaller.
@settings(max_examples=25, deadline=None, phases=[Phase.generate])
@given(
    seed=st.integers(0, 2**32),
    chunk_bytes=st.integers(100, 3000),
    look_bytes=st.sampled_from([200, 1000, edges.LOOK_BYTES]),
    bytes_max=st.integers(100, 4000),
)
def test_any_cut_gives_the_same_rows(seed, chunk_bytes, look_bytes, bytes_max):
    with TemporaryDirectory() as folder, ExitStack() as patches:
        directory = Path(folder) / "journal"
        journal(directory, seed)
        patches.enter_context(patch.object(edges, "LOOK_BYTES", look_bytes))
        whole = rows_of(directory, columns=COLUMNS)
        assert in_pieces(directory, random.Random(seed)) == whole
        assert streamed(directory, bytes_max) == whole

        def in_small_chunks(*asked, **others):
            return read_chunks(*asked, **others, chunk_bytes=chunk_bytes)

        patches.enter_context(patch.object(rows, "read_chunks", in_small_chunks))
        assert rows_of(directory, columns=COLUMNS) == whole
        assert in_pieces(directory, random.Random(seed)) == whole


class Counted:
    """Counts how often files are opened, and which bytes are read of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened: Counter[str] = Counter()
        self.read: Counter[str] = Counter()
        for module in (batches, partitions):
            monkeypatch.setattr(module, "open_file", self._open)

    def _open(self, path, *ahead):
        name = Path(path).name
        self.opened[name] += 1
        return _CountedFile(open_file(path, *ahead), lambda size: self.read.update({name: size}))


class _CountedFile:
    def __init__(self, file, tell):
        self._file, self._tell = file, tell

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def seek(self, *asked):
        return self._file.seek(*asked)

    def read(self, size):
        data = self._file.read(size)
        self._tell(len(data))
        return data


@pytest.mark.parametrize("every", [1, 40])
def test_a_long_stretch_without_a_time_is_bounded_by_what_is_around_it(
    tmp_path, monkeypatch, every
):
    maker = JournalMaker(tmp_path).add(0, 1000).flush()
    removes = [encode_record(RemoveMessage(ORDERS, f"ID:{number}")) for number in range(8000)]
    joined = [b"".join(removes[at : at + every]) for at in range(0, 8000, every)]
    maker.roll().path.write_bytes(b"".join(control_record(each) + each for each in joined))
    maker.roll().add(1, 7000).flush()
    whole = rows.read_chunks
    monkeypatch.setattr(rows, "read_chunks", partial(whole, chunk_bytes=10_000))
    counted = Counted(monkeypatch)
    assert bounds(tmp_path) == [(1000, 7000)] * 8000
    assert counted.opened["db-2.log"] == 5


@pytest.fixture
def files(tmp_path):
    """Return a folder with three files of 600 KB that tell times, beside an empty one."""
    maker = JournalMaker(tmp_path)
    for number in range(3):
        maker.add(number, number, properties={"x": "y" * 600_000}).flush()
        maker.remove(number).clock(number + 1).flush().roll()
    maker.path.touch()
    return tmp_path


@pytest.mark.parametrize("table", TABLES)
def test_a_plan_opens_no_file(files, monkeypatch, table):
    counted = Counted(monkeypatch)
    assert TABLES[table].plan(parse_options({"path": str(files), "table": table}))
    assert not counted.opened


def test_a_part_reads_its_bytes_once_and_little_of_its_neighbours(files, monkeypatch):
    options = parse_options({"path": str(files)})
    part = plan_parts(options.directories)[1]
    whole = rows.read_chunks
    monkeypatch.setattr(rows, "read_chunks", partial(whole, chunk_bytes=50_000))
    counted = Counted(monkeypatch)
    assert [batch.num_rows for batch in TABLES["records"].rows(part, options)] == [1, 2]
    edge = partitions.FILE_HEAD_BYTES + edges.LOOK_BYTES
    size = (files / "db-2.log").stat().st_size
    assert counted.read == {"db-1.log": edge, "db-2.log": size}
