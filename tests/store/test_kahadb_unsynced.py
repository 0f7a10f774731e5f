"""What the last master wrote is made durable before its successor believes it."""

import os
from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.scan import scan_file
from lockkeeper.message.destination import queue
from lockkeeper.store.kahadb import KahaDBStore

A = queue("A")

Call = tuple[str, str] | tuple[str, int, bytes]
"""The name of a file, and that it was synced, or where what was written."""


class Watched:
    """Every write and sync of files of the journal, as the kernel is asked for them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
        self.directory = directory
        self.calls: list[Call] = []
        self._pwrite, self._fsync = os.pwrite, os.fsync
        monkeypatch.setattr(os, "pwrite", self.pwrite)
        monkeypatch.setattr(os, "fsync", self.fsync)

    def name(self, descriptor: int) -> str:
        return Path(f"/proc/self/fd/{descriptor}").readlink().name

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        self.calls.append((self.name(descriptor), offset, bytes(data)))
        return self._pwrite(descriptor, data, offset)

    def fsync(self, descriptor: int) -> None:
        self.calls.append((self.name(descriptor), "synced"))
        self._fsync(descriptor)


def test_the_last_batch_is_written_again_and_synced_at_start(
    tmp_path: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=4096)
    store.open()
    for number in range(9):
        store.add(A, kit.reference(number, size=900), None)
        kit.until_durable(store)
    store.close()
    file = list_data_files(tmp_path)[-1]
    data = file.path.read_bytes()
    last = scan_file(data, file.path.name).batches[-1]
    start = last.start - 28
    watched = Watched(monkeypatch, tmp_path)
    again = KahaDBStore(tmp_path, file_bytes_max=4096)
    recovered = again.open()
    calls = [call for call in watched.calls if call[0] == file.path.name]
    again.close()
    assert calls == [
        (file.path.name, start, data[start : last.end]),
        (file.path.name, "synced"),
    ]
    assert file.path.read_bytes() == data
    assert len(recovered.queues[A]) == 9


def test_nothing_is_written_in_a_new_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(monkeypatch, tmp_path)
    store = KahaDBStore(tmp_path, file_bytes_max=4096)
    store.open()
    store.close()
    assert [call for call in watched.calls if call[0].endswith(".log")] == []
