"""Damaged journals: refused with what is lost, served without it when told to, or copied."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.journal.batch import EOF_RECORD, build_batch, control_record
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.records import AddMessage, Commit, Record, RemoveMessage, Trace
from lockkeeper.journal.records import Subscription as SubscriptionRecord
from lockkeeper.journal.scan import Batch, scan_file
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import LocalTransactionId, TransactionId, XATransactionId
from lockkeeper.store.base import Add, DamagedError, Subscription
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.losses import ALTERED, UNNAMED, losses_of
from lockkeeper.store.kahadb.salvage import accept_loss, salvage
from lockkeeper.store.locker import LockLostError

A, NEWS = queue("A"), topic("NEWS")
KEY = "ID:producer-1:1:1:1:"
COUNT, BODY_BYTES = 6, 1500
TRANSACTION = LocalTransactionId("ID:c:1", 5)

Damage = tuple[int, bytes]
"""An offset, and what is written there."""


@pytest.fixture
def made(tmp_path: Path, kit: Kit) -> Path:
    """A directory with a batch for each of the messages 1 to 6, and another message in front."""
    directory = tmp_path / "data"
    store = KahaDBStore(directory, file_bytes_max=1 << 16)
    store.open()
    for number in range(COUNT + 1):
        store.add(A, kit.reference(number, size=BODY_BYTES), kit.Receipt())
        kit.until_durable(store)
    store.close()
    return directory


def batches(path: Path) -> Sequence[Batch]:
    return scan_file(path.read_bytes(), path.name).batches


def overwrite(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.iterdir() if path.is_file() and path.name != "lock")
    return {path.name: path.read_bytes() for path in files}


def reopened(directory: Path, kit: Kit, accept_loss: bool = False) -> list[int]:
    """Return the numbers of what a store finds, and close it."""
    store = KahaDBStore(directory, accept_loss=accept_loss)
    found = kit.numbers(store, store.open().queues.get(A, []))
    store.close()
    return found


def zeroed_header(batch: Batch) -> Damage:
    return batch.offset, bytes(28)


def zeroed_sector(batch: Batch) -> Damage:
    return batch.offset, bytes(512)


def zeroed_batch(batch: Batch) -> Damage:
    return batch.offset, bytes(batch.end - batch.offset)


def header_never_written(batch: Batch) -> Damage:
    """What stood there before: the end of the batch in front, and zeros."""
    return batch.offset, EOF_RECORD + bytes(23)


def flipped_byte(batch: Batch) -> Damage:
    return batch.end - 700, b"\x07"


DAMAGES = [zeroed_header, zeroed_sector, zeroed_batch, header_never_written, flipped_byte]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("number", range(1, COUNT))
def test_a_damaged_batch_in_the_middle_is_told_and_set_aside(
    damage: Callable[[Batch], Damage], number: int, made: Path, kit: Kit
) -> None:
    path = made / "db-1.log"
    batch = batches(path)[number]
    overwrite(path, *damage(batch))
    before = contents(made)
    with pytest.raises(DamagedError, match=rf"db-1.log: .* offset {batch.offset}:") as refused:
        KahaDBStore(made).open()
    assert f"{KEY}{number} of queue://A" in str(refused.value)
    assert "--accept-loss" in str(refused.value)
    assert contents(made) == before
    expected = [one for one in range(COUNT + 1) if one != number]
    assert reopened(made, kit, accept_loss=True) == expected
    aside = made / "damaged" / f"db-1.log.{batch.offset}-{batch.end - batch.offset}"
    assert aside.read_bytes() == before["db-1.log"][batch.offset : batch.end]
    scan_file(path.read_bytes(), path.name).require_whole()
    # From now on nothing is amiss.
    assert reopened(made, kit) == expected


def test_zeros_or_an_end_over_the_last_batch_are_a_torn_tail(made: Path, kit: Kit) -> None:
    path = made / "db-1.log"
    batch = batches(path)[COUNT]
    overwrite(path, batch.offset, bytes(600))
    assert reopened(made, kit) == list(range(COUNT))
    overwrite(path, batch.offset, EOF_RECORD)
    assert reopened(made, kit) == list(range(COUNT))


def test_zeros_over_the_last_batches_of_a_file_are_damage_while_anything_is_behind_them(
    made: Path, kit: Kit
) -> None:
    path = made / "db-1.log"
    first, last = batches(path)[COUNT - 1 : COUNT + 1]
    store = KahaDBStore(made, file_bytes_max=1 << 16)
    store.open()
    store.add(A, kit.reference(COUNT + 1), kit.Receipt())
    kit.until_durable(store)
    store.close()
    overwrite(path, first.offset, bytes(last.offset + 512 - first.offset))
    with pytest.raises(DamagedError, match=f"offset {first.offset}: zeros stand here") as refused:
        KahaDBStore(made).open()
    assert f"{KEY}{COUNT - 1} of queue://A may have been there" in str(refused.value)
    assert f"{KEY}{COUNT} of queue://A may have been there" in str(refused.value)
    expected = [*range(COUNT - 1), COUNT + 1]
    assert reopened(made, kit, accept_loss=True) == expected
    assert reopened(made, kit) == expected


def test_several_damages_are_told_each(made: Path, kit: Kit) -> None:
    path = made / "db-1.log"
    first, second = batches(path)[1], batches(path)[3]
    overwrite(path, *zeroed_sector(first))
    overwrite(path, *flipped_byte(second))
    one, other = losses_of(made)
    assert (one.offset, other.offset) == (first.offset, second.offset)
    # Nothing whole is left of the one, so its message is known by its producer's numbers only.
    assert (one.lost, one.unsure[0]) == ([], f"{KEY}1 of queue://A may have been there")
    assert other.lost == [{"destination": "queue://A", "message": f"{KEY}3"}]
    assert (other.unsure, other.destinations) == ([ALTERED], ["queue://A"])
    assert reopened(made, kit, accept_loss=True) == [0, 2, 4, 5, 6]


def test_what_was_consumed_later_is_not_lost_and_a_lost_end_is_told(
    tmp_path: Path, kit: Kit
) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=1 << 16)
    store.open()
    messages = [kit.reference(number, size=BODY_BYTES) for number in range(4)]
    for one in messages:
        store.add(A, one, kit.Receipt())
        kit.until_durable(store)
    for one in messages[:2]:
        store.remove(A, one, kit.Receipt())
        kit.until_durable(store)
    store.add(A, kit.reference(9), kit.Receipt())
    store.close()
    path = tmp_path / "db-1.log"
    added, removed = batches(path)[0], batches(path)[5]
    overwrite(path, *flipped_byte(added))
    overwrite(path, removed.offset + 20, b"\x99\x99\x99\x99\x99\x99\x99\x99")
    first, second = losses_of(tmp_path)
    assert (first.lost, first.unsure) == ([], [ALTERED])
    assert second.lost == []
    assert second.unsure == [f"{KEY}1 of queue://A was consumed, and comes back", ALTERED]
    assert reopened(tmp_path, kit, accept_loss=True) == [1, 2, 3, 9]


def test_a_message_of_a_topic_is_lost_while_one_of_its_subscriptions_lacks_it(
    tmp_path: Path, kit: Kit
) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=1 << 16)
    store.open()
    quick, slow = (Subscription(name, "s", NEWS, None, False) for name in ("quick", "slow"))
    store.subscribe(quick, kit.Receipt())
    store.subscribe(slow, kit.Receipt())
    kit.until_durable(store)
    messages = [kit.reference(number, NEWS, BODY_BYTES) for number in range(4)]
    for one in messages:
        one.holders = 2
        store.add(NEWS, one, kit.Receipt())
        kit.until_durable(store)
    for one in messages:
        store.remove(NEWS, one, kit.Receipt(), quick)
    store.remove(NEWS, messages[1], kit.Receipt(), slow)
    store.subscribe(Subscription("late", "s", NEWS, None, False), kit.Receipt())
    store.close()
    path = tmp_path / "db-1.log"
    for batch in batches(path)[1:4]:
        overwrite(path, *flipped_byte(batch))
    lost = [one["message"] for loss in losses_of(tmp_path) for one in loss.lost]
    assert lost == [f"{KEY}0", f"{KEY}2"]


def test_a_copy_is_told_by_the_id_that_clients_know(tmp_path: Path, kit: Kit) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=1 << 16)
    store.open()
    store.add(A, kit.reference(1, size=BODY_BYTES, shown="ID:first-1:1:1:7"), kit.Receipt())
    kit.until_durable(store)
    store.add(A, kit.reference(2), kit.Receipt())
    store.close()
    path = tmp_path / "db-1.log"
    overwrite(path, *flipped_byte(batches(path)[0]))
    (loss,) = losses_of(tmp_path)
    assert loss.lost == [{"destination": str(A), "message": "ID:first-1:1:1:7"}]


def test_a_copy_of_which_nothing_is_left_is_told_by_the_id_that_clients_know(
    tmp_path: Path, kit: Kit
) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=1 << 16)
    store.open()
    for number in (1, 2, 3):
        shown = f"ID:first-1:1:1:{number + 6}"
        store.add(A, kit.reference(number, size=BODY_BYTES, shown=shown), kit.Receipt())
        kit.until_durable(store)
    store.close()
    path = tmp_path / "db-1.log"
    overwrite(path, *zeroed_sector(batches(path)[1]))
    (loss,) = losses_of(tmp_path)
    assert loss.unsure == [
        f"{KEY}2 of queue://A may have been there",
        "ID:first-1:1:1:8 of queue://A may have been there",
        UNNAMED,
        "nothing can be read there",
    ]


def test_the_first_message_of_a_producer_may_have_been_in_a_damage(made: Path) -> None:
    path = made / "db-1.log"
    overwrite(path, *zeroed_sector(batches(path)[0]))
    (loss,) = losses_of(made)
    assert (loss.lost, loss.unsure) == ([], [UNNAMED, "nothing can be read there"])
    assert UNNAMED.startswith("the first and the last messages of producers")


def test_an_id_that_the_damage_has_changed_is_said_to_be_unsure(made: Path) -> None:
    path = made / "db-1.log"
    at = path.read_bytes().index(f"{KEY}3".encode())
    overwrite(path, at, b"XX")
    (loss,) = losses_of(made)
    assert loss.lost == [{"destination": str(A), "message": f"XX{KEY[2:]}3"}]
    assert loss.unsure == [ALTERED]


def test_a_subscription_that_cannot_be_read_is_set_aside_when_the_loss_is_accepted(
    made: Path, kit: Kit
) -> None:
    path = made / "db-1.log"
    record = encode_record(SubscriptionRecord(NEWS, "client:s", False, b"\0\0\0\x01\xff"))
    overwrite(path, batches(path)[-1].end, build_batch(record))
    with pytest.raises(DamagedError, match=r"bad record at offset \d+: not a subscription"):
        KahaDBStore(made).open()
    assert reopened(made, kit, accept_loss=True) == [0, 1, 2, 3, 4, 5, 6]
    assert reopened(made, kit) == [0, 1, 2, 3, 4, 5, 6]


def test_copies_that_the_numbers_do_not_tell_of_are_said_to_be_unsure(
    tmp_path: Path, kit: Kit
) -> None:
    copies = queue("COPIES")
    store = KahaDBStore(tmp_path, file_bytes_max=1 << 16)
    store.open()
    for number in (1, 2, 3):
        store.add(A, kit.reference(number, size=BODY_BYTES), kit.Receipt())
        kit.until_durable(store)
        store.add(A, kit.reference(10 + number, size=BODY_BYTES), kit.Receipt())
        store.add(copies, kit.reference(number, copies, BODY_BYTES), kit.Receipt())
        kit.until_durable(store)
    store.close()
    path = tmp_path / "db-1.log"
    batch = batches(path)[3]
    overwrite(path, batch.offset + BODY_BYTES, bytes(512))
    (loss,) = losses_of(tmp_path)
    assert loss.lost == [{"destination": str(A), "message": f"{KEY}12"}]
    assert loss.unsure == [UNNAMED]
    accept_loss(tmp_path, lambda: None)
    store = KahaDBStore(tmp_path)
    recovered = store.open()
    assert kit.numbers(store, recovered.queues[copies]) == [1, 3]
    store.close()


def test_what_ended_with_its_queue_is_not_lost(made: Path, kit: Kit) -> None:
    store = KahaDBStore(made, file_bytes_max=1 << 16)
    store.open()
    store.remove_destination(A, kit.Receipt())
    store.close()
    overwrite(made / "db-1.log", *flipped_byte(batches(made / "db-1.log")[3]))
    (loss,) = losses_of(made)
    assert (loss.destinations, loss.lost) == (["queue://A"], [])


def test_a_lost_commit_is_told(tmp_path: Path, kit: Kit) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=1 << 16)
    store.open()
    transaction = LocalTransactionId("ID:c:1", 5)
    adds = [Add(A, [kit.reference(number)]) for number in (1, 2)]
    store.commit(transaction, adds, kit.Receipt())
    kit.until_durable(store)
    store.add(A, kit.reference(3), kit.Receipt())
    store.close()
    overwrite(tmp_path / "db-1.log", 20, bytes(7) + b"\1")
    (loss,) = losses_of(tmp_path)
    assert [one["message"] for one in loss.lost] == [f"{KEY}1", f"{KEY}2"]
    assert loss.unsure == [f"the commit of {transaction} does not take effect", ALTERED]
    assert reopened(tmp_path, kit, accept_loss=True) == [3]


def test_a_transaction_whose_end_cannot_be_read_is_said_to_be_prepared_again(
    tmp_path: Path, kit: Kit
) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=1 << 16)
    store.open()
    for branch in (b"ended", b"sound"):
        operations = [Add(A, [kit.reference(1, size=BODY_BYTES)])]
        store.prepare(XATransactionId(7, b"x", branch), operations, kit.Receipt())
        kit.until_durable(store)
        store.rollback_prepared(XATransactionId(7, b"x", branch), operations, None)
        store.add(A, kit.reference(2), kit.Receipt())
        kit.until_durable(store)
    store.close()
    ended = batches(tmp_path / "db-1.log")[1]
    overwrite(tmp_path / "db-1.log", ended.offset, bytes(ended.end - ended.offset))
    (loss,) = losses_of(tmp_path)
    transaction = XATransactionId(7, b"x", b"ended")
    again = f"{transaction} may have ended there: it is prepared again"
    assert [text for text in loss.unsure if "prepared again" in text] == [again]
    assert UNNAMED in loss.unsure
    accept_loss(tmp_path, lambda: None)
    store = KahaDBStore(tmp_path)
    assert list(store.open().prepared) == [transaction]
    store.close()


def test_a_record_that_cannot_be_read_leaves_its_batch(tmp_path: Path, kit: Kit) -> None:
    good = encode_record(Trace("good"))
    bad = encode_record(Trace("bad")).replace(b"\x01\x00", b"\x01\x2a", 1)
    (tmp_path / "db-1.log").write_bytes(build_batch(good + bad + good))
    with pytest.raises(DamagedError, match=r"db-1.log: bad record .*command type 42"):
        KahaDBStore(tmp_path).open()
    assert reopened(tmp_path, kit, accept_loss=True) == []
    assert (tmp_path / "db-1.log").read_bytes() == build_batch(good + good)
    (aside,) = (tmp_path / "damaged").glob("db-1.log.*")
    assert aside.read_bytes() == bad


def test_a_torn_file_before_one_with_records_is_damage(made: Path, kit: Kit) -> None:
    path = made / "db-1.log"
    last = batches(path)[-1]
    path.write_bytes(path.read_bytes()[: last.end - 100])
    (made / "db-2.log").write_bytes(build_batch(encode_record(Trace("behind"))))
    (loss,) = losses_of(made)
    assert (loss.offset, loss.length) == (last.offset, last.end - 100 - last.offset)
    assert reopened(made, kit, accept_loss=True) == list(range(COUNT))
    assert path.read_bytes()[last.offset :] == EOF_RECORD


def test_a_master_that_is_superseded_meanwhile_replaces_nothing(made: Path) -> None:
    path = made / "db-1.log"
    overwrite(path, *zeroed_header(batches(path)[2]))
    before = contents(made)
    asked: list[int] = []

    def check() -> None:
        asked.append(1)
        if len(asked) == 3:
            raise LockLostError("the lock is gone")

    with pytest.raises(LockLostError):
        accept_loss(made, check)
    assert contents(made) == before


def test_a_sound_journal_costs_nothing_to_accept(made: Path, kit: Kit) -> None:
    before = contents(made)
    assert reopened(made, kit, accept_loss=True) == list(range(COUNT + 1))
    assert contents(made) == before
    assert not (made / "damaged").exists()


def test_salvage_copies_what_is_sound_and_changes_nothing(
    made: Path, kit: Kit, tmp_path: Path
) -> None:
    path = made / "db-1.log"
    batch = batches(path)[2]
    overwrite(path, *flipped_byte(batch))
    before, copy = contents(made), tmp_path / "copy"
    (loss,) = salvage(made, copy)
    assert loss.lost == [{"destination": "queue://A", "message": f"{KEY}2"}]
    assert contents(made) == before
    assert json.loads((copy / "salvage.json").read_text())[0]["lost"] == loss.lost
    assert (copy / "salvage.txt").read_text() == f"{loss}\n"
    name = f"db-1.log.{batch.offset}-{batch.end - batch.offset}"
    assert (copy / "damaged" / name).read_bytes() == before["db-1.log"][batch.offset : batch.end]
    assert reopened(copy, kit) == [0, 1, 3, 4, 5, 6]
    for file in list_data_files(copy):
        scan_file(file.path.read_bytes(), file.path.name).require_whole()


@pytest.fixture
def committed(tmp_path: Path, kit: Kit) -> Path:
    """A file with a transaction, the commit of which is in a batch of its own, as ActiveMQ's is."""

    def add(number: int, transaction: TransactionId | None = None) -> AddMessage:
        body = kit.reference(number, size=BODY_BYTES).loaded.body
        frame = len(body).to_bytes(4, "big") + body
        return AddMessage(A, f"{KEY}{number}", frame, transaction=transaction)

    path = tmp_path / "db-1.log"
    removal = RemoveMessage(A, f"{KEY}1", transaction=TRANSACTION)
    written: list[list[Record]] = [
        [add(1)],
        [add(2, TRANSACTION), removal],
        [Commit(TRANSACTION)],
        [add(3)],
    ]
    batched = (b"".join(map(encode_record, records)) for records in written)
    path.write_bytes(b"".join(control_record(each) + each for each in batched) + EOF_RECORD)
    return path


def test_messages_of_a_transaction_whose_commit_is_damaged_are_named(committed: Path) -> None:
    overwrite(committed, batches(committed)[2].offset + 20, b"\x99" * 8)
    (loss,) = losses_of(committed.parent)
    assert loss.lost == [{"destination": str(A), "message": f"{KEY}2"}]
    assert f"{KEY}1 of {A} was consumed, and comes back" in loss.unsure


def test_messages_of_a_transaction_whose_commit_cannot_be_read_are_unsure(committed: Path) -> None:
    commit = batches(committed)[2]
    overwrite(committed, commit.offset, bytes(commit.end - commit.offset))
    (loss,) = losses_of(committed.parent)
    assert loss.lost == []
    condition = f"if {TRANSACTION} was committed there"
    assert loss.unsure[:2] == [
        f"{KEY}2 of {A} is lost {condition}",
        f"{KEY}1 of {A} comes back {condition}",
    ]


@pytest.mark.parametrize("is_legible", [True, False])
def test_messages_of_a_subscription_whose_beginning_is_damaged_are_named(
    tmp_path: Path, kit: Kit, is_legible: bool
) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=1 << 16)
    store.open()
    store.subscribe(Subscription("client", "s", NEWS, None, False), kit.Receipt())
    kit.until_durable(store)
    for number in (1, 2):
        store.add(NEWS, kit.reference(number, NEWS), kit.Receipt())
        kit.until_durable(store)
    store.close()
    path = tmp_path / "db-1.log"
    begun = batches(path)[0]
    if is_legible:
        overwrite(path, begun.offset + 20, b"\x99" * 8)
    else:
        overwrite(path, begun.offset, bytes(begun.end - begun.offset))
    (loss,) = losses_of(tmp_path)
    end = "is lost with its subscription, which began there"
    told = [text for text in loss.unsure if text.endswith(end)]
    assert told == [f"{KEY}{number} of {NEWS} {end}" for number in (1, 2)]
    assert (UNNAMED in loss.unsure) is not is_legible
