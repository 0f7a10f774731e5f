"""Large batches, written in pieces: the file at each sync, as a crash there would leave it."""

import errno
import os
from itertools import pairwise
from pathlib import Path

import pytest
from store_kit import Kit, becomes_readable

from lockkeeper.journal.batch import build_batch
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.records import Trace
from lockkeeper.journal.scan import scan_file
from lockkeeper.message.destination import Destination, queue
from lockkeeper.message.ids import LocalTransactionId
from lockkeeper.store.base import SKIPPED, WRITTEN, Add, Reference, StoreFullError
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.disk import ThreadDisk
from lockkeeper.store.kahadb.recovery import replay_directory

A, B = queue("A"), queue("B")
LOCAL = LocalTransactionId("ID:client-1:1", 7)
FILE_BYTES = 1 << 16
BATCH_BYTES = 1000


class SeenDisk(ThreadDisk):
    """A disk that keeps what the file was at each sync."""

    def __init__(self, _descriptor: int) -> None:
        super().__init__()
        self.seen: list[bytes] = []

    def submit(self, descriptor: int) -> None:
        file = Path(f"/proc/self/fd/{descriptor}")
        if file.is_file():
            self.seen.append(file.read_bytes())
        super().submit(descriptor)


class Watched:
    """A store with small batches, and its disk."""

    def __init__(self, directory: Path) -> None:
        self.store = KahaDBStore(
            directory, file_bytes_max=FILE_BYTES, batch_bytes_max=BATCH_BYTES, disk=self._make
        )
        self.store.open()

    def _make(self, descriptor: int) -> SeenDisk:
        self.disk = SeenDisk(descriptor)
        return self.disk


def contents(data: bytes, directory: Path) -> dict[Destination, int]:
    """Return how many messages a journal of one file has, by destination."""
    directory.mkdir(exist_ok=True)
    (directory / "db-1.log").write_bytes(data)
    queues = replay_directory(directory).recovered.queues
    return {name: len(references) for name, references in queues.items() if references}


def changed(before: bytes, after: bytes) -> int:
    """Return how many bytes lie between the first that changed and the last, both included."""
    before = before.ljust(len(after), b"\0")
    places = [at for at in range(len(after)) if before[at] != after[at]]
    return places[-1] - places[0] + 1


@pytest.mark.parametrize("how", ["transaction", "copies"])
def test_a_large_batch_is_written_in_pieces_and_there_at_once(
    how: str, tmp_path: Path, kit: Kit
) -> None:
    watched = Watched(tmp_path / "data")
    store = watched.store
    store.add(A, kit.reference(1), None)
    kit.until_durable(store)
    watched.disk.seen.clear()
    adds = [Add(name, [kit.reference(10 + at, name, 300)]) for at in range(9) for name in (A, B)]
    receipt = kit.Receipt()
    if how == "transaction":
        store.commit(LOCAL, [*adds], receipt)
    else:
        store.add_together(adds, receipt)
    assert receipt in kit.until_durable(store)
    *pieces, last = watched.disk.seen
    size = sum(one.size for add in adds for one in add.references)
    assert len(pieces) > size // BATCH_BYTES > 5
    for before, after in pairwise(pieces):
        assert changed(before, after) <= BATCH_BYTES
    found = [contents(data, tmp_path / "seen") for data in (*pieces, last)]
    assert found == [{A: 1}] * len(pieces) + [{A: 10, B: 9}]
    store.close()
    scan = scan_file(last, "db-1.log")
    scan.require_whole()
    # The bytes are those of batches that are written at once.
    insides = [last[batch.start : batch.end] for batch in scan.batches]
    assert last.startswith(b"".join(build_batch(inside)[:-5] for inside in insides))


def test_what_comes_meanwhile_follows_in_order(tmp_path: Path, kit: Kit) -> None:
    watched = Watched(tmp_path)
    store = watched.store
    copies = [kit.reference(2, name, 3000) for name in (A, B)]
    store.add_together([Add(A, copies[:1]), Add(B, copies[1:])], kit.Receipt())
    store.flush()
    # They are consumers' already, and end before their write.
    store.remove(A, copies[0])
    store.add(B, kit.reference(3, B), None)
    assert kit.until_durable(store) != []
    store.remove(B, copies[1])
    store.close()
    again = KahaDBStore(tmp_path)
    found = again.open().queues
    assert {name: kit.numbers(again, found[name]) for name in found if found[name]} == {B: [3]}
    again.close()


def test_a_large_message_that_ends_while_it_is_written_harms_no_other(
    tmp_path: Path, kit: Kit
) -> None:
    watched = Watched(tmp_path)
    store = watched.store
    large, receipt = kit.reference(1, size=6000), kit.Receipt("large")
    # What is left of it looks like batches, where one looks at it without care.
    inside = build_batch(encode_record(Trace("strange")))
    body = large.loaded.body.replace(b"x" * 5000, (inside * 300)[:5000])
    large.loaded.body = body
    store.add(A, large, receipt)
    for _ in range(4):
        store.flush()
        assert becomes_readable(store, 5)
        store._commit.completed()
    assert store.remove(A, large) is receipt
    assert large.state == SKIPPED
    store.add(A, kit.reference(2), None)
    kit.until_durable(store)
    store.close()
    for file in list_data_files(tmp_path):
        scan_file(file.path.read_bytes(), file.path.name).require_whole()
    again = KahaDBStore(tmp_path)
    assert kit.numbers(again, again.open().queues[A]) == [2]
    again.close()


def test_nothing_more_is_written_of_a_large_message_that_has_ended(
    tmp_path: Path, kit: Kit
) -> None:
    watched = Watched(tmp_path)
    store, large = watched.store, kit.reference(1, size=100 * BATCH_BYTES)
    store.add(A, large, None)
    for _ in range(3):
        store.flush()
        assert becomes_readable(store, 5)
        store._commit.completed()
    begun = len(watched.disk.seen)
    assert begun == 3
    store.remove(A, large)
    # It comes again, as another one: what is written of it by now is none of that.
    same = kit.reference(1, size=100 * BATCH_BYTES)
    store.add(A, same, None)
    store.add(A, kit.reference(2), None)
    kit.until_durable(store)
    pieces = -(-same.size // BATCH_BYTES)
    assert len(watched.disk.seen) - begun == 1 + pieces + 1 + 1
    store.close()
    again = KahaDBStore(tmp_path)
    assert kit.numbers(again, again.open().queues[A]) == [1, 2]
    again.close()


def test_what_nobody_needs_any_more_keeps_no_refusal_of_a_full_disk(
    tmp_path: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Watched(tmp_path).store
    store.add(A, kit.reference(1), None)
    kit.until_durable(store)
    large, receipt = kit.reference(2, size=20 * BATCH_BYTES), kit.Receipt("large")
    write = os.pwritev

    def no_room_for_much(descriptor: int, buffers: list[bytes], offset: int) -> int:
        if sum(map(len, buffers)) >= BATCH_BYTES:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, buffers, offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", no_room_for_much)
        store.add(A, large, receipt)
        with pytest.raises(StoreFullError, match="no room on the disk"):
            while True:
                store.flush()
                store.check_full()
                assert becomes_readable(store, 5)
                store._commit.completed()
        # Its consumer has it; for what is smaller there is room.
        assert store.remove(A, large) is receipt
        store.flush()
        assert store.waiting() == 0
        store.check_full()
        small = kit.reference(3)
        store.add(A, small, None)
        kit.until_durable(store)
        assert small.state == WRITTEN
    store.close()
    again = KahaDBStore(tmp_path)
    assert kit.numbers(again, again.open().queues[A]) == [1, 3]
    again.close()


def test_a_large_batch_is_closed_with_its_store(tmp_path: Path, kit: Kit) -> None:
    watched = Watched(tmp_path)
    sent: list[Reference] = [kit.reference(number, size=400) for number in range(12)]
    watched.store.commit(LOCAL, [Add(A, sent)], kit.Receipt())
    watched.store.flush()
    watched.store.close()
    again = KahaDBStore(tmp_path)
    assert kit.numbers(again, again.open().queues[A]) == [*range(12)]
    again.close()
