"""Holding a write back: messages that consumers acknowledge in time are never written."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_kit import Kit, becomes_readable

from lockkeeper.journal.files import list_data_files
from lockkeeper.message.destination import queue
from lockkeeper.store.base import Receipt, Reference
from lockkeeper.store.kahadb import KahaDBStore

A = queue("A")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KahaDBStore]:
    store = KahaDBStore(tmp_path)
    store.open()
    yield store
    store.close()


def held(kit: Kit, number: int) -> Reference:
    one = kit.reference(number)
    one.held = True
    return one


def wait_for(store: KahaDBStore) -> list[Receipt]:
    """Wait for the store as an event loop would, and return the receipts."""
    assert becomes_readable(store, 5)
    return list(store.completed())


def test_what_is_acknowledged_in_time_is_never_written(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    one, receipt = held(kit, 1), kit.Receipt("add")
    store.add(A, one, receipt)
    assert list(store.flush()) == []
    assert store.remove(A, one) is receipt
    assert list(store.flush()) == []
    assert store.waiting() == 0
    assert not list_data_files(tmp_path)


def test_nobody_is_woken_after_a_wait_that_has_paid(store: KahaDBStore, kit: Kit) -> None:
    one = held(kit, 1)
    store.add(A, one, kit.Receipt("add"))
    store.flush()
    store.remove(A, one)
    store.flush()
    assert not becomes_readable(store, 0.05)


def test_removals_are_written_soon_although_a_wait_has_paid(store: KahaDBStore, kit: Kit) -> None:
    store.add(A, written := kit.reference(1), None)
    kit.until_durable(store)
    store.add(A, one := held(kit, 2), None)
    store.flush()
    store.remove(A, one)
    store.remove(A, written)
    store.flush()
    while store.waiting():
        wait_for(store)
    kit.until_durable(store)


def test_the_wait_has_an_end(store: KahaDBStore, kit: Kit) -> None:
    receipt = kit.Receipt("add")
    store.add(A, held(kit, 1), receipt)
    assert list(store.flush()) == []
    receipts = wait_for(store)
    while not receipts:
        receipts = wait_for(store)
    assert receipts == [receipt]


def test_a_message_that_no_consumer_holds_is_written_at_once(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    store.add(A, held(kit, 1), None)
    store.flush()
    store.add(A, kit.reference(2), None)
    store.flush()
    assert len(list_data_files(tmp_path)) == 1
    kit.until_durable(store)


def test_holding_stops_when_it_does_not_pay(store: KahaDBStore, tmp_path: Path, kit: Kit) -> None:
    for number in range(3):
        store.add(A, held(kit, number), None)
        store.flush()
        while store.waiting():
            wait_for(store)
        kit.until_durable(store)
    store.add(A, held(kit, 9), None)
    store.flush()
    assert store.waiting() == 0
    kit.until_durable(store)
