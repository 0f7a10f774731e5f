"""The bookkeeping against a recount from the journal: equal, and unequal when it is wrong."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.journal.recount import recount_directory
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import XATransactionId
from lockkeeper.store.base import Add, Recovered, Reference, Remove, Subscription
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.audit import differences
from lockkeeper.store.kahadb.file_references import FileReferences

A, B, NEWS = queue("A"), queue("B"), topic("NEWS")
GLOBAL = XATransactionId(1, b"g" * 16, b"b" * 16)
SUBSCRIPTION = Subscription("client", "s", NEWS, None, False)
PLACE = (NEWS, SUBSCRIPTION.key)
FILE_BYTES = 64 * 1024
MINUTE = 60_000


class Journal:
    """A store with small files, and ways to fill them to the byte."""

    def __init__(self, directory: Path, kit: Kit) -> None:
        self.kit = kit
        self.directory = directory
        self.store = KahaDBStore(
            directory, clock=kit.clock, file_bytes_max=FILE_BYTES, cleanup_interval_ms=0
        )
        self.store.open()
        self.number = 100

    @property
    def file_id(self) -> int:
        return self.store._files.file_id

    @property
    def room(self) -> int:
        return FILE_BYTES - self.store._files.end - 33

    def settle(self) -> None:
        self.kit.until_durable(self.store)

    def put(self, size: int) -> Reference:
        self.number += 1
        one = self.kit.reference(self.number, B, size)
        self.store.add(B, one, None)
        return one

    def pass_by(self, size: int = 4000) -> Reference:
        one = self.put(size)
        self.settle()
        self.store.remove(B, one)
        self.settle()
        return one

    def leave_room(self, size: int) -> Reference:
        """Hand a message over that leaves *size* bytes of the file; it stays."""
        while self.room > 14_000:
            self.pass_by()
        overhead = self.pass_by(1000).size - 1000
        return self.put(self.room - size - overhead)

    def next_file(self) -> None:
        before = self.file_id
        while self.file_id == before:
            self.pass_by()

    def clean_up(self) -> None:
        for now in range(MINUTE, 7 * MINUTE, MINUTE):
            self.kit.maintain(self.store, now)
            self.settle()
            assert differences(self.directory, self.store._file_references) == []

    def reopened(self) -> Recovered:
        self.store.close()
        return self.store.open()


@pytest.fixture
def journal(tmp_path: Path, kit: Kit) -> Iterator[Journal]:
    journal = Journal(tmp_path, kit)
    yield journal
    journal.store.close()


@pytest.mark.parametrize("room", [200, 20])
def test_a_commit_in_the_next_file_stays_with_what_it_commits(
    journal: Journal, kit: Kit, room: int
) -> None:
    sent = kit.reference(1)
    journal.store.prepare(GLOBAL, [Add(A, [sent])], None)
    journal.settle()
    journal.next_file()
    before = journal.file_id
    journal.leave_room(room)
    journal.store.commit_prepared(GLOBAL, [Add(A, [sent])], None)
    journal.settle()
    assert journal.file_id == (before if room == 200 else before + 1)
    for _ in range(60):
        journal.pass_by()
    journal.clean_up()
    recovered = journal.reopened()
    assert kit.numbers(journal.store, recovered.queues[A]) == [1]
    assert recovered.prepared == {}


@pytest.mark.parametrize("outcome", ["rollback", "unsubscribe", "remove destination", "subscribe"])
def test_what_a_record_ends_is_booked_for_the_file_it_is_in(
    journal: Journal, kit: Kit, outcome: str
) -> None:
    store = journal.store
    store.subscribe(SUBSCRIPTION, None)
    store.add(A, kit.reference(1), None)
    store.prepare(GLOBAL, [Add(A, [kit.reference(2)])], None)
    journal.settle()
    journal.next_file()
    journal.leave_room(10)
    if outcome == "rollback":
        store.rollback_prepared(GLOBAL, [], None)
    elif outcome == "unsubscribe":
        store.unsubscribe(SUBSCRIPTION, None)
    elif outcome == "subscribe":
        store.subscribe(SUBSCRIPTION, None)
    else:
        store.remove_destination(A, None)
    journal.settle()
    recount = recount_directory(journal.directory)
    needs = {key: kept.refers | kept.outcomes for key, kept in recount.files.items()}
    assert needs[journal.file_id] == (set() if outcome == "subscribe" else {1})
    booked = journal.store._file_references.files[journal.file_id]
    assert booked.needs() - {journal.file_id} == needs[journal.file_id]


def test_a_consumed_message_of_a_prepared_transaction_is_referred_to_from_its_commit_on(
    journal: Journal, kit: Kit
) -> None:
    one = kit.reference(1)
    journal.store.add(A, one, None)
    journal.settle()
    journal.next_file()
    journal.store.prepare(GLOBAL, [Remove(A, [one])], None)
    journal.settle()
    second = journal.file_id
    assert recount_directory(journal.directory).files[second].refers == set()
    journal.next_file()
    journal.store.commit_prepared(GLOBAL, [Remove(A, [one])], None)
    journal.settle()
    recount = recount_directory(journal.directory)
    assert recount.files[second].refers == {1}
    assert recount.files[journal.file_id].outcomes == {second}
    assert differences(journal.directory, journal.store._file_references) == []


@pytest.fixture
def kept(journal: Journal, kit: Kit) -> Journal:
    """A directory with something of every kind to keep, and no difference."""
    store = journal.store
    store.subscribe(SUBSCRIPTION, None)
    published = kit.reference(5, NEWS)
    store.add(NEWS, published, None)
    store.prepare(GLOBAL, [Add(A, [kit.reference(2)])], None)
    consumed = kit.reference(3)
    store.add(A, consumed, None)
    journal.settle()
    journal.next_file()
    store.remove(A, consumed)
    journal.settle()
    assert differences(journal.directory, store._file_references) == []
    return journal


def keep_less(found: FileReferences) -> None:
    found.prepared.clear()
    found.subscriptions[PLACE].created_in(2)


PLANTED: dict[str, Callable[[FileReferences], object]] = {
    "a live message too many": lambda found: setattr(found.files[1], "live", 3),
    "a live message too few": lambda found: setattr(found.files[1], "live", 0),
    "a removal that keeps nothing": lambda found: found.files[2].refers.clear(),
    "a removal that keeps too much": lambda found: found.files[1].refers.add(2),
    "an outcome of nothing": lambda found: found.files[2].outcomes.add(1),
    "a prepared transaction that keeps nothing and a subscription elsewhere": keep_less,
    "a pending message too few": lambda found: setattr(found.subscriptions[PLACE], "pending", 0),
    "a forgotten subscription": lambda found: found.subscriptions.clear(),
    "a forgotten file": lambda found: found.files.pop(1),
}


@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED.keys())
def test_every_wrong_booking_is_told(
    kept: Journal, plant: Callable[[FileReferences], object]
) -> None:
    plant(kept.store._file_references)
    assert differences(kept.directory, kept.store._file_references)


def test_a_subscription_that_is_replaced_before_it_is_written_is_in_the_books(
    tmp_path: Path, kit: Kit
) -> None:
    reader = Subscription("client", "reader", topic("NEWS"), None, False)
    store = KahaDBStore(tmp_path, clock=kit.clock, file_bytes_max=FILE_BYTES, cleanup_interval_ms=0)
    store.open()
    store.subscribe(reader, None)
    store.add(queue("A"), kit.reference(1, queue("A"), FILE_BYTES - 1000), None)
    store.add(queue("A"), kit.reference(2, queue("A"), FILE_BYTES - 1000), None)
    store.subscribe(reader, None)
    kit.until_durable(store)
    store.add(queue("A"), kit.reference(3, queue("A"), FILE_BYTES - 1000), None)
    store.unsubscribe(reader, None)
    kit.until_durable(store)
    assert differences(tmp_path, store._file_references) == []
    store.close()
