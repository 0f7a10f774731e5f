"""Replay of journals made by hand: each rule of kahadb.md section 4, damage, and speed."""

import pytest

from lockkeeper.journal.batch import EOF_RECORD, build_batch
from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.protobuf import bytes_field, number_field
from lockkeeper.journal.records import (
    AckFileMap,
    AddMessage,
    Commit,
    Prepare,
    RemoveDestination,
    RemoveMessage,
    RewrittenDataFile,
    Rollback,
    Trace,
    UpdateMessage,
)
from lockkeeper.journal.records import Subscription as SubscriptionRecord
from lockkeeper.journal.scan import record_offsets, scan_file
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import LocalTransactionId, XATransactionId
from lockkeeper.message.message import UnreadableMessage
from lockkeeper.store.base import StoreError, Subscription
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.frames import subscription_frame

A, B, NEWS = queue("A"), queue("B"), topic("NEWS")
LOCAL = LocalTransactionId("ID:client-1:1", 7)
GLOBAL = XATransactionId(86, b"global", b"branch")
KEY = "ID:producer-1:1:1:1:"


@pytest.fixture
def journal(tmp_path, kit):
    """Return a builder of journals by hand, and of what they replay to."""
    return Journal(tmp_path / "data", kit)


class Journal:
    def __init__(self, directory, kit):
        self.directory = directory
        self.kit = kit
        directory.mkdir()

    def add(self, number, destination=A, transaction=None, text=None):
        body = self.kit.reference(number if text is None else text, destination).message.body
        frame = len(body).to_bytes(4, "big") + body
        return AddMessage(destination, f"{KEY}{number}", frame, transaction=transaction)

    def remove(self, number, destination=A, key=None, transaction=None):
        return RemoveMessage(destination, f"{KEY}{number}", None, key, transaction)

    def subscribe(self, name, destination=NEWS, retroactive=False):
        subscription = Subscription("client", name, destination, None, False)
        frame = subscription_frame(subscription)
        return SubscriptionRecord(destination, subscription.key, retroactive, frame)

    def write(self, *records, file_id=1, rest=EOF_RECORD):
        """Write a file with a batch per record; records may be bytes."""
        encoded = [one if isinstance(one, bytes) else encode_record(one) for one in records]
        batches = [build_batch(one)[: -len(EOF_RECORD)] for one in encoded]
        (self.directory / f"db-{file_id}.log").write_bytes(b"".join(batches) + rest)
        return batches

    def open(self):
        self.store = KahaDBStore(self.directory, file_bytes_max=1 << 16)
        return self.store.open()

    def replay(self, *records):
        """Return the numbers in each queue, and pending for each subscription."""
        if records:
            self.write(*records)
        recovered = self.open()
        found = {
            destination.name: self.kit.numbers(self.store, references)
            for destination, references in recovered.queues.items()
        }
        for entry in recovered.subscriptions:
            found[entry.subscription.name] = self.kit.numbers(self.store, entry.pending)
        self.recovered = recovered
        self.store.close()
        return found

    def records(self):
        """Return what the journal holds now: (file id, record)."""
        found = []
        for file in list_data_files(self.directory):
            data = file.path.read_bytes()
            scan = scan_file(data, file.path.name)
            scan.require_whole()
            for batch in scan.batches:
                for offset, _ in record_offsets(data, batch):
                    found.append((file.file_id, decode_record(data, offset)))
        return found


def test_an_empty_directory_holds_nothing(journal):
    assert journal.replay() == {}


def test_of_two_messages_with_one_id_the_first_counts(journal):
    assert journal.replay(journal.add(1), journal.add(2), journal.add(1)) == {"A": [1, 2]}


def test_a_message_may_come_again_after_its_removal(journal):
    records = [journal.add(1), journal.add(2), journal.remove(1), journal.add(1)]
    assert journal.replay(*records) == {"A": [2, 1]}


def test_removals_of_unknown_messages_and_destinations_are_ignored(journal):
    records = [journal.remove(9), journal.add(1), journal.remove(1, B), journal.remove(2)]
    assert journal.replay(*records) == {"A": [1]}


def test_a_commit_applies_at_its_own_place(journal):
    records = [journal.add(1, transaction=LOCAL), journal.add(2), Commit(LOCAL), journal.add(3)]
    assert journal.replay(*records) == {"A": [2, 1, 3]}


def test_a_rollback_discards(journal):
    records = [
        journal.add(1),
        journal.add(2, transaction=LOCAL),
        journal.remove(1, transaction=LOCAL),
        Rollback(LOCAL),
        Commit(LOCAL),
    ]
    assert journal.replay(*records) == {"A": [1]}


def test_outcomes_of_unknown_transactions_are_ignored(journal):
    records = [Commit(LOCAL), Rollback(GLOBAL), Prepare(GLOBAL), journal.add(1)]
    assert journal.replay(*records) == {"A": [1]}
    assert journal.recovered.prepared == {}


def test_an_update_keeps_the_place_of_the_message(journal):
    update = UpdateMessage(journal.add(1, text=501))
    records = [journal.add(1), journal.add(2), update, journal.remove(2), journal.add(3)]
    assert journal.replay(*records) == {"A": [501, 3]}


def test_an_updated_message_is_removed_by_its_id(journal):
    update = UpdateMessage(journal.add(1, text=501))
    assert journal.replay(journal.add(1), journal.add(2), update, journal.remove(1)) == {"A": [2]}


def test_an_update_of_an_unknown_message_adds_it(journal):
    assert journal.replay(journal.add(1), UpdateMessage(journal.add(2))) == {"A": [1, 2]}


def test_the_body_of_an_update_is_loaded_and_its_id_found(journal):
    journal.write(journal.add(1), UpdateMessage(journal.add(1, text=501)))
    (one,) = journal.open().queues[A]
    journal.store.remove(A, one)
    journal.store.close()
    assert journal.records()[-1][1] == RemoveMessage(A, f"{KEY}1")
    assert journal.replay() == {}


def test_a_removed_destination_forgets_all_and_may_come_again(journal):
    records = [journal.add(1), journal.add(2, B), RemoveDestination(A), journal.add(3)]
    assert journal.replay(*records) == {"B": [2], "A": [3]}


def test_a_removed_topic_forgets_its_subscriptions(journal):
    records = [journal.subscribe("s"), journal.add(1, NEWS), RemoveDestination(NEWS)]
    assert journal.replay(*records) == {}
    assert journal.recovered.subscriptions == []


def test_a_topic_keeps_nothing_without_subscriptions(journal):
    records = [journal.add(1, NEWS), journal.subscribe("s"), journal.add(2, NEWS)]
    assert journal.replay(*records) == {"s": [2]}


def test_a_subscription_consumes_for_itself_alone(journal):
    records = [
        journal.subscribe("s"),
        journal.subscribe("t"),
        *(journal.add(number, NEWS) for number in range(4)),
        journal.remove(0, NEWS, "client:s"),
        journal.remove(1, NEWS, "client:t"),
        journal.remove(9, NEWS, "client:t"),
        journal.remove(1, NEWS, "client:nobody"),
    ]
    assert journal.replay(*records) == {"s": [1, 2, 3], "t": [0, 2, 3]}
    pending = journal.recovered.subscriptions[0].pending
    assert [one.holders for one in pending] == [1, 2, 2]


def test_a_removal_for_no_one_in_particular_is_for_all(journal):
    records = [
        journal.subscribe("s"),
        journal.subscribe("t"),
        journal.add(1, NEWS),
        journal.add(2, NEWS),
        journal.remove(1, NEWS),
    ]
    assert journal.replay(*records) == {"s": [2], "t": [2]}


def test_a_subscription_created_again_begins_anew(journal):
    records = [
        journal.subscribe("s"),
        journal.add(1, NEWS),
        journal.subscribe("s"),
        journal.add(2, NEWS),
    ]
    assert journal.replay(*records) == {"s": [2]}


def test_a_subscription_may_move_to_another_topic(journal):
    other = topic("OTHER")
    records = [
        journal.subscribe("s"),
        journal.add(1, NEWS),
        journal.subscribe("s", other),
        journal.add(2, NEWS),
        journal.add(3, other),
    ]
    assert journal.replay(*records) == {"s": [3]}


def test_a_retroactive_subscription_sees_what_others_have_not_consumed(journal):
    records = [
        journal.subscribe("s"),
        *(journal.add(number, NEWS) for number in range(3)),
        journal.remove(0, NEWS, "client:s"),
        journal.subscribe("t", retroactive=True),
    ]
    assert journal.replay(*records) == {"s": [1, 2], "t": [1, 2]}


def test_a_deleted_subscription_is_gone(journal):
    delete = SubscriptionRecord(NEWS, "client:s")
    assert journal.replay(journal.subscribe("s"), journal.add(1, NEWS), delete, delete) == {}


def test_a_prepared_part_of_a_topic_is_held_for_its_subscription(journal):
    journal.write(
        journal.subscribe("s"),
        journal.subscribe("t"),
        journal.add(1, NEWS),
        journal.add(2, NEWS, GLOBAL),
        journal.remove(1, NEWS, "client:s", GLOBAL),
        journal.remove(7, NEWS, "client:s", GLOBAL),
        Prepare(GLOBAL),
    )
    recovered = journal.open()
    pending = {entry.subscription.name: entry.pending for entry in recovered.subscriptions}
    assert [len(pending["s"]), len(pending["t"])] == [0, 1]
    add, remove = recovered.prepared[GLOBAL]
    assert (add.reference.holders, remove.reference.holders) == (2, 2)
    assert remove.subscription.name == "s"
    assert remove.reference is pending["t"][0]
    journal.store.commit_prepared(GLOBAL, [add, remove], None)
    journal.store.close()
    assert journal.replay() == {"s": [2], "t": [1, 2]}


def test_a_prepared_transaction_may_consume_its_own_message(journal):
    records = [journal.add(1, A, GLOBAL), journal.remove(1, A, None, GLOBAL), Prepare(GLOBAL)]
    assert journal.replay(*records) == {}
    add, remove = journal.recovered.prepared[GLOBAL]
    assert add.reference is remove.reference


def test_bookkeeping_records_of_activemq_say_nothing(journal):
    assert journal.replay(Trace("LOADED"), AckFileMap(b"java"), journal.add(1)) == {"A": [1]}


def test_open_transactions_are_rolled_back_before_anything_new(journal, kit):
    journal.write(
        journal.add(1),
        journal.add(2, transaction=LOCAL),
        journal.remove(1, transaction=LOCAL),
        journal.add(3, transaction=GLOBAL),
    )
    recovered = journal.open()
    assert kit.numbers(journal.store, recovered.queues[A]) == [1]
    journal.store.add(B, kit.reference(9, B), None)
    journal.store.close()
    written = [record for file_id, record in journal.records() if file_id == 2]
    assert written[:2] == [Rollback(LOCAL), Rollback(GLOBAL)]
    assert journal.replay() == {"A": [1], "B": [9]}


def test_a_rewritten_file_counts_only_when_its_source_is_gone(journal):
    journal.write(journal.add(1), journal.add(2), file_id=1)
    journal.write(RewrittenDataFile(2), journal.remove(1), file_id=3)
    journal.write(journal.add(3), file_id=4)
    assert journal.replay() == {"A": [2, 3]}
    journal.write(Trace("the source is back"), file_id=2)
    assert journal.replay() == {"A": [1, 2, 3]}


def test_files_are_read_in_numeric_order_with_gaps(journal):
    journal.write(journal.add(10), file_id=10)
    journal.write(journal.add(9), file_id=9)
    (journal.directory / "db-11.log").touch()
    assert journal.replay() == {"A": [9, 10]}


def test_a_new_file_is_numbered_behind_all_others_even_empty_ones(journal, kit):
    journal.write(journal.add(1), file_id=7)
    (journal.directory / "db-9.log").touch()
    journal.open()
    journal.store.add(A, kit.reference(2), None)
    journal.store.close()
    assert [file_id for file_id, _ in journal.records()] == [7, 10]


def test_destinations_written_differently_are_one(journal):
    odd = bytes_field(2, bytes_field(2, b"A") + number_field(1, 0))
    add = encode_record(journal.add(2))
    usual = bytes_field(2, number_field(1, 0) + bytes_field(2, b"A"))
    assert usual in add
    assert journal.replay(journal.add(1), add.replace(usual, odd)) == {"A": [1, 2]}


@pytest.mark.parametrize("rest", [b"", bytes(400)])
def test_a_torn_tail_loses_only_the_torn_batch(tmp_path, kit, rest):
    numbers = range(3)
    made = Journal(tmp_path / "made", kit)
    batches = made.write(*(made.add(number) for number in numbers))
    whole = b"".join(batches)
    start = len(whole) - len(batches[-1])
    # Every byte of the control record, then some of the record; the scan's own test does all.
    for cut in [*range(start, start + 30), *range(start + 30, len(whole), 37), len(whole) - 2]:
        directory = tmp_path / f"cut-{cut}"
        torn = Journal(directory, kit)
        (directory / "db-1.log").write_bytes(whole[:cut] + rest)
        (directory / "db.data").write_bytes(b"cleanShutdown=true")
        before = (directory / "db-1.log").read_bytes()
        torn.open()
        assert (directory / "db-1.log").read_bytes() == before
        torn.store.add(A, kit.reference(9), None)
        torn.store.close()
        file = (directory / "db-1.log").read_bytes()
        assert file[:start] == whole[:start]
        if cut > start or rest:
            assert file[start : start + len(EOF_RECORD)] == EOF_RECORD
            assert not (directory / "db.data").exists()
        assert torn.replay() == {"A": [0, 1, 9]}


def test_a_sound_file_whose_end_was_not_written_gets_its_end(journal, kit):
    batches = journal.write(journal.add(1), rest=bytes(100))
    journal.open()
    journal.store.add(A, kit.reference(2), None)
    journal.store.close()
    whole = (journal.directory / "db-1.log").read_bytes()
    assert whole == b"".join(batches) + EOF_RECORD + bytes(95)
    assert journal.replay() == {"A": [1, 2]}


def test_a_file_torn_at_its_very_beginning_is_left_to_its_writer(journal, kit):
    journal.write(journal.add(1), file_id=1)
    (journal.directory / "db-2.log").write_bytes(build_batch(b"anything")[:20] + bytes(500))
    journal.open()
    journal.store.add(A, kit.reference(2), None)
    journal.store.close()
    assert (journal.directory / "db-2.log").read_bytes().startswith(EOF_RECORD)
    assert [file_id for file_id, _ in journal.records()] == [1, 3]


def test_a_torn_file_before_one_that_was_only_prepared_is_the_last(journal, kit):
    batches = journal.write(journal.add(1), journal.add(2))
    torn = b"".join(batches)[:-10]
    (journal.directory / "db-1.log").write_bytes(torn)
    (journal.directory / "db-2.log").write_bytes(EOF_RECORD + bytes(1000))
    journal.open()
    journal.store.add(A, kit.reference(3), None)
    journal.store.close()
    assert journal.replay() == {"A": [1, 3]}
    assert [file_id for file_id, _ in journal.records()] == [1, 3]


def test_a_torn_file_before_one_with_records_is_an_error(journal):
    batches = journal.write(journal.add(1), journal.add(2))
    (journal.directory / "db-1.log").write_bytes(b"".join(batches)[:-10])
    journal.write(journal.add(3), file_id=2)
    with pytest.raises(StoreError, match=rf"db-1.log: .* offset {len(batches[0])}: .* copy"):
        journal.open()
    assert not journal.store.lock.is_held


def test_a_flipped_byte_before_sound_batches_is_an_error(journal):
    batches = journal.write(journal.add(1), journal.add(2), journal.add(3))
    data = bytearray((journal.directory / "db-1.log").read_bytes())
    data[len(batches[0]) + 60] ^= 4
    (journal.directory / "db-1.log").write_bytes(data)
    with pytest.raises(StoreError, match=rf"db-1.log: .* offset {len(batches[0])}: its Adler-32"):
        journal.open()


def test_a_record_that_cannot_be_read_is_an_error(journal):
    journal.write(journal.add(1), encode_record(Trace("x")).replace(b"\x01\x00", b"\x01\x2a", 1))
    with pytest.raises(StoreError, match=r"db-1.log: bad record .*command type 42"):
        journal.open()


def test_a_subscription_that_cannot_be_read_is_an_error(journal):
    journal.write(SubscriptionRecord(NEWS, "client:s", False, b"\0\0\0\x01\xff"))
    with pytest.raises(StoreError, match=r"db-1.log: bad record at offset 28: not a subscription"):
        journal.open()


def test_a_subscription_frame_of_another_kind_is_an_error(journal):
    frame = b"\0\0\0\x06" + bytes([10]) + bytes(5)
    journal.write(SubscriptionRecord(NEWS, "client:s", False, frame))
    with pytest.raises(StoreError, match=r"a KeepAliveInfo instead of a subscription"):
        journal.open()


def test_a_subscription_filed_under_another_key_is_an_error(journal):
    record = journal.subscribe("s")
    journal.write(SubscriptionRecord(NEWS, "client:t", False, record.info))
    with pytest.raises(StoreError, match="client:s is filed as client:t"):
        journal.open()


def test_a_message_that_cannot_be_read_is_told_from_others_when_loaded(journal):
    journal.write(AddMessage(A, "ID:p:1:1:1:7", b"\0\0\0\x03abc"), journal.add(2))
    references = journal.open().queues[A]
    journal.store.load(references, 1)
    bad, good = (reference.message for reference in references)
    assert isinstance(bad, UnreadableMessage)
    assert bad.key == b"ID:p:1:1:1:7"
    assert not isinstance(good, UnreadableMessage)
    journal.store.close()


def test_a_data_file_that_vanished_is_an_error_when_loaded(journal):
    journal.write(journal.add(1))
    references = journal.open().queues[A]
    (journal.directory / "db-1.log").unlink()
    with pytest.raises(StoreError, match=r"cannot read .*db-1.log"):
        journal.store.load(references, 1)
    journal.store.close()


def test_a_data_file_that_was_cut_is_an_error_when_loaded(journal):
    journal.write(journal.add(1))
    (one,) = journal.open().queues[A]
    with (journal.directory / "db-1.log").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(StoreError, match=r"db-1.log: ends before offset"):
        journal.store.load([one], 1)
    with pytest.raises(StoreError, match=r"db-1.log: ends before offset"):
        journal.store.remove(A, one)
    journal.store.close()


def test_pages_are_loaded_across_batches_gaps_and_files(tmp_path, kit):
    store = KahaDBStore(tmp_path, file_bytes_max=1 << 20)
    store.open()
    for number in range(400):
        store.add(A if number % 3 else B, kit.reference(number, size=4000), None)
        if number % 7 == 0:
            kit.until_durable(store)
    store.close()
    recovered = store.open()
    numbers = [number for number in range(400) if number % 3]
    references = recovered.queues[A]
    assert len(list(tmp_path.glob("db-*.log"))) > 1
    assert kit.numbers(store, references[::-7]) == numbers[::-7]
    assert kit.numbers(store, references) == numbers
    store.close()
