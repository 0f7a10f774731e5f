"""A power cut at every byte of a write: what was answered for is there, and no half batch."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from stores import Receipt, numbers, reference, settled

from lockkeeper.journal.batch import EOF_RECORD
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.scan import scan_file
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import LocalTransactionId
from lockkeeper.store.base import Add, Operation, Remove
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.recovery import replay_directory

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.patient]

A, B = queue("A"), queue("B")
TRANSACTION = LocalTransactionId("ID:c:1", 7)
ANSWERED, WHOLE = {A: 5}, {A: 6, B: 2}
GO_ON_EVERY = 41


class Written:
    """A data file before its last write and after it; `start` is where that begins."""

    def __init__(self, directory: Path) -> None:
        """Make a journal whose last batch has a message, and a transaction that moves others."""
        store = KahaDBStore(directory, file_bytes_max=8192)
        store.open()
        messages = [reference(number, A) for number in range(1, 6)]
        for one in messages:
            store.add(A, one, Receipt())
            settled(store)
        self.path = list_data_files(directory)[-1].path
        self.before = self.path.read_bytes()
        store.add(A, reference(6, A), Receipt())
        store.add(A, reference(7, A), Receipt())
        moved: list[Operation] = [
            Add(B, [reference(8, B)]),
            Add(B, [reference(9, B)]),
            Remove(A, [messages[0]]),
        ]
        store.commit(TRANSACTION, moved, Receipt())
        settled(store)
        self.after = self.path.read_bytes()
        store.close()
        last = scan_file(self.after, self.path.name).batches[-1]
        self.start, self.end = last.offset, last.end + len(EOF_RECORD)

    def torn(self, how: str) -> Iterator[tuple[int, bytes]]:
        """Yield how many bytes of the write arrived, and the file, for every number of bytes."""
        for count in range(self.end - self.start + 1):
            cut = self.start + count
            if how == "the rest is as before":
                yield count, self.after[:cut] + self.before[cut:]
            elif how == "the rest is zeros":
                yield count, self.after[:cut] + bytes(len(self.after) - cut)
            elif how == "the file ends":
                yield count, self.after[:cut]
            else:
                # The later sectors came first: *count* bytes of the end are there.
                cut = self.end - count
                yield count, self.before[:cut] + self.after[cut:]


@pytest.mark.parametrize(
    "how", ["the rest is as before", "the rest is zeros", "the file ends", "the end came first"]
)
def test_a_power_cut_at_any_byte_loses_nothing_that_was_answered(how: str, tmp_path: Path) -> None:
    written = Written(tmp_path / "made")
    directory = tmp_path / "data"
    directory.mkdir()
    tried = whole = 0
    for count, data in written.torn(how):
        (directory / written.path.name).write_bytes(data)
        queues = replay_directory(directory).recovered.queues
        found = {name: len(references) for name, references in queues.items() if references}
        is_whole = scan_file(data, "").end >= written.end - len(EOF_RECORD)
        assert found == (WHOLE if is_whole else ANSWERED), f"{count} bytes: {found}"
        tried, whole = tried + 1, whole + is_whole
        if not count % GO_ON_EVERY:
            go_on(directory, is_whole)
            shutil.rmtree(directory)
            directory.mkdir()
    assert tried == written.end - written.start + 1 > 500
    assert 1 <= whole <= tried // 10


def go_on(directory: Path, is_whole: bool) -> None:
    """Write behind the torn tail, and read all of it once more."""
    store = KahaDBStore(directory, file_bytes_max=8192)
    store.open()
    receipt = Receipt()
    store.add(A, reference(100, A), receipt)
    assert receipt in settled(store)
    store.close()
    again = KahaDBStore(directory)
    found = again.open().queues
    expected = [2, 3, 4, 5, 6, 7, 100] if is_whole else [1, 2, 3, 4, 5, 100]
    assert numbers(again, found[A]) == expected
    assert numbers(again, found.get(B, [])) == ([8, 9] if is_whole else [])
    again.close()
