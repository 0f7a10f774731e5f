"""Replay of journals made by hand: each rule of kahadb.md section 4, damage, and speed."""

from pathlib import Path

import pytest
from handmade_journal import KEY, Journal
from store_kit import Kit

from lockkeeper.journal.batch import EOF_RECORD, build_batch
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.protobuf import bytes_field, number_field
from lockkeeper.journal.records import (
    AckFileMap,
    AddMessage,
    Commit,
    Prepare,
    Record,
    RemoveDestination,
    RemoveMessage,
    RewrittenDataFile,
    Rollback,
    Trace,
    UpdateMessage,
)
from lockkeeper.journal.records import Subscription as SubscriptionRecord
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import LocalTransactionId, XATransactionId
from lockkeeper.message.message import UnreadableMessage
from lockkeeper.store.base import Remove, StoreError
from lockkeeper.store.kahadb import DirectoryLock, KahaDBStore

A, B, NEWS = queue("A"), queue("B"), topic("NEWS")
LOCAL = LocalTransactionId("ID:client-1:1", 7)
GLOBAL = XATransactionId(86, b"global", b"branch")


@pytest.fixture
def journal(tmp_path: Path, kit: Kit) -> Journal:
    """Return a builder of journals by hand, and of what they replay to."""
    return Journal(tmp_path / "data", kit)


def test_an_empty_directory_holds_nothing(journal: Journal) -> None:
    assert journal.replay() == {}


def test_of_two_messages_with_one_id_the_first_counts(journal: Journal) -> None:
    assert journal.replay(journal.add(1), journal.add(2), journal.add(1)) == {"A": [1, 2]}


def test_a_message_may_come_again_after_its_removal(journal: Journal) -> None:
    records: list[Record] = [journal.add(1), journal.add(2), journal.remove(1), journal.add(1)]
    assert journal.replay(*records) == {"A": [2, 1]}


def test_removals_of_unknown_messages_and_destinations_are_ignored(journal: Journal) -> None:
    records: list[Record] = [
        journal.remove(9),
        journal.add(1),
        journal.remove(1, B),
        journal.remove(2),
    ]
    assert journal.replay(*records) == {"A": [1]}


def test_a_commit_applies_at_its_own_place(journal: Journal) -> None:
    records: list[Record] = [
        journal.add(1, transaction=LOCAL),
        journal.add(2),
        Commit(LOCAL),
        journal.add(3),
    ]
    assert journal.replay(*records) == {"A": [2, 1, 3]}


def test_a_rollback_discards(journal: Journal) -> None:
    records: list[Record] = [
        journal.add(1),
        journal.add(2, transaction=LOCAL),
        journal.remove(1, transaction=LOCAL),
        Rollback(LOCAL),
        Commit(LOCAL),
    ]
    assert journal.replay(*records) == {"A": [1]}


def test_outcomes_of_unknown_transactions_are_ignored(journal: Journal) -> None:
    records: list[Record] = [Commit(LOCAL), Rollback(GLOBAL), Prepare(GLOBAL), journal.add(1)]
    assert journal.replay(*records) == {"A": [1]}
    assert journal.recovered.prepared == {}


def test_an_update_keeps_the_place_of_the_message(journal: Journal) -> None:
    update = UpdateMessage(journal.add(1, text=501))
    records: list[Record] = [
        journal.add(1),
        journal.add(2),
        update,
        journal.remove(2),
        journal.add(3),
    ]
    assert journal.replay(*records) == {"A": [501, 3]}


def test_an_updated_message_is_removed_by_its_id(journal: Journal) -> None:
    update = UpdateMessage(journal.add(1, text=501))
    assert journal.replay(journal.add(1), journal.add(2), update, journal.remove(1)) == {"A": [2]}


def test_an_update_of_an_unknown_message_adds_it(journal: Journal) -> None:
    assert journal.replay(journal.add(1), UpdateMessage(journal.add(2))) == {"A": [1, 2]}


def test_the_body_of_an_update_is_loaded_and_its_id_found(journal: Journal) -> None:
    journal.write(journal.add(1), UpdateMessage(journal.add(1, text=501)))
    (one,) = journal.open().queues[A]
    journal.store.remove(A, one)
    journal.store.close()
    assert journal.records()[-1][1] == RemoveMessage(A, f"{KEY}1")
    assert journal.replay() == {}


def test_a_removed_destination_forgets_all_and_may_come_again(journal: Journal) -> None:
    records: list[Record] = [
        journal.add(1),
        journal.add(2, B),
        RemoveDestination(A),
        journal.add(3),
    ]
    assert journal.replay(*records) == {"B": [2], "A": [3]}


def test_a_removed_topic_forgets_its_subscriptions(journal: Journal) -> None:
    records: list[Record] = [journal.subscribe("s"), journal.add(1, NEWS), RemoveDestination(NEWS)]
    assert journal.replay(*records) == {}
    assert journal.recovered.subscriptions == []


def test_a_topic_keeps_nothing_without_subscriptions(journal: Journal) -> None:
    records: list[Record] = [journal.add(1, NEWS), journal.subscribe("s"), journal.add(2, NEWS)]
    assert journal.replay(*records) == {"s": [2]}


def test_a_subscription_consumes_for_itself_alone(journal: Journal) -> None:
    records: list[Record] = [
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


def test_a_removal_for_no_one_in_particular_is_for_all(journal: Journal) -> None:
    records: list[Record] = [
        journal.subscribe("s"),
        journal.subscribe("t"),
        journal.add(1, NEWS),
        journal.add(2, NEWS),
        journal.remove(1, NEWS),
    ]
    assert journal.replay(*records) == {"s": [2], "t": [2]}


def test_a_subscription_created_again_begins_anew(journal: Journal) -> None:
    records: list[Record] = [
        journal.subscribe("s"),
        journal.add(1, NEWS),
        journal.subscribe("s"),
        journal.add(2, NEWS),
    ]
    assert journal.replay(*records) == {"s": [2]}


def test_a_subscription_may_move_to_another_topic(journal: Journal) -> None:
    other = topic("OTHER")
    records: list[Record] = [
        journal.subscribe("s"),
        journal.add(1, NEWS),
        journal.subscribe("s", other),
        journal.add(2, NEWS),
        journal.add(3, other),
    ]
    assert journal.replay(*records) == {"s": [3]}


def test_a_retroactive_subscription_sees_what_others_have_not_consumed(journal: Journal) -> None:
    records: list[Record] = [
        journal.subscribe("s"),
        *(journal.add(number, NEWS) for number in range(3)),
        journal.remove(0, NEWS, "client:s"),
        journal.subscribe("t", retroactive=True),
    ]
    assert journal.replay(*records) == {"s": [1, 2], "t": [1, 2]}


def test_a_deleted_subscription_is_gone(journal: Journal) -> None:
    delete = SubscriptionRecord(NEWS, "client:s")
    assert journal.replay(journal.subscribe("s"), journal.add(1, NEWS), delete, delete) == {}


def test_a_prepared_part_of_a_topic_is_held_for_its_subscription(journal: Journal) -> None:
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
    assert isinstance(remove, Remove)
    assert remove.subscription is not None
    assert (add.references[0].holders, remove.references[0].holders) == (2, 2)
    assert remove.subscription.name == "s"
    assert remove.references[0] is pending["t"][0]
    journal.store.commit_prepared(GLOBAL, [add, remove], None)
    journal.store.close()
    assert journal.replay() == {"s": [2], "t": [1, 2]}


def test_a_prepared_transaction_may_consume_its_own_message(journal: Journal) -> None:
    records: list[Record] = [
        journal.add(1, A, GLOBAL),
        journal.remove(1, A, None, GLOBAL),
        Prepare(GLOBAL),
    ]
    assert journal.replay(*records) == {}
    add, remove = journal.recovered.prepared[GLOBAL]
    assert add.references[0] is remove.references[0]


def test_a_prepared_transaction_consumes_no_copy_of_another_destination(journal: Journal) -> None:
    journal.write(
        journal.add(1, B, GLOBAL),
        journal.remove(1, A, None, GLOBAL),
        Prepare(GLOBAL),
    )
    recovered = journal.open()
    (add,) = recovered.prepared[GLOBAL]
    assert add.destination == B
    journal.store.commit_prepared(GLOBAL, [add], None)
    journal.store.close()
    assert journal.replay() == {"B": [1]}


def test_bookkeeping_records_of_activemq_say_nothing(journal: Journal) -> None:
    assert journal.replay(Trace("LOADED"), AckFileMap(b"java"), journal.add(1)) == {"A": [1]}


def test_open_transactions_are_rolled_back_before_anything_new(journal: Journal, kit: Kit) -> None:
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


def test_a_rewritten_file_counts_only_when_its_source_is_gone(journal: Journal) -> None:
    journal.write(journal.add(1), journal.add(2), file_id=1)
    journal.write(RewrittenDataFile(2), journal.remove(1), file_id=3)
    journal.write(journal.add(3), file_id=4)
    assert journal.replay() == {"A": [2, 3]}
    journal.write(Trace("the source is back"), file_id=2)
    assert journal.replay() == {"A": [1, 2, 3]}


def test_files_are_read_in_numeric_order_with_gaps(journal: Journal) -> None:
    journal.write(journal.add(10), file_id=10)
    journal.write(journal.add(9), file_id=9)
    (journal.directory / "db-11.log").touch()
    assert journal.replay() == {"A": [9, 10]}


def test_a_new_file_is_numbered_behind_all_others_even_empty_ones(
    journal: Journal, kit: Kit
) -> None:
    journal.write(journal.add(1), file_id=7)
    (journal.directory / "db-9.log").touch()
    journal.open()
    journal.store.add(A, kit.reference(2), None)
    journal.store.close()
    assert [file_id for file_id, _ in journal.records()] == [7, 10]


def test_destinations_written_differently_are_one(journal: Journal) -> None:
    odd = bytes_field(2, bytes_field(2, b"A") + number_field(1, 0))
    add = encode_record(journal.add(2))
    usual = bytes_field(2, number_field(1, 0) + bytes_field(2, b"A"))
    assert usual in add
    assert journal.replay(journal.add(1), add.replace(usual, odd)) == {"A": [1, 2]}


@pytest.mark.parametrize("rest", [b"", bytes(400)])
def test_a_torn_tail_loses_only_the_torn_batch(tmp_path: Path, kit: Kit, rest: bytes) -> None:
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


def test_a_sound_file_whose_end_was_not_written_gets_its_end(journal: Journal, kit: Kit) -> None:
    batches = journal.write(journal.add(1), rest=bytes(100))
    journal.open()
    journal.store.add(A, kit.reference(2), None)
    journal.store.close()
    whole = (journal.directory / "db-1.log").read_bytes()
    assert whole == b"".join(batches) + EOF_RECORD + bytes(95)
    assert journal.replay() == {"A": [1, 2]}


def test_a_file_torn_at_its_very_beginning_is_left_to_its_writer(
    journal: Journal, kit: Kit
) -> None:
    journal.write(journal.add(1), file_id=1)
    (journal.directory / "db-2.log").write_bytes(build_batch(b"anything")[:20] + bytes(500))
    journal.open()
    journal.store.add(A, kit.reference(2), None)
    journal.store.close()
    assert (journal.directory / "db-2.log").read_bytes().startswith(EOF_RECORD)
    assert [file_id for file_id, _ in journal.records()] == [1, 3]


def test_a_torn_file_before_one_that_was_only_prepared_is_the_last(
    journal: Journal, kit: Kit
) -> None:
    batches = journal.write(journal.add(1), journal.add(2))
    torn = b"".join(batches)[:-10]
    (journal.directory / "db-1.log").write_bytes(torn)
    (journal.directory / "db-2.log").write_bytes(EOF_RECORD + bytes(1000))
    journal.open()
    journal.store.add(A, kit.reference(3), None)
    journal.store.close()
    assert journal.replay() == {"A": [1, 3]}
    assert [file_id for file_id, _ in journal.records()] == [1, 3]


def test_a_torn_file_before_one_with_records_is_an_error(journal: Journal) -> None:
    batches = journal.write(journal.add(1), journal.add(2))
    (journal.directory / "db-1.log").write_bytes(b"".join(batches)[:-10])
    journal.write(journal.add(3), file_id=2)
    with pytest.raises(StoreError, match=rf"db-1.log: .* offset {len(batches[0])}: .* copy"):
        journal.open()
    lock = journal.store.lock
    assert isinstance(lock, DirectoryLock)
    assert not lock.is_held


def test_a_flipped_byte_before_sound_batches_is_an_error(journal: Journal) -> None:
    batches = journal.write(journal.add(1), journal.add(2), journal.add(3))
    data = bytearray((journal.directory / "db-1.log").read_bytes())
    data[len(batches[0]) + 60] ^= 4
    (journal.directory / "db-1.log").write_bytes(data)
    with pytest.raises(StoreError, match=rf"db-1.log: .* offset {len(batches[0])}: its Adler-32"):
        journal.open()


def test_a_record_that_cannot_be_read_is_an_error(journal: Journal) -> None:
    journal.write(journal.add(1), encode_record(Trace("x")).replace(b"\x01\x00", b"\x01\x2a", 1))
    with pytest.raises(StoreError, match=r"db-1.log: bad record .*command type 42"):
        journal.open()


def test_a_subscription_that_cannot_be_read_is_an_error(journal: Journal) -> None:
    journal.write(SubscriptionRecord(NEWS, "client:s", False, b"\0\0\0\x01\xff"))
    with pytest.raises(StoreError, match=r"db-1.log: bad record at offset 28: not a subscription"):
        journal.open()


def test_a_subscription_frame_of_another_kind_is_an_error(journal: Journal) -> None:
    frame = b"\0\0\0\x06" + bytes([10]) + bytes(5)
    journal.write(SubscriptionRecord(NEWS, "client:s", False, frame))
    with pytest.raises(StoreError, match=r"a KeepAliveInfo instead of a subscription"):
        journal.open()


def test_a_subscription_filed_under_another_key_is_an_error(journal: Journal) -> None:
    record = journal.subscribe("s")
    journal.write(SubscriptionRecord(NEWS, "client:t", False, record.info))
    with pytest.raises(StoreError, match="client:s is filed as client:t"):
        journal.open()


def test_a_message_that_cannot_be_read_is_told_from_others_when_loaded(journal: Journal) -> None:
    journal.write(AddMessage(A, "ID:p:1:1:1:7", b"\0\0\0\x03abc"), journal.add(2))
    references = list(journal.open().queues[A])
    journal.store.load(references, 1)
    bad, good = (reference.message for reference in references)
    assert isinstance(bad, UnreadableMessage)
    assert bad.key == b"ID:p:1:1:1:7"
    assert not isinstance(good, UnreadableMessage)
    journal.store.close()


def test_a_data_file_that_vanished_is_an_error_when_loaded(journal: Journal) -> None:
    journal.write(journal.add(1))
    references = list(journal.open().queues[A])
    (journal.directory / "db-1.log").unlink()
    with pytest.raises(StoreError, match=r"cannot read .*db-1.log"):
        journal.store.load(references, 1)
    journal.store.close()


def test_a_data_file_that_was_cut_is_an_error_when_loaded(journal: Journal) -> None:
    journal.write(journal.add(1))
    (one,) = journal.open().queues[A]
    with (journal.directory / "db-1.log").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(StoreError, match=r"db-1.log: ends before offset"):
        journal.store.load([one], 1)
    with pytest.raises(StoreError, match=r"db-1.log: ends before offset"):
        journal.store.remove(A, one)
    journal.store.close()


def test_pages_are_loaded_across_batches_gaps_and_files(tmp_path: Path, kit: Kit) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=1 << 20)
    store.open()
    for number in range(400):
        store.add(A if number % 3 else B, kit.reference(number, size=4000), None)
        if number % 7 == 0:
            kit.until_durable(store)
    store.close()
    recovered = store.open()
    numbers = [number for number in range(400) if number % 3]
    references = list(recovered.queues[A])
    assert len(list(tmp_path.glob("db-*.log"))) > 1
    assert kit.numbers(store, references[::-7]) == numbers[::-7]
    assert kit.numbers(store, references) == numbers
    store.close()
