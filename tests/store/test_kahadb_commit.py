"""Group commit: what shares a batch, what starts a file, what happens when the disk fails."""

import errno
import os
import select
import subprocess

import pytest

from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.records import AddMessage, Commit, RemoveMessage, Trace
from lockkeeper.journal.scan import record_offsets, scan_file
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import LocalTransactionId, ProducerId, XATransactionId
from lockkeeper.message.openwire import AckType, MessageAck, codec_for
from lockkeeper.store.base import (
    WAITING,
    WRITTEN,
    Add,
    Reference,
    Remove,
    StoreError,
    StoreFullError,
    Subscription,
)
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.disk import ThreadDisk

A, B = queue("A"), queue("B")
LOCAL = LocalTransactionId("ID:client-1:1", 7)
FILE_BYTES = 1 << 16


class SlowDisk(ThreadDisk):
    """A disk whose syncs are done when the test says so, or fail."""

    def __init__(self, _descriptor):
        super().__init__()
        self.is_ready = False
        self.error = None

    def completed(self):
        return self.is_ready and super().completed()

    def wait(self):
        if self.error is not None:
            raise self.error
        super().wait()


class FailingDisk(SlowDisk):
    def completed(self):
        raise OSError(errno.EIO, "Input/output error")


@pytest.fixture
def store(tmp_path):
    store = KahaDBStore(tmp_path, file_bytes_max=FILE_BYTES)
    store.open()
    yield store
    store.close()


def batches(directory):
    """Return the records of every batch: a list per batch of (file id, record)."""
    found = []
    for file in list_data_files(directory):
        data = file.path.read_bytes()
        scan = scan_file(data, file.path.name)
        scan.require_whole()
        for batch in scan.batches:
            offsets = record_offsets(data, batch)
            found.append([(file.file_id, decode_record(data, at)) for at, _ in offsets])
    return found


def records(directory):
    return [record for batch in batches(directory) for _, record in batch]


def test_everything_between_two_flushes_shares_a_batch(store, tmp_path, kit):
    for number in range(30):
        store.add(A, kit.reference(number), None)
    kit.until_durable(store)
    assert [len(batch) for batch in batches(tmp_path)] == [30]


def test_records_are_what_activemq_writes(store, tmp_path, kit):
    one = kit.reference(12)
    store.add(A, one, None)
    kit.until_durable(store)
    body = one.message.body
    frame = len(body).to_bytes(4, "big") + body
    store.remove(A, one)
    kit.until_durable(store)
    key = "ID:producer-1:1:1:1:12"
    assert records(tmp_path) == [AddMessage(A, key, frame), RemoveMessage(A, key)]


def test_a_message_id_beyond_ascii_is_written_in_plain_utf_8(store, tmp_path, kit):

    producer = ProducerId("ID:\N{GRINNING FACE}\0\N{LATIN SMALL LETTER E WITH ACUTE}", 1, 1)
    one = kit.reference(1, producer=producer)
    store.add(A, one, None)
    kit.until_durable(store)
    store.remove(A, one)
    kit.until_durable(store)
    assert {record.message_id for record in records(tmp_path)} == {f"{producer}:1"}
    store.close()
    assert store.open().queues == {}


def test_what_arrives_during_a_sync_is_the_next_batch(tmp_path, kit):
    disks = []

    def make(descriptor):
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
    given = []
    while not given:
        select.select([store.fileno()], [], [], 5)
        given += store.completed()
    assert given == receipts[:1]
    assert store.waiting() == 0
    kit.until_durable(store)
    assert [len(batch) for batch in batches(tmp_path)] == [1, 2]
    store.close()


def test_a_receipt_for_nothing_waits_for_what_was_handed_over_before(tmp_path, kit):

    disk = SlowDisk(0)
    store = KahaDBStore(tmp_path, file_bytes_max=FILE_BYTES, disk=lambda _: disk)
    store.open()
    first, second = kit.Receipt("first"), kit.Receipt("second")
    store.add(A, kit.reference(0), first)
    store.flush()
    store.remove(A, Reference(None, 0), second)
    assert list(store.flush()) == []
    disk.is_ready = True
    given = []
    while len(given) < 2:
        select.select([store.fileno()], [], [], 5)
        given += store.completed()
    assert given == [first, second]
    store.close()


def test_a_transaction_is_one_batch_even_when_it_is_larger_than_one(tmp_path, kit):
    store = KahaDBStore(tmp_path, file_bytes_max=4096, batch_bytes_max=1000)
    store.open()
    for number in range(8):
        store.add(A, kit.reference(number), None)
    sent = [Add(B, kit.reference(100 + number, B, 300)) for number in range(20)]
    store.commit(LOCAL, sent, None)
    store.add(A, kit.reference(50), None)
    kit.until_durable(store)
    found = batches(tmp_path)
    whole = [batch for batch in found if any(isinstance(one, Commit) for _, one in batch)]
    assert [len(batch) for batch in whole] == [21]
    assert all(one.transaction == LOCAL for _, one in whole[0])
    assert all(len(batch) < 8 for batch in found if batch is not whole[0])
    store.close()


def test_copies_are_one_batch_even_when_they_are_larger_than_one(tmp_path, kit):
    store = KahaDBStore(tmp_path, file_bytes_max=4096, batch_bytes_max=1000)
    store.open()
    store.add(A, kit.reference(1), None)
    copies = [(A, kit.reference(2, size=600)), (B, kit.reference(2, B, 600))]
    receipt = kit.Receipt()
    store.add_together([Add(*copy) for copy in copies], receipt)
    store.remove(B, copies[1][1])
    assert receipt in kit.until_durable(store)
    written = [[record for _, record in batch] for batch in batches(tmp_path)]
    adds = [record for record in written[1] if isinstance(record, AddMessage)]
    assert [(add.destination, add.transaction) for add in adds] == [(A, None), (B, None)]
    assert RemoveMessage(B, adds[1].message_id) in [one for batch in written for one in batch]
    store.close()


def test_a_transaction_that_no_file_can_hold_is_refused_whole(store, tmp_path, kit, monkeypatch):
    monkeypatch.setattr("lockkeeper.store.kahadb.appender.ATOMIC_BATCH_BYTES_MAX", 2000)
    sent = [Add(A, kit.reference(number, size=500)) for number in range(5)]
    with pytest.raises(StoreError, match="do not fit into a data file"):
        store.commit(LOCAL, sent, None)
    store.add(A, kit.reference(9), None)
    kit.until_durable(store)
    assert [record.message_id[-2:] for record in records(tmp_path)] == [":9"]


def test_an_xa_transaction_carries_the_acknowledgement_that_activemq_needs(store, tmp_path, kit):
    one = kit.reference(12)
    store.add(A, one, None)
    kit.until_durable(store)
    identifier = XATransactionId(3, b"g", b"b")
    store.prepare(identifier, [Remove(A, one)], None)
    kit.until_durable(store)
    remove = records(tmp_path)[1]
    ack, _ = codec_for(11, stack_traces=False).decode(remove.ack, 4)
    assert isinstance(ack, MessageAck)
    assert (ack.destination, ack.transaction_id, ack.ack_type) == (A, identifier, AckType.STANDARD)
    assert str(ack.first_message_id) == str(ack.last_message_id) == "ID:producer-1:1:1:1:12"
    store.commit_prepared(identifier, [Remove(A, one)], None)


def test_a_full_file_is_followed_by_the_next_and_all_end_properly(tmp_path, kit):
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


def test_a_message_larger_than_a_file_gets_a_longer_file_of_its_own(tmp_path, kit):
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


def test_removals_without_a_receipt_leave_within_a_few_milliseconds(store, tmp_path, kit):
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
        assert select.select([store.fileno()], [], [], 5)[0]
        store.completed()
    assert [len(batch) for batch in batches(tmp_path)] == [3, 2]


def test_many_removals_do_not_wait(store, tmp_path, kit):
    references = [kit.reference(number) for number in range(256)]
    for one in references:
        store.add(A, one, None)
    kit.until_durable(store)
    for one in references:
        store.remove(A, one)
    store.flush()
    assert store.waiting() == 0
    kit.until_durable(store)


def test_removals_ride_with_the_next_batch(store, tmp_path, kit):
    one = kit.reference(1)
    store.add(A, one, None)
    kit.until_durable(store)
    store.remove(A, one)
    store.flush()
    store.add(A, kit.reference(2), None)
    kit.until_durable(store)
    assert [len(batch) for batch in batches(tmp_path)] == [1, 2]


def test_notes_wait_for_company(store, tmp_path, kit):
    select.select([store.fileno()], [], [], 0.02)
    store.completed()
    store.trace("lk1 {}")
    assert list(store.flush()) == []
    assert not select.select([store.fileno()], [], [], 0.02)[0]
    assert store.waiting() == 1
    store.add(A, kit.reference(1), None)
    kit.until_durable(store)
    assert records(tmp_path)[0] == Trace("lk1 {}")


def test_notes_do_not_fill_the_memory_while_nothing_else_is_written(store, tmp_path, kit):
    """A broker without persistent messages has nothing else to write, for months."""
    line = "lk1 " + "x" * 100_000
    for _ in range(30):
        store.trace(line)
        assert list(store.flush()) == []
        while store.is_behind():
            assert select.select([store.fileno()], [], [], 5)[0]
            assert list(store.completed()) == []
    assert store.waiting() < 11
    kit.until_durable(store)
    assert [each for each in records(tmp_path) if each == Trace(line)] == [Trace(line)] * 30


def test_a_message_whose_body_was_dropped_is_removed_by_its_id_on_disk(store, tmp_path, kit):
    one = kit.reference(33)
    store.add(A, one, None)
    kit.until_durable(store)
    one.message = None
    store.remove(A, one)
    kit.until_durable(store)
    assert records(tmp_path)[1] == RemoveMessage(A, "ID:producer-1:1:1:1:33")


def test_a_topic_without_subscribers_left_is_live_no_more(store, tmp_path, kit):
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


def test_a_failed_sync_ends_the_trust_in_the_journal(tmp_path, kit):
    store = KahaDBStore(tmp_path, file_bytes_max=FILE_BYTES, disk=FailingDisk)
    store.open()
    store.add(A, kit.reference(1), kit.Receipt())
    store.flush()
    with pytest.raises(StoreError, match=r"db-1.log: Input/output error; .* may be lost"):
        store.completed()
    store._disk.is_ready = True
    store._commit.is_writing = False
    store.add(A, kit.reference(2), None)
    with pytest.raises(StoreError, match="may be lost"):
        store.flush()
    with pytest.raises(StoreError, match="may be lost"):
        store.close()
    assert not store.lock.is_held


def test_a_sync_that_fails_while_closing_is_told(tmp_path, kit):
    store = KahaDBStore(tmp_path, file_bytes_max=FILE_BYTES, disk=SlowDisk)
    store.open()
    store.add(A, kit.reference(1), None)
    store._disk.error = OSError(errno.EIO, "Input/output error")
    with pytest.raises(StoreError, match="Input/output error"):
        store.close()


def test_a_write_without_room_is_kept_and_tried_again(store, tmp_path, kit, monkeypatch):
    first, second = kit.reference(1), kit.reference(2)
    store.add(A, first, None)
    kit.until_durable(store)
    receipt = kit.Receipt()
    store.add(A, second, receipt)

    def no_room(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", no_room)
        assert list(store.flush()) == []
        assert (second.state, second.location, store.waiting()) == (WAITING, 0, 1)
        assert len(records(tmp_path)) == 1
    assert kit.until_durable(store) == [receipt]
    assert second.state == WRITTEN
    assert len(records(tmp_path)) == 2


def test_a_write_that_the_disk_cuts_short_is_finished(store, tmp_path, kit, monkeypatch):
    whole = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda fd, parts, at: whole(fd, [parts[0]], at))
    for number in range(3):
        store.add(A, kit.reference(number), None)
    kit.until_durable(store)
    assert len(records(tmp_path)) == 3


def test_a_write_that_fails_for_another_reason_is_fatal(tmp_path, kit, monkeypatch):
    store = KahaDBStore(tmp_path, file_bytes_max=FILE_BYTES)
    store.open()
    store.add(A, kit.reference(1), None)

    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pwritev", broken)
    with pytest.raises(StoreError, match="Input/output error"):
        store.flush()
    with pytest.raises(StoreError):
        store.close()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of half a megabyte."""
    mounted = tmp_path / "small"
    mounted.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(mounted)]
    try:
        result = subprocess.run(command, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if result.returncode:
        pytest.skip("mounting a small file system is not allowed here")
    yield mounted
    subprocess.run(["umount", "-l", str(mounted)], check=True)


def test_a_full_disk_refuses_messages_but_loses_none_and_goes_on_when_freed(small_disk, kit):
    store = KahaDBStore(small_disk / "data", clock=kit.clock, file_bytes_max=128 << 10)
    store.open()
    sent = []
    with pytest.raises(StoreFullError, match=r"db-\d+.log: no room on the disk"):
        for number in range(1000):
            store.check_full()
            sent.append(kit.reference(number, size=1000))
            store.add(A, sent[-1], kit.Receipt())
            kit.until_durable(store)
            kit.maintain(store, number)
    assert 100 < len(sent) < 500
    # There is still room to consume: that is how a disk gets empty again.
    for one in sent[:-10]:
        store.remove(A, one)
    kit.until_durable(store)
    now = 1_000_000
    kit.maintain(store, now)
    kit.until_durable(store)
    for _ in range(100):
        now += 1000
        kit.maintain(store, now)
        try:
            store.check_full()
        except StoreFullError:
            select.select([], [], [], 0.05)
            continue
        break
    store.check_full()
    store.add(A, kit.reference(7777), None)
    store.close()
    recovered = store.open()
    expected = [*range(len(sent) - 10, len(sent)), 7777]
    assert kit.numbers(store, recovered.queues[A]) == expected
    store.close()


def test_a_disk_that_is_full_when_a_file_is_needed_keeps_everything(small_disk, kit):
    filler = small_disk / "filler"
    filler.write_bytes(bytes(450 << 10))
    store = KahaDBStore(small_disk / "data", file_bytes_max=128 << 10)
    store.open()
    receipt = kit.Receipt()
    store.add(A, kit.reference(1), receipt)
    assert list(store.flush()) == []
    with pytest.raises(StoreFullError):
        store.check_full()
    assert store.waiting() == 1
    with pytest.raises(StoreFullError, match="no room"):
        store.close()
    filler.unlink()
    assert store.open().queues == {}
    store.add(A, kit.reference(1), receipt)
    assert kit.until_durable(store) == [receipt]
    store.close()
