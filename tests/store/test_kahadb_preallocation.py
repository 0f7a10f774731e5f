"""The next data file: filled with zeros where many small batches will come, else only reserved."""

import os
from pathlib import Path
from typing import Any

import pytest
from store_kit import Kit, becomes_readable

from lockkeeper.journal.batch import EOF_RECORD
from lockkeeper.journal.files import list_data_files
from lockkeeper.message.destination import queue
from lockkeeper.store.kahadb import KahaDBStore, commit, preallocation
from lockkeeper.store.kahadb.files import FEW_BATCHES
from lockkeeper.store.kahadb.preallocation import SpareFile

A = queue("A")
FILE_BYTES = 4 << 20


@pytest.fixture
def zeros(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many zeros are written into each spare file from now on."""
    written: list[int] = []
    fill, pwrite = SpareFile._fill, os.pwrite

    def counted(self: SpareFile) -> None:
        written.append(0)
        fill(self)

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

        def pwrite(self, descriptor: int, data: Any, offset: int) -> int:
            done = pwrite(descriptor, data, offset)
            if data != EOF_RECORD:
                written[-1] += done
            return done

    monkeypatch.setattr(SpareFile, "_fill", counted)
    monkeypatch.setattr(preallocation, "os", Counting())
    return written


@pytest.mark.replaces
@pytest.mark.parametrize("is_reserved_only", [False, True])
def test_a_spare_file_has_its_length_an_end_and_zeros(
    tmp_path: Path, zeros: list[int], is_reserved_only: bool
) -> None:
    spare = SpareFile(tmp_path, FILE_BYTES, lambda: None)
    spare.prepare(is_reserved_only)
    os.close(spare.place_at(tmp_path / "db-1.log"))
    content = (tmp_path / "db-1.log").read_bytes()
    assert content == EOF_RECORD.ljust(FILE_BYTES, b"\0")
    assert zeros == [0 if is_reserved_only else FILE_BYTES]


@pytest.mark.replaces
@pytest.mark.parametrize(("size", "is_few"), [(600 << 10, True), (20 << 10, False)])
def test_files_behind_one_of_few_batches_are_not_filled(
    tmp_path: Path, kit: Kit, zeros: list[int], size: int, is_few: bool
) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=FILE_BYTES)
    store.open()
    assert (FILE_BYTES // size < FEW_BATCHES) == is_few
    for number in range(4 * FILE_BYTES // size):
        store.add(A, kit.reference(number, size=size), None)
        kit.until_durable(store)
    files = len(list_data_files(tmp_path))
    store.close()
    # The first file and the next one are made before anything is known.
    assert files > 3
    assert zeros[:files] == [FILE_BYTES] * 2 + [0 if is_few else FILE_BYTES] * (files - 2)


@pytest.mark.replaces
@pytest.mark.parametrize("size", [100, 100 << 10, 5 << 20])
def test_what_is_written_apart_is_what_would_be_written_together(
    tmp_path: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    written = []
    for joined in (commit.JOINED_BYTES_MAX, 1 << 40):
        monkeypatch.setattr(commit, "JOINED_BYTES_MAX", joined)
        directory = tmp_path / str(joined)
        store = KahaDBStore(directory)
        store.open()
        for number in range(3):
            store.add(A, kit.reference(number, size=size), None)
        kit.until_durable(store)
        store.close()
        written.append((directory / "db-1.log").read_bytes())
    assert written[0] == written[1]


@pytest.mark.replaces
def test_files_behind_a_message_that_ended_while_it_was_written_are_not_filled(
    tmp_path: Path, kit: Kit, zeros: list[int]
) -> None:
    """The next such message may end as soon: whoever waits for the next file waits for zeros."""
    store = KahaDBStore(tmp_path, file_bytes_max=FILE_BYTES, batch_bytes_max=10_000)
    store.open()
    for number in range(5):
        large = kit.reference(number, size=1 << 20)
        store.add(A, large, None)
        store.flush()
        assert becomes_readable(store, 5)
        store.completed()
        store.remove(A, large)
    store.add(A, kit.reference(9), None)
    kit.until_durable(store)
    files = len(list_data_files(tmp_path))
    store.close()
    assert files == 6
    assert zeros[:files] == [FILE_BYTES] * 2 + [0] * (files - 2)
