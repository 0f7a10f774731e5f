"""Queues exist across restarts though nothing is in them, and though their files are gone."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.journal.files import list_data_files
from lockkeeper.message.destination import queue
from lockkeeper.store.base import Recovered
from lockkeeper.store.kahadb import KahaDBStore, existing
from lockkeeper.store.kahadb.existing import ToldQueues, queues_lines
from lockkeeper.store.kahadb.recovery import replay_directory

A, B, EMPTY = queue("A"), queue("B"), queue("EMPTY")
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


def test_a_queue_that_was_removed_stays_so_when_the_record_of_that_is_gone(
    reopened: Reopen, tmp_path: Path, kit: Kit
) -> None:
    store, _ = reopened()
    store.remember_queue(EMPTY)
    store.remember_queue(A)
    stays = kit.reference(1, size=900)
    store.add(A, stays, None)
    kit.until_durable(store)
    fill(store, kit, 2)
    store.remove_destination(EMPTY, None)
    fill(store, kit, 20)
    for moment in (MINUTE, MINUTE + 1000, 2 * MINUTE + 1000, 2 * MINUTE + 2000):
        kit.maintain(store, moment)
        kit.until_durable(store)
    # What told the queue's name is there still, what told its end is not.
    first, *_ = list_data_files(tmp_path)
    assert first.file_id == 1 and len(list_data_files(tmp_path)) < 5
    _, recovered = reopened()
    assert recovered.existing == [A]


def test_names_that_do_not_fit_into_a_file_are_told_once_on_an_idle_broker(
    reopened: Reopen, tmp_path: Path, kit: Kit
) -> None:
    store, _ = reopened()
    names = [queue(f"EMPTY.{number}.{'x' * 900}") for number in range(20)]
    for name in names:
        store.remember_queue(name)
    kit.until_durable(store)
    lengths: list[int] = []
    for second in range(30):
        kit.maintain(store, second * 1_000)
        kit.until_durable(store)
        lengths.append(journal_bytes(tmp_path))
    assert lengths[3:] == lengths[3:4] * 27
    fill(store, kit, 1, rounds=30)
    for moment in range(MINUTE, 20 * MINUTE, MINUTE // 2):
        kit.maintain(store, moment)
        kit.until_durable(store)
    # What told the names before is gone by now; they are told in the meantime.
    first, *others = list_data_files(tmp_path)
    assert first.file_id > 10 and len(others) < 60
    _, recovered = reopened()
    assert [each for each in recovered.existing if each != B] == names


def test_many_names_are_told_in_parts(
    reopened: Reopen, tmp_path: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(existing, "PART_BYTES", 30_000)
    store, _ = reopened()
    names = [queue(f"EMPTY.{number}") for number in range(20_000)]
    for name in names:
        store.remember_queue(name)
    kit.until_durable(store)
    before = journal_bytes(tmp_path)
    kit.maintain(store, 1_000)
    kit.until_durable(store)
    assert 30_000 < journal_bytes(tmp_path) - before < 40_000
    # What comes and goes meanwhile is told right.
    store.remember_queue(A)
    store.remove_destination(names[7], None)
    store.remove_destination(names[-7], None)
    for second in range(2, 20):
        kit.maintain(store, second * 1_000)
        kit.until_durable(store)
    _, recovered = reopened()
    assert recovered.existing == [*(each for each in names if each not in names[7::19_986]), A]


def test_a_start_knows_that_queues_were_told_of_though_none_is_left(
    reopened: Reopen, tmp_path: Path, kit: Kit
) -> None:
    """It tells that there are none in each file: the record of the last one's end may go."""
    store, _ = reopened()
    store.trace("anything")
    kit.until_durable(store)
    kit.maintain(store, MINUTE)
    assert not replay_directory(tmp_path).are_queues_told
    store.remember_queue(EMPTY)
    store.remove_destination(EMPTY, None)
    kit.until_durable(store)
    assert replay_directory(tmp_path).are_queues_told
    store, recovered = reopened()
    assert recovered.existing == []
    store.trace("anything")
    kit.until_durable(store)
    kit.maintain(store, MINUTE)
    kit.until_durable(store)
    assert b'"names": [], "first": 0, "of": 0}' in (tmp_path / "db-2.log").read_bytes()


def journal_bytes(directory: Path) -> int:
    """Return how far the journal is written, without the zeros at the end of its files."""
    return sum(len(each.path.read_bytes().rstrip(b"\0")) for each in list_data_files(directory))


def fill(store: KahaDBStore, kit: Kit, first: int, rounds: int = 1) -> None:
    """Send and consume messages until a few files are full."""
    for number in range(first, first + 15 * rounds):
        one = kit.reference(number, B, size=900)
        store.add(B, one, None)
        kit.until_durable(store)
        store.remove(B, one)
        kit.until_durable(store)


def told_by(lines: list[str]) -> list[str]:
    told = ToldQueues()
    for line in lines:
        told.note(line)
    return [each.name for each in told.names]


@pytest.mark.parametrize("count", [0, 1, 199, 200, 201, 450])
def test_lines_tell_any_number_of_names(count: int) -> None:
    names = [f'queue "{number}" ü' for number in range(count)]
    assert told_by(queues_lines(names)) == names
    before = queues_lines(["before", *names[:3]])
    assert told_by([*before, *queues_lines(names, are_all=True)]) == names


def test_only_what_is_told_whole_ends_what_was_told_before() -> None:
    names = [f"Q.{number}" for number in range(450)]
    before, lines = queues_lines(["OLD"]), queues_lines(names, are_all=True)
    assert told_by([*before, *lines[:2]]) == ["OLD", *names[:400]]
    assert told_by([*before, *lines[1:]]) == ["OLD", *names[200:]]
    assert told_by([*before, *lines[:1], *lines]) == names
    assert told_by([*before, *lines, *queues_lines(["NEW"])]) == [*names, "NEW"]


@pytest.mark.parametrize(
    "text", ['lk1 {"t":"queues",', 'lk1 {"t":"queues","names":7}', 'lk1 {"t":"term","epoch":7}', ""]
)
def test_other_lines_tell_none(text: str) -> None:
    assert told_by([text]) == []
