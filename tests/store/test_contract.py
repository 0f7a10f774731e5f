"""What every store does, in memory or on disk."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import LocalTransactionId, ProducerId, XATransactionId
from lockkeeper.store.base import (
    REMOVED,
    SKIPPED,
    UNORDERED,
    VOLATILE,
    WAITING,
    WRITTEN,
    Add,
    Operation,
    Recovered,
    Reference,
    Remove,
    Store,
    Subscription,
)
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.memory import MemoryStore

A, B, NEWS = queue("A"), queue("B"), topic("NEWS")
ALL = Subscription("client-1", "all", NEWS, None, False)
RED = Subscription("client-1", "red", NEWS, "color = 'red'", True)
LOCAL = LocalTransactionId("ID:client-1:1", 7)
GLOBAL = XATransactionId(86, b"global", b"branch")
FILE_BYTES = 1 << 16

Make = Callable[[], Store]
Reopen = Callable[[Store], tuple[Store, Recovered]]


@pytest.fixture(params=["memory", "kahadb"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Return a function that opens the same store again and again."""
    memory = MemoryStore()
    opened: list[Store] = []

    def make() -> Store:
        if request.param == "memory":
            opened.append(memory)
        else:
            opened.append(KahaDBStore(tmp_path / "data", file_bytes_max=FILE_BYTES))
        return opened[-1]

    yield make
    opened[-1].close()


@pytest.fixture
def store(make: Make) -> Store:
    store = make()
    store.open()
    return store


@pytest.fixture
def reopen(make: Make, kit: Kit) -> Reopen:
    """Return a function that makes all durable, closes, opens and returns what came back."""

    def reopen(store: Store) -> tuple[Store, Recovered]:
        kit.until_durable(store)
        store.close()
        again = make()
        return again, again.open()

    return reopen


def test_priorities_that_count_come_back(store: Store, reopen: Reopen, kit: Kit) -> None:
    alone, prepared, plain = (kit.reference(number) for number in (1, 2, 3))
    alone.priority, prepared.priority = 9, 0
    store.add(A, alone, None)
    store.prepare(GLOBAL, [Add(A, [prepared])], None)
    store.commit(LOCAL, [Add(A, [plain])], None)
    _, recovered = reopen(store)
    first, last = recovered.queues[A]
    assert (first.priority, last.priority) == (9, UNORDERED)
    (operation,) = recovered.prepared[GLOBAL]
    assert operation.references[0].priority == 0


def test_a_new_store_is_empty(make: Make) -> None:
    recovered = make().open()
    assert (recovered.queues, recovered.subscriptions, recovered.prepared) == ({}, [], {})


def test_added_messages_come_back_in_order(store: Store, reopen: Reopen, kit: Kit) -> None:
    for number in range(20):
        store.add(A, kit.reference(number), None)
        store.add(B, kit.reference(100 + number, B), None)
    store, recovered = reopen(store)
    assert kit.numbers(store, recovered.queues[A]) == list(range(20))
    assert kit.numbers(store, recovered.queues[B]) == list(range(100, 120))
    assert all(one.state == WRITTEN for one in recovered.queues[A])


def test_a_message_that_comes_back_is_the_message_that_went(
    store: Store, reopen: Reopen, kit: Kit
) -> None:
    before = kit.reference(5, size=3000)
    body = before.loaded.body
    store.add(A, before, None)
    store, recovered = reopen(store)
    (after,) = recovered.queues[A]
    store.load([after], before.loaded.sequence)
    assert after.loaded.body == body
    assert (after.loaded.destination, after.loaded.persistent) == (A, True)
    assert (after.holders, after.redeliveries, after.held) == (1, 0, False)


def test_copies_added_together_come_back_each_for_itself(
    store: Store, reopen: Reopen, kit: Kit
) -> None:
    receipt = kit.Receipt()
    copies = [kit.reference(1), kit.reference(1, B)]
    store.add_together([Add(A, [copies[0]]), Add(B, [copies[1]])], receipt)
    assert [one.state for one in copies] == [WAITING, WAITING]
    assert kit.until_durable(store) == [receipt]
    store.remove(A, copies[0])
    store, recovered = reopen(store)
    assert kit.numbers(store, recovered.queues[B]) == [1]
    assert not recovered.queues.get(A)


def test_loading_counts_the_sequence_up_in_list_order(
    store: Store, reopen: Reopen, kit: Kit
) -> None:
    for number in range(6):
        store.add(A, kit.reference(number), None)
    store, recovered = reopen(store)
    references = list(recovered.queues[A])
    store.load([references[4], references[2]], 1000)
    store.load(references, 2000)
    sequences = [one.message.sequence for one in references if one.message]
    assert len(set(sequences)) == 6
    if isinstance(store, KahaDBStore):
        assert sequences == [2000, 2001, 1001, 2003, 1000, 2005]


def test_states_go_from_volatile_over_waiting_to_written(store: Store, kit: Kit) -> None:
    one = kit.reference(1)
    assert one.state == VOLATILE
    store.add(A, one, None)
    assert one.state == WAITING
    kit.until_durable(store)
    assert one.state == WRITTEN
    assert store.waiting() == 0
    store.remove(A, one)
    assert one.state == REMOVED


def test_receipts_come_back_once_each_in_order(store: Store, kit: Kit) -> None:
    receipts = [kit.Receipt(str(number)) for number in range(5)]
    for number, receipt in enumerate(receipts):
        store.add(A, kit.reference(number), receipt)
    assert kit.until_durable(store) == receipts
    assert kit.until_durable(store) == []


def test_a_removed_message_does_not_come_back(store: Store, reopen: Reopen, kit: Kit) -> None:
    references = [kit.reference(number) for number in range(5)]
    for one in references:
        store.add(A, one, None)
    kit.until_durable(store)
    receipt = kit.Receipt()
    store.remove(A, references[1])
    assert store.remove(A, references[3], receipt) is None
    assert kit.until_durable(store) == [receipt]
    store, recovered = reopen(store)
    assert kit.numbers(store, recovered.queues[A]) == [0, 2, 4]


def test_a_message_consumed_before_its_write_began_is_never_written(
    store: Store, reopen: Reopen, kit: Kit
) -> None:
    one, of_add, of_remove = kit.reference(1), kit.Receipt("add"), kit.Receipt("remove")
    store.add(A, one, of_add)
    assert store.remove(A, one, of_remove) is of_add
    assert (one.state, one.receipt) == (SKIPPED, None)
    assert kit.until_durable(store) == [of_remove]
    store, recovered = reopen(store)
    assert A not in recovered.queues


def test_a_message_that_must_be_recorded_is_written_and_removed(
    store: Store, reopen: Reopen, kit: Kit
) -> None:
    one, of_add, of_remove = kit.reference(1), kit.Receipt("add"), kit.Receipt("remove")
    store.add(A, one, of_add)
    assert store.remove(A, one, of_remove, skip_unwritten=False) is None
    assert set(kit.until_durable(store)) == {of_add, of_remove}
    store, recovered = reopen(store)
    assert A not in recovered.queues


def test_what_the_store_does_not_know_is_ignored_but_for_its_receipt(
    store: Store, kit: Kit
) -> None:
    receipt = kit.Receipt()
    store.remove(A, Reference(None, 0), receipt)
    assert kit.until_durable(store) == [receipt]


def test_the_operations_of_a_transaction_are_applied(
    store: Store, reopen: Reopen, kit: Kit
) -> None:
    consumed, sent = kit.reference(1), kit.reference(2)
    store.add(A, consumed, None)
    kit.until_durable(store)
    receipt = kit.Receipt()
    store.commit(LOCAL, [Add(B, [sent]), Remove(A, [consumed])], receipt)
    assert kit.until_durable(store) == [receipt]
    assert (sent.state, consumed.state) == (WRITTEN, REMOVED)
    store, recovered = reopen(store)
    assert A not in recovered.queues
    assert kit.numbers(store, recovered.queues[B]) == [2]


def test_a_transaction_may_consume_what_is_not_written_yet(
    store: Store, reopen: Reopen, kit: Kit
) -> None:
    one = kit.reference(1)
    store.add(A, one, None)
    store.commit(LOCAL, [Remove(A, [one])], None)
    store, recovered = reopen(store)
    assert A not in recovered.queues


def test_a_prepared_transaction_is_invisible_and_survives(
    store: Store, reopen: Reopen, kit: Kit
) -> None:
    kept, consumed, sent = (kit.reference(number) for number in (1, 2, 3))
    store.add(A, kept, None)
    store.add(A, consumed, None)
    kit.until_durable(store)
    receipt = kit.Receipt()
    store.prepare(GLOBAL, [Add(B, [sent]), Remove(A, [consumed])], receipt)
    assert kit.until_durable(store) == [receipt]
    store, recovered = reopen(store)
    assert kit.numbers(store, recovered.queues[A]) == [1]
    assert B not in recovered.queues
    added, removed = recovered.prepared[GLOBAL]
    assert isinstance(added, Add)
    assert isinstance(removed, Remove)
    assert kit.numbers(store, [*added.references, *removed.references]) == [3, 2]
    assert (added.destination, removed.destination) == (B, A)


@pytest.mark.parametrize("between", ["at once", "after a restart"])
def test_a_prepared_transaction_is_committed(
    store: Store, reopen: Reopen, kit: Kit, between: str
) -> None:
    consumed, sent = kit.reference(2), kit.reference(3)
    store.add(A, consumed, None)
    operations: Sequence[Operation] = [Add(B, [sent]), Remove(A, [consumed])]
    store.prepare(GLOBAL, operations, None)
    if between == "after a restart":
        store, recovered = reopen(store)
        operations = recovered.prepared[GLOBAL]
    receipt = kit.Receipt()
    store.commit_prepared(GLOBAL, operations, receipt)
    assert receipt in kit.until_durable(store)
    store, recovered = reopen(store)
    assert recovered.prepared == {}
    assert A not in recovered.queues
    assert kit.numbers(store, recovered.queues[B]) == [3]


@pytest.mark.parametrize("between", ["at once", "after a restart"])
def test_a_prepared_transaction_is_rolled_back(
    store: Store, reopen: Reopen, kit: Kit, between: str
) -> None:
    consumed, sent = kit.reference(2), kit.reference(3)
    store.add(A, consumed, None)
    operations: Sequence[Operation] = [Add(B, [sent]), Remove(A, [consumed])]
    store.prepare(GLOBAL, operations, None)
    if between == "after a restart":
        store, recovered = reopen(store)
        operations = recovered.prepared[GLOBAL]
    receipt = kit.Receipt()
    store.rollback_prepared(GLOBAL, operations, receipt)
    assert receipt in kit.until_durable(store)
    store, recovered = reopen(store)
    assert recovered.prepared == {}
    assert kit.numbers(store, recovered.queues[A]) == [2]
    assert B not in recovered.queues


def test_durable_subscriptions_keep_what_they_have_not_consumed(
    store: Store, reopen: Reopen, kit: Kit
) -> None:
    receipt = kit.Receipt()
    store.subscribe(ALL, receipt)
    store.subscribe(RED, None)
    references = [kit.reference(number, NEWS) for number in range(4)]
    for one in references:
        one.holders = 2
        store.add(NEWS, one, None)
    assert kit.until_durable(store)[0] is receipt
    store.remove(NEWS, references[0], None, ALL)
    store.remove(NEWS, references[0], None, RED)
    store.remove(NEWS, references[1], None, RED)
    assert references[0].state == REMOVED
    assert references[1].state == WRITTEN
    store, recovered = reopen(store)
    pending = {entry.subscription: entry.pending for entry in recovered.subscriptions}
    assert kit.numbers(store, pending[ALL]) == [1, 2, 3]
    assert kit.numbers(store, pending[RED]) == [2, 3]


def test_a_subscription_refuses_a_message_before_it_is_written(
    store: Store, reopen: Reopen, kit: Kit
) -> None:
    store.subscribe(ALL, None)
    store.subscribe(RED, None)
    one = kit.reference(1, NEWS)
    one.holders = 2
    store.add(NEWS, one, None)
    store.remove(NEWS, one, None, RED)
    store, recovered = reopen(store)
    pending = {entry.subscription: entry.pending for entry in recovered.subscriptions}
    assert kit.numbers(store, pending[ALL]) == [1]
    assert pending[RED] == []


def test_a_deleted_subscription_does_not_come_back(store: Store, reopen: Reopen, kit: Kit) -> None:
    store.subscribe(ALL, None)
    one = kit.reference(1, NEWS)
    store.add(NEWS, one, None)
    kit.until_durable(store)
    store.release(one)
    assert one.state == REMOVED
    receipt = kit.Receipt()
    store.unsubscribe(ALL, receipt)
    assert kit.until_durable(store) == [receipt]
    store, recovered = reopen(store)
    assert recovered.subscriptions == []


def test_a_subscription_made_anew_begins_anew(store: Store, reopen: Reopen, kit: Kit) -> None:
    store.subscribe(ALL, None)
    one = kit.reference(1, NEWS)
    store.add(NEWS, one, None)
    kit.until_durable(store)
    store.release(one)
    changed = ALL._replace(selector="x = 1")
    store.subscribe(changed, None)
    store.add(NEWS, kit.reference(2, NEWS), None)
    store, recovered = reopen(store)
    (entry,) = recovered.subscriptions
    assert entry.subscription == changed
    assert kit.numbers(store, entry.pending) == [2]


def test_a_subscription_to_a_wildcard_is_kept_for_each_topic(
    store: Store, reopen: Reopen, kit: Kit
) -> None:
    places = (NEWS, topic("NEWS.HOME"))
    parts = [ALL._replace(destination=place, wanted=topic("NEWS.>")) for place in places]
    references = []
    for number, part in enumerate(parts):
        store.subscribe(part, None)
        references.append(kit.reference(number, part.destination))
        store.add(part.destination, references[-1], None)
    store, recovered = reopen(store)
    pending = {entry.subscription: entry.pending for entry in recovered.subscriptions}
    assert {part: kit.numbers(store, found) for part, found in pending.items()} == {
        parts[0]: [0],
        parts[1]: [1],
    }
    store.remove(NEWS, pending[parts[0]][0], None, parts[0])
    store.release(pending[parts[1]][0])
    store.unsubscribe(parts[1], None)
    store, recovered = reopen(store)
    (entry,) = recovered.subscriptions
    assert (entry.subscription, entry.pending) == (parts[0], [])


def test_a_removed_destination_is_forgotten_and_may_come_again(
    store: Store, reopen: Reopen, kit: Kit
) -> None:
    before = kit.reference(1)
    store.add(A, before, None)
    kit.until_durable(store)
    store.release(before)
    receipt = kit.Receipt()
    store.remove_destination(A, receipt)
    assert kit.until_durable(store) == [receipt]
    store.add(A, kit.reference(2), None)
    store, recovered = reopen(store)
    assert kit.numbers(store, recovered.queues[A]) == [2]


def test_what_is_stored_of_each_producer_comes_back(store: Store, reopen: Reopen, kit: Kit) -> None:
    other = ProducerId("ID:other-2:1", 4, 3)
    for number in (0, 1, 4):
        one = kit.reference(number)
        store.add(A, one, None)
        kit.until_durable(store)
        store.remove(A, one)
    store.add(B, kit.reference(77, B, producer=other), None)
    store, recovered = reopen(store)
    assert recovered.producers.stored() == {
        b"ID:producer-1:1:1:1": (-1, 4, ((2, 3),)),
        b"ID:other-2:1:3:4": (76, 77, ()),
    }


def test_the_producer_heard_of_last_is_known_after_a_restart(
    store: Store, reopen: Reopen, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockkeeper.store.producers.PRODUCERS_MAX", 10)
    for number in range(1, 30):
        template = ProducerId("ID:template-1:1", number, 1)
        store.add(A, kit.reference(1, producer=template), None)
        store.add(A, kit.reference(number), None)
        kit.until_durable(store)
    store, recovered = reopen(store)
    assert list(recovered.producers.stored().items())[-1] == (
        b"ID:producer-1:1:1:1",
        (0, 29, ()),
    )
    assert len(recovered.producers) == 10


def test_notes_change_nothing(store: Store, reopen: Reopen, kit: Kit) -> None:
    store.trace("lk1 {}")
    store.add(A, kit.reference(1), None)
    store, recovered = reopen(store)
    assert list(recovered.queues) == [A]


def test_a_store_with_room_is_not_full_and_tells_its_size(store: Store, kit: Kit) -> None:
    store.check_full()
    store.add(A, kit.reference(1), None)
    assert store.usage().waiting_operations == 1
    kit.until_durable(store)
    store.maintain(1_000_000)
    usage = store.usage()
    assert usage.waiting_operations == 0
    assert (usage.files == 0) == (usage.bytes_on_disk == 0)


def test_closing_makes_everything_durable(store: Store, make: Make, kit: Kit) -> None:
    store.add(A, kit.reference(1), None)
    store.close()
    again = make()
    assert kit.numbers(again, again.open().queues[A]) == [1]


def test_a_run_ends_exactly_its_messages(store: Store, reopen: Reopen, kit: Kit) -> None:
    references = [kit.reference(number, size=60 + number % 3) for number in range(30)]
    for reference in references:
        store.add(A, reference, None)
    kit.until_durable(store)
    ended = [references[number] for number in (3, 4, 5, 9, 29, 0)]
    store.remove_run(A, ended)
    assert all(reference.state == REMOVED for reference in ended)
    store, recovered = reopen(store)
    left = [number for number in range(30) if number not in (3, 4, 5, 9, 29, 0)]
    assert kit.numbers(store, recovered.queues[A]) == left
