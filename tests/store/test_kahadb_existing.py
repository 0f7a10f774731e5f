"""Queues exist across restarts though nothing is in them, and though their files are gone."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.journal.files import list_data_files
from lockkeeper.message.destination import queue
from lockkeeper.store.base import Recovered
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.existing import queues_lines, queues_of

A, EMPTY = queue("A"), queue("EMPTY")
MINUTE = 60_000

Reopen = Callable[[], tuple[KahaDBStore, Recovered]]


@pytest.fixture
def reopened(tmp_path: Path, kit: Kit) -> Iterator[Reopen]:
    """A function that opens the directory anew; what was open before is closed."""
    stores: list[KahaDBStore] = []

    def reopen() -> tuple[KahaDBStore, Recovered]:
        for store in stores:
            store.close()
        stores[:] = [KahaDBStore(tmp_path, clock=kit.clock, file_bytes_max=4096)]
        return stores[0], stores[0].open()

    yield reopen
    stores[0].close()


def test_a_queue_without_messages_exists_after_a_restart(reopened: Reopen, kit: Kit) -> None:
    store, recovered = reopened()
    assert recovered.existing == []
    store.remember_queue(EMPTY)
    kit.until_durable(store)
    _, recovered = reopened()
    assert recovered.existing == [EMPTY]


def test_a_queue_exists_when_all_its_messages_and_their_files_are_gone(
    reopened: Reopen, tmp_path: Path, kit: Kit
) -> None:
    store, _ = reopened()
    store.remember_queue(EMPTY)
    store.remember_queue(A)
    for number in range(20):
        one = kit.reference(number, size=900)
        store.add(A, one, None)
        kit.until_durable(store)
        store.remove(A, one)
        kit.until_durable(store)
    for moment in (MINUTE, MINUTE + 1000, 2 * MINUTE + 1000, 2 * MINUTE + 2000):
        kit.maintain(store, moment)
        kit.until_durable(store)
    assert len(list_data_files(tmp_path)) == 1
    _, recovered = reopened()
    assert set(recovered.existing) == {A, EMPTY}


def test_a_queue_that_was_removed_does_not_exist(reopened: Reopen, kit: Kit) -> None:
    store, _ = reopened()
    store.remember_queue(A)
    store.remember_queue(EMPTY)
    store.remove_destination(EMPTY, None)
    kit.until_durable(store)
    store, recovered = reopened()
    assert recovered.existing == [A]
    store.remember_queue(EMPTY)
    kit.until_durable(store)
    _, recovered = reopened()
    assert recovered.existing == [A, EMPTY]


def test_lines_tell_any_number_of_names() -> None:
    names = [f'queue "{number}" ü' for number in range(450)]
    lines = queues_lines(names)
    assert len(lines) == 3
    assert [name for line in lines for name in queues_of(line)] == names


@pytest.mark.parametrize(
    "text", ['lk1 {"t":"queues",', 'lk1 {"t":"queues","names":7}', 'lk1 {"t":"term","epoch":7}', ""]
)
def test_other_lines_tell_none(text: str) -> None:
    assert queues_of(text) == []
