"""Group commit: what shares a batch, what starts a file, what happens when the disk fails."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_kit import Kit, becomes_readable

from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.records import AddMessage, Commit, Record, RemoveMessage, Trace
from lockkeeper.journal.scan import record_offsets, scan_file
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import LocalTransactionId, ProducerId, XATransactionId
from lockkeeper.message.openwire import AckType, MessageAck, codec_for
from lockkeeper.store.base import (
    WAITING,
    WRITTEN,
    Add,
    Receipt,
    Reference,
    Remove,
    StoreError,
    StoreFullError,
    Subscription,
)
from lockkeeper.store.kahadb import DirectoryLock, KahaDBStore
from lockkeeper.store.kahadb.disk import ThreadDisk

A, B = queue("A"), queue("B")
LOCAL = LocalTransactionId("ID:client-1:1", 7)
FILE_BYTES = 1 << 16


class SlowDisk(ThreadDisk):
    """A disk whose syncs are done when the test says so, or fail."""

    def __init__(self, _descriptor: int) -> None:
        super().__init__()
        self.is_ready = False
        self.error: OSError | None = None

    def completed(self) -> bool:
        return self.is_ready and super().completed()

    def wait(self) -> None:
        if self.error is not None:
            raise self.error
        super().wait()


class FailingDisk(SlowDisk):
    def completed(self) -> bool:
        raise OSError(errno.EIO, "Input/output error")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KahaDBStore]:
    store = KahaDBStore(tmp_path, file_bytes_max=FILE_BYTES)
    store.open()
    yield store
    store.close()


def batches(directory: Path) -> list[list[tuple[int, Record]]]:
    """Return the records of every batch: a list per batch of (file id, record)."""
    found: list[list[tuple[int, Record]]] = []
    for file in list_data_files(directory):
        data = file.path.read_bytes()
        scan = scan_file(data, file.path.name)
        scan.require_whole()
        for batch in scan.batches:
            offsets = record_offsets(data, batch)
            found.append([(file.file_id, decode_record(data, at)) for at, _ in offsets])
    return found


def records(directory: Path) -> list[Record]:
    return [record for batch in batches(directory) for _, record in batch]


def message_id_of(record: Record) -> str:
    assert isinstance(record, AddMessage | RemoveMessage)
    return record.message_id


def test_everything_between_two_flushes_shares_a_batch(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    for number in range(30):
        store.add(A, kit.reference(number), None)
    kit.until_durable(store)
    assert [len(batch) for batch in batches(tmp_path)] == [30]


def test_records_are_what_activemq_writes(store: KahaDBStore, tmp_path: Path, kit: Kit) -> None:
    one = kit.reference(12)
    store.add(A, one, None)
    kit.until_durable(store)
    body = one.loaded.body
    frame = len(body).to_bytes(4, "big") + body
    store.remove(A, one)
    kit.until_durable(store)
    key = "ID:producer-1:1:1:1:12"
    assert records(tmp_path) == [AddMessage(A, key, frame), RemoveMessage(A, key)]


def test_a_message_id_beyond_ascii_is_written_in_plain_utf_8(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    producer = ProducerId("ID:\N{GRINNING FACE}\0\N{LATIN SMALL LETTER E WITH ACUTE}", 1, 1)
    one = kit.reference(1, producer=producer)
    store.add(A, one, None)
    kit.until_durable(store)
    store.remove(A, one)
    kit.until_durable(store)
    assert {message_id_of(record) for record in records(tmp_path)} == {f"{producer}:1"}
    store.close()
    assert store.open().queues == {}


def test_what_arrives_during_a_sync_is_the_next_batch(tmp_path: Path, kit: Kit) -> None:
    disks: list[SlowDisk] = []

    def make(descriptor: int) -> SlowDisk:
        disks.append(SlowDisk(descriptor))
        return disks[0]

    store = KahaDBStore(tmp_path, file_bytes_max=FILE_BYTES, disk=make)
    store.open()
    receipts = [kit.Receipt() for _ in range(3)]
    store.add(A, kit.reference(0), receipts[0])
    assert list(store.flush()) == []
    store.add(A, kit.reference(1), receipts[1])
    assert list(store.flush()) == []
    store.add(A, kit.reference(2), receipts[2])
    assert list(store.completed()) == []
    assert store.waiting() == 2
    disks[0].is_ready = True
    given: list[Receipt] = []
    while not given:
        becomes_readable(store, 5)
        given += store.completed()
    assert given == receipts[:1]
    assert store.waiting() == 0
    kit.until_durable(store)
    assert [len(batch) for batch in batches(tmp_path)] == [1, 2]
    store.close()


def test_a_receipt_for_nothing_waits_for_what_was_handed_over_before(
    tmp_path: Path, kit: Kit
) -> None:
    disk = SlowDisk(0)
    store = KahaDBStore(tmp_path, file_bytes_max=FILE_BYTES, disk=lambda _: disk)
    store.open()
    first, second = kit.Receipt("first"), kit.Receipt("second")
    store.add(A, kit.reference(0), first)
    store.flush()
    store.remove(A, Reference(None, 0), second)
    assert list(store.flush()) == []
    disk.is_ready = True
    given: list[Receipt] = []
    while len(given) < 2:
        becomes_readable(store, 5)
        given += store.completed()
    assert given == [first, second]
    store.close()


def test_a_transaction_is_one_batch_even_when_it_is_larger_than_one(
    tmp_path: Path, kit: Kit
) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=4096, batch_bytes_max=1000)
    store.open()
    for number in range(8):
        store.add(A, kit.reference(number), None)
    sent = [Add(B, [kit.reference(100 + number, B, 300)]) for number in range(20)]
    store.commit(LOCAL, sent, None)
    store.add(A, kit.reference(50), None)
    kit.until_durable(store)
    found = batches(tmp_path)
    whole = [batch for batch in found if any(isinstance(one, Commit) for _, one in batch)]
    assert [len(batch) for batch in whole] == [21]
    for _, one in whole[0]:
        assert isinstance(one, AddMessage | Commit)
        assert one.transaction == LOCAL
    assert all(len(batch) < 8 for batch in found if batch is not whole[0])
    store.close()


def test_copies_are_one_batch_even_when_they_are_larger_than_one(tmp_path: Path, kit: Kit) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=4096, batch_bytes_max=1000)
    store.open()
    store.add(A, kit.reference(1), None)
    copies = [(A, kit.reference(2, size=600)), (B, kit.reference(2, B, 600))]
    receipt = kit.Receipt()
    store.add_together([Add(name, [copy]) for name, copy in copies], receipt)
    store.remove(B, copies[1][1])
    assert receipt in kit.until_durable(store)
    written = [[record for _, record in batch] for batch in batches(tmp_path)]
    adds = [record for record in written[1] if isinstance(record, AddMessage)]
    assert [(add.destination, add.transaction) for add in adds] == [(A, None), (B, None)]
    assert RemoveMessage(B, adds[1].message_id) in [one for batch in written for one in batch]
    store.close()


def test_a_transaction_that_no_file_can_hold_is_refused_whole(
    store: KahaDBStore, tmp_path: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockkeeper.store.kahadb.appender.ATOMIC_BATCH_BYTES_MAX", 2000)
    sent = [Add(A, [kit.reference(number, size=500)]) for number in range(5)]
    with pytest.raises(StoreError, match="do not fit into a data file"):
        store.commit(LOCAL, sent, None)
    store.add(A, kit.reference(9), None)
    kit.until_durable(store)
    assert [message_id_of(record)[-2:] for record in records(tmp_path)] == [":9"]


def test_an_xa_transaction_carries_the_acknowledgement_that_activemq_needs(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    one = kit.reference(12)
    store.add(A, one, None)
    kit.until_durable(store)
    identifier = XATransactionId(3, b"g", b"b")
    store.prepare(identifier, [Remove(A, [one])], None)
    kit.until_durable(store)
    remove = records(tmp_path)[1]
    assert isinstance(remove, RemoveMessage)
    assert remove.ack is not None
    ack, _ = codec_for(11, stack_traces=False).decode(remove.ack, 4)
    assert isinstance(ack, MessageAck)
    assert (ack.destination, ack.transaction_id, ack.ack_type) == (A, identifier, AckType.STANDARD)
    assert str(ack.first_message_id) == str(ack.last_message_id) == "ID:producer-1:1:1:1:12"
    store.commit_prepared(identifier, [Remove(A, [one])], None)


def test_a_full_file_is_followed_by_the_next_and_all_end_properly(tmp_path: Path, kit: Kit) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=4096)
    store.open()
    for number in range(60):
        store.add(A, kit.reference(number, size=200), None)
        if number % 5 == 4:
            kit.until_durable(store)
    store.close()
    files = list_data_files(tmp_path)
    assert [file.file_id for file in files] == list(range(1, len(files) + 1))
    assert len(files) > 4
    assert {file.size for file in files} == {4096}
    assert len(records(tmp_path)) == 60


def test_a_message_larger_than_a_file_gets_a_longer_file_of_its_own(
    tmp_path: Path, kit: Kit
) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=4096)
    store.open()
    for number, size in enumerate([100, 20_000, 100]):
        store.add(A, kit.reference(number, size=size), None)
    kit.until_durable(store)
    assert [[file_id for file_id, _ in batch] for batch in batches(tmp_path)] == [[1], [2], [3]]
    store.close()
    recovered = store.open()
    assert kit.numbers(store, recovered.queues[A]) == [0, 1, 2]
    store.close()


def test_removals_without_a_receipt_leave_within_a_few_milliseconds(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    references = [kit.reference(number) for number in range(3)]
    for one in references:
        store.add(A, one, None)
    kit.until_durable(store)
    store.remove(A, references[0])
    assert list(store.flush()) == []
    store.remove(A, references[1])
    assert list(store.flush()) == []
    assert len(batches(tmp_path)) == 1
    while store.waiting():
        assert becomes_readable(store, 5)
        store.completed()
    assert [len(batch) for batch in batches(tmp_path)] == [3, 2]


def test_many_removals_do_not_wait(store: KahaDBStore, tmp_path: Path, kit: Kit) -> None:
    references = [kit.reference(number) for number in range(256)]
    for one in references:
        store.add(A, one, None)
    kit.until_durable(store)
    for one in references:
        store.remove(A, one)
    store.flush()
    assert store.waiting() == 0
    kit.until_durable(store)


def test_removals_ride_with_the_next_batch(store: KahaDBStore, tmp_path: Path, kit: Kit) -> None:
    one = kit.reference(1)
    store.add(A, one, None)
    kit.until_durable(store)
    store.remove(A, one)
    store.flush()
    store.add(A, kit.reference(2), None)
    kit.until_durable(store)
    assert [len(batch) for batch in batches(tmp_path)] == [1, 2]


def test_notes_wait_for_company(store: KahaDBStore, tmp_path: Path, kit: Kit) -> None:
    becomes_readable(store, 0.02)
    store.completed()
    store.trace("lk1 {}")
    assert list(store.flush()) == []
    assert not becomes_readable(store, 0.02)
    assert store.waiting() == 1
    store.add(A, kit.reference(1), None)
    kit.until_durable(store)
    assert records(tmp_path)[0] == Trace("lk1 {}")


def test_notes_do_not_fill_the_memory_while_nothing_else_is_written(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    """A broker without persistent messages has nothing else to write, for months."""
    line = "lk1 " + "x" * 100_000
    for _ in range(30):
        store.trace(line)
        assert list(store.flush()) == []
        while store.is_behind():
            assert becomes_readable(store, 5)
            assert list(store.completed()) == []
    assert store.waiting() < 11
    kit.until_durable(store)
    assert [each for each in records(tmp_path) if each == Trace(line)] == [Trace(line)] * 30


def test_a_message_whose_body_was_dropped_is_removed_by_its_id_on_disk(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    one = kit.reference(33)
    store.add(A, one, None)
    kit.until_durable(store)
    one.message = None
    store.remove(A, one)
    kit.until_durable(store)
    assert records(tmp_path)[1] == RemoveMessage(A, "ID:producer-1:1:1:1:33")


def test_a_topic_without_subscribers_left_is_live_no_more(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    news = topic("NEWS")
    subscription = Subscription("c", "s", news, None, False)
    store.subscribe(subscription, None)
    one = kit.reference(1, news)
    store.add(news, one, None)
    store.release(one)
    store.unsubscribe(subscription, None)
    kit.until_durable(store)
    assert [file_references.live for file_references in store._file_references.files.values()] == [
        0
    ]


def test_a_failed_sync_ends_the_trust_in_the_journal(tmp_path: Path, kit: Kit) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=FILE_BYTES, disk=FailingDisk)
    store.open()
    store.add(A, kit.reference(1), kit.Receipt())
    store.flush()
    with pytest.raises(StoreError, match=r"db-1.log: Input/output error; .* may be lost"):
        store.completed()
    assert isinstance(store._disk, SlowDisk)
    store._disk.is_ready = True
    store._commit.is_writing = False
    store.add(A, kit.reference(2), None)
    with pytest.raises(StoreError, match="may be lost"):
        store.flush()
    with pytest.raises(StoreError, match="may be lost"):
        store.close()
    assert isinstance(store.lock, DirectoryLock)
    assert not store.lock.is_held


def test_a_sync_that_fails_while_closing_is_told(tmp_path: Path, kit: Kit) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=FILE_BYTES, disk=SlowDisk)
    store.open()
    store.add(A, kit.reference(1), None)
    assert isinstance(store._disk, SlowDisk)
    store._disk.error = OSError(errno.EIO, "Input/output error")
    with pytest.raises(StoreError, match="Input/output error"):
        store.close()


def test_a_write_without_room_is_kept_and_tried_again(
    store: KahaDBStore, tmp_path: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = kit.reference(1), kit.reference(2)
    store.add(A, first, None)
    kit.until_durable(store)
    receipt = kit.Receipt()
    store.add(A, second, receipt)

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", no_room)
        assert list(store.flush()) == []
        assert (second.state, second.location, store.waiting()) == (WAITING, 0, 1)
        assert len(records(tmp_path)) == 1
    assert kit.until_durable(store) == [receipt]
    assert second.state == WRITTEN
    assert len(records(tmp_path)) == 2


def test_there_may_be_room_once_nobody_needs_what_was_refused(
    store: KahaDBStore, tmp_path: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(A, kit.reference(1), None)
    kit.until_durable(store)
    refused, receipt = kit.reference(2), kit.Receipt()

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", no_room)
        store.add(A, refused, receipt)
        store.flush()
        with pytest.raises(StoreFullError, match="no room on the disk"):
            store.check_full()
        # Its consumer has it: nothing is left to write.
        assert store.remove(A, refused) is receipt
        store.flush()
        assert store.waiting() == 0
        store.check_full()
        # While there is none, what comes is refused as before.
        store.add(A, kit.reference(3), None)
        store.flush()
        with pytest.raises(StoreFullError, match="no room on the disk"):
            store.check_full()
    kit.until_durable(store)
    store.check_full()
    assert len(records(tmp_path)) == 2


def test_a_write_that_the_disk_cuts_short_is_finished(
    store: KahaDBStore, tmp_path: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda fd, parts, at: whole(fd, [parts[0]], at))
    for number in range(3):
        store.add(A, kit.reference(number), None)
    kit.until_durable(store)
    assert len(records(tmp_path)) == 3


def test_a_write_that_fails_for_another_reason_is_fatal(
    tmp_path: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=FILE_BYTES)
    store.open()
    store.add(A, kit.reference(1), None)

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pwritev", broken)
    with pytest.raises(StoreError, match="Input/output error"):
        store.flush()
    with pytest.raises(StoreError):
        store.close()
