"""Which files may go: the rules of kahadb.md section 6, pure and in a directory."""

import errno
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_kit import Kit, becomes_readable

from lockkeeper.journal.files import data_file_id, list_data_files
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import XATransactionId
from lockkeeper.store.base import Add, Operation, Remove, StoreError, StoreFullError, Subscription
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.cleanup import collectable
from lockkeeper.store.kahadb.file_references import FileEntry

A, NEWS = queue("A"), topic("NEWS")
SUBSCRIPTION = Subscription("client", "s", NEWS, None, False)
GLOBAL = XATransactionId(86, b"global", b"branch")
MINUTE = 60_000


def entries(**files: tuple[int, Collection[int]]) -> dict[int, FileEntry]:
    """Return file entries from `f1=(live, {refers})`."""
    made: dict[int, FileEntry] = {}
    for name, (live, refers) in files.items():
        made[int(name[1:])] = file_references = FileEntry(100)
        file_references.live, file_references.refers = live, set(refers)
    return made


@pytest.mark.parametrize(
    ("files", "pinned", "gone"),
    [
        (entries(f1=(0, ()), f2=(0, ()), f3=(0, ())), (), [1, 2]),
        (entries(f1=(1, ()), f2=(0, ()), f3=(0, ())), (), [2]),
        (entries(f1=(0, ()), f2=(0, ()), f3=(0, ())), (1,), [2]),
        # The acknowledgements in 2 are for messages in 1: alone, 2 may not go.
        (entries(f1=(1, ()), f2=(0, (1,)), f3=(0, ())), (), []),
        (entries(f1=(0, ()), f2=(0, (1,)), f3=(0, ())), (), [1, 2]),
        # Nor may 3, whose acknowledgements are for messages in 2.
        (entries(f1=(1, ()), f2=(0, (1,)), f3=(0, (2,)), f4=(0, ())), (), []),
        (entries(f1=(0, (1,)), f2=(0, (2, 1)), f3=(2, (1,)), f4=(0, (3,))), (), [1, 2]),
        (entries(f1=(0, (2,)), f2=(0, (1,)), f3=(0, ())), (), [1, 2]),
        # Files that are gone already do not matter.
        (entries(f5=(0, (1, 2)), f6=(0, ())), (), [5]),
        ({}, (), []),
    ],
)
def test_a_file_goes_only_with_all_that_it_undoes(
    files: dict[int, FileEntry], pinned: tuple[int, ...], gone: list[int]
) -> None:
    assert collectable(files, set(pinned), max(files, default=0)) == gone


def test_one_message_that_keeps_thousands_of_files_is_found_at_once() -> None:
    count = 2000
    files = entries(f1=(1, ()), **{f"f{each}": (0, (each - 1,)) for each in range(2, count + 1)})
    began = time.perf_counter()
    assert collectable(files, set(), count) == []
    assert time.perf_counter() - began < 0.5


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sets(st.integers(1, 7))), min_size=1, max_size=7),
    st.sets(st.integers(1, 7), max_size=2),
)
def test_the_largest_set_that_keeps_the_rules_goes(
    described: list[tuple[int, set[int]]], pinned: set[int]
) -> None:
    files = entries(**{f"f{index + 1}": one for index, one in enumerate(described)})
    current = max(files)
    gone = set(collectable(files, pinned, current))

    def keeps_the_rules(going: set[int]) -> bool:
        return all(
            not files[one].live
            and one not in pinned
            and one != current
            and not (files[one].refers & (files.keys() - going))
            for one in going
        )

    assert keeps_the_rules(gone)
    subsets = [{one for one in files if bits >> one & 1} for bits in range(1 << (current + 1))]
    largest = max((one for one in subsets if keeps_the_rules(one)), key=len)
    assert gone == largest


@pytest.fixture
def store(tmp_path: Path, kit: Kit) -> Iterator[KahaDBStore]:
    store = KahaDBStore(tmp_path, clock=kit.clock, file_bytes_max=4096)
    store.open()
    yield store
    store.close()


def fill(store: KahaDBStore, kit: Kit, first: int, count: int = 12) -> None:
    """Send and consume messages until a few files are full."""
    for number in range(first, first + count):
        one = kit.reference(number, size=900)
        store.add(A, one, None)
        kit.until_durable(store)
        store.remove(A, one)
    kit.until_durable(store)


def clean_up(store: KahaDBStore, kit: Kit, now: int) -> None:
    for moment in (now, now + 1000, now + MINUTE, now + MINUTE + 1000):
        kit.maintain(store, moment)
        kit.until_durable(store)


def file_ids(directory: Path) -> list[int]:
    return [file.file_id for file in list_data_files(directory)]


def test_files_without_live_messages_go_after_the_interval(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    fill(store, kit, 0)
    before = file_ids(tmp_path)
    kit.maintain(store, MINUTE)
    assert file_ids(tmp_path) == before
    kit.maintain(store, MINUTE + 1000)
    after = file_ids(tmp_path)
    assert after == before[-1:]
    assert store.usage().files == 1
    assert store.usage().bytes_on_disk == 4096


def test_a_few_files_are_deleted_at_a_time_the_oldest_first(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    fill(store, kit, 0, count=40)
    before = file_ids(tmp_path)
    assert len(before) > 8
    kit.maintain(store, MINUTE)
    for moment in range(1, 5):
        store.maintain(0)
        assert file_ids(tmp_path) == before[2 * moment :]


def test_files_go_while_nothing_but_the_flight_recorder_has_something_to_write(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    fill(store, kit, 0)
    store.trace("a connection was closed")
    kit.maintain(store, MINUTE)
    store.flush()
    for _ in range(20):
        becomes_readable(store, 0.05)
        store.completed()
    kit.maintain(store, MINUTE + 1000)
    assert len(file_ids(tmp_path)) == 1


def test_a_journal_at_its_limit_is_full_and_cleans_up_in_haste(tmp_path: Path, kit: Kit) -> None:
    store = KahaDBStore(tmp_path, clock=kit.clock, file_bytes_max=4096, bytes_max=5 * 4096)
    store.open()
    references = [kit.reference(number, size=500) for number in range(60)]
    added = 0
    for one in references:
        try:
            store.check_full()
        except StoreFullError as error:
            assert "systemUsage.storeUsage (20480 bytes)" in str(error)
            break
        store.add(A, one, None)
        added += 1
        kit.until_durable(store)
    assert 20 < added < 60
    assert store.usage().files == 6
    kit.maintain(store, MINUTE)
    for one in references[:added]:
        store.remove(A, one)
    kit.until_durable(store)
    for beat in range(3):
        kit.maintain(store, MINUTE + beat)
    store.check_full()
    assert store.usage().files < 3
    store.close()


def test_an_archive_keeps_what_is_cleaned_up(tmp_path: Path, kit: Kit) -> None:
    store = KahaDBStore(tmp_path, clock=kit.clock, file_bytes_max=4096, archive=True)
    store.open()
    fill(store, kit, 0)
    before = file_ids(tmp_path)
    clean_up(store, kit, MINUTE)
    kept = file_ids(tmp_path / "data-archive")
    assert kept == before[:-1]
    assert sorted(kept + file_ids(tmp_path)) == before
    store.close()


def test_beyond_its_limit_the_store_counts_as_full_until_files_go(tmp_path: Path, kit: Kit) -> None:
    store = KahaDBStore(tmp_path, clock=kit.clock, file_bytes_max=4096, bytes_max=8192)
    store.open()
    fill(store, kit, 0)
    with pytest.raises(StoreFullError, match="has reached systemUsage"):
        store.check_full()
    clean_up(store, kit, MINUTE)
    store.check_full()
    store.close()


def test_nothing_goes_before_the_removals_are_durable(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    references = [kit.reference(number, size=900) for number in range(12)]
    for one in references:
        store.add(A, one, None)
    kit.until_durable(store)
    before = file_ids(tmp_path)
    for one in references:
        store.remove(A, one)
    kit.maintain(store, MINUTE)
    kit.maintain(store, MINUTE + 1000)
    assert file_ids(tmp_path) == before
    kit.until_durable(store)
    kit.maintain(store, MINUTE + 2000)
    assert len(file_ids(tmp_path)) < 3


def test_acknowledgements_for_an_older_file_that_stays_are_kept(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    kept = kit.reference(1000)
    consumed = [kit.reference(2000 + number) for number in range(5)]
    for one in [kept, *consumed]:
        store.add(A, one, None)
    kit.until_durable(store)
    for number, one in enumerate(consumed):
        fill(store, kit, number * 10, 3)
        store.remove(A, one)
        kit.until_durable(store)
    fill(store, kit, 100)
    clean_up(store, kit, MINUTE)
    assert 1 in file_ids(tmp_path)
    store.close()
    assert kit.numbers(store, store.open().queues[A]) == [1000]


def test_a_live_subscription_is_carried_forward(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    store.subscribe(SUBSCRIPTION, None)
    fill(store, kit, 0)
    clean_up(store, kit, MINUTE)
    assert 1 not in file_ids(tmp_path)
    store.add(NEWS, kit.reference(1, NEWS), None)
    store.close()
    (entry,) = store.open().subscriptions
    assert entry.subscription == SUBSCRIPTION
    assert kit.numbers(store, entry.pending) == [1]


def test_a_subscription_with_messages_stays_where_it_is(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    store.subscribe(SUBSCRIPTION, None)
    kit.until_durable(store)
    fill(store, kit, 0)
    one = kit.reference(500, NEWS)
    store.add(NEWS, one, None)
    fill(store, kit, 20)
    clean_up(store, kit, MINUTE)
    assert 1 in file_ids(tmp_path)
    store.remove(NEWS, one, None, SUBSCRIPTION)
    clean_up(store, kit, 10 * MINUTE)
    assert 1 not in file_ids(tmp_path)
    store.close()
    (entry,) = store.open().subscriptions
    assert entry.pending == []


def test_a_deleted_subscription_does_not_return_with_an_old_file(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    kept = kit.reference(1000)
    store.add(A, kept, None)
    store.subscribe(SUBSCRIPTION, None)
    fill(store, kit, 0)
    store.unsubscribe(SUBSCRIPTION, None)
    fill(store, kit, 20)
    clean_up(store, kit, MINUTE)
    assert 1 in file_ids(tmp_path)
    store.close()
    recovered = store.open()
    assert recovered.subscriptions == []
    assert kit.numbers(store, recovered.queues[A]) == [1000]


def test_a_removed_destination_does_not_return_with_an_old_file(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    other = queue("OTHER")
    forgotten = kit.reference(2000)
    store.add(A, kit.reference(1000), None)
    store.add(other, forgotten, None)
    kit.until_durable(store)
    fill(store, kit, 0)
    store.release(forgotten)
    store.remove_destination(other, None)
    fill(store, kit, 20)
    clean_up(store, kit, MINUTE)
    store.close()
    assert list(store.open().queues) == [A]


def test_the_files_of_a_prepared_transaction_stay(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    consumed, sent = kit.reference(1), kit.reference(2)
    store.add(A, consumed, None)
    kit.until_durable(store)
    operations: list[Operation] = [Add(A, [sent]), Remove(A, [consumed])]
    store.prepare(GLOBAL, operations, None)
    fill(store, kit, 10)
    clean_up(store, kit, MINUTE)
    assert 1 in file_ids(tmp_path)
    store.close()
    operations = store.open().prepared[GLOBAL]
    store.commit_prepared(GLOBAL, operations, None)
    store.remove(A, operations[0].references[0])
    fill(store, kit, 30)
    clean_up(store, kit, 10 * MINUTE)
    assert 1 not in file_ids(tmp_path)


def test_a_duplicate_does_not_return_when_its_removal_is_old(tmp_path: Path, kit: Kit) -> None:
    store = KahaDBStore(tmp_path, clock=kit.clock, file_bytes_max=4096)
    store.open()
    one = kit.reference(1)
    store.add(A, one, None)
    fill(store, kit, 10)
    store.add(A, kit.reference(1), None)
    kept = kit.reference(2)
    store.add(A, kept, None)
    store.close()
    first, second = store.open().queues[A]
    assert (first.location, second.location) == (one.location, kept.location)
    store.remove(A, first)
    fill(store, kit, 30)
    clean_up(store, kit, MINUTE)
    store.close()
    assert kit.numbers(store, store.open().queues[A]) == [2]
    store.close()


def test_nothing_is_collected_before_the_first_write(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    fill(store, kit, 0)
    store.close()
    before = file_ids(tmp_path)
    store.open()
    clean_up(store, kit, MINUTE)
    assert file_ids(tmp_path) == before


def test_a_directory_that_refuses_is_an_error(
    store: KahaDBStore, tmp_path: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, kit, 0)
    kit.maintain(store, MINUTE)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.unlink", refuse)
        with pytest.raises(StoreError, match="Read-only file system"):
            kit.maintain(store, MINUTE + 1000)


def test_the_spare_file_is_gone_after_a_clean_stop(
    store: KahaDBStore, tmp_path: Path, kit: Kit
) -> None:
    fill(store, kit, 0, 2)
    store.close()
    assert [path.name for path in tmp_path.iterdir() if data_file_id(path.name) is None] == ["lock"]


def test_what_killed_processes_prepared_is_deleted_and_never_used(tmp_path: Path, kit: Kit) -> None:
    names = ("next.zeros", "next-00112233aabbccdd.zeros", "spool-abcdefgh.bodies")
    for name in names:
        (tmp_path / name).write_bytes(b"another process" * 100)
    kept = tmp_path / "next-week.txt"
    kept.touch()
    store = KahaDBStore(tmp_path, file_bytes_max=4096)
    store.open()
    assert not [name for name in names if (tmp_path / name).exists()]
    assert kept.exists()
    store.add(A, kit.reference(1), None)
    store.close()
    data = (tmp_path / "db-1.log").read_bytes()
    assert len(data) == 4096
    assert b"another process" not in data


def test_a_spare_file_that_was_deleted_is_made_anew(tmp_path: Path, kit: Kit) -> None:
    store = KahaDBStore(tmp_path, file_bytes_max=4096)
    store.open()
    (spare,) = tmp_path.glob("next-*.zeros")
    spare.unlink()
    store.add(A, kit.reference(1), None)
    store.close()
    assert (tmp_path / "db-1.log").stat().st_size == 4096
    assert kit.numbers(store, store.open().queues[A]) == [1]
    store.close()


def test_a_file_system_without_second_names_does(
    tmp_path: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    store = KahaDBStore(tmp_path, clock=kit.clock, file_bytes_max=4096, archive=True)
    store.open()
    fill(store, kit, 0)
    before = file_ids(tmp_path)
    clean_up(store, kit, MINUTE)
    assert file_ids(tmp_path / "data-archive") == before[:-1]
    store.close()


def test_an_archive_never_replaces_what_it_has(tmp_path: Path, kit: Kit) -> None:
    (tmp_path / "data-archive").mkdir()
    (tmp_path / "data-archive" / "db-1.log").write_bytes(b"an older journal")
    store = KahaDBStore(tmp_path, clock=kit.clock, file_bytes_max=4096, archive=True)
    store.open()
    fill(store, kit, 0)
    clean_up(store, kit, MINUTE)
    store.close()
    assert (tmp_path / "data-archive" / "db-1.log").read_bytes() == b"an older journal"
    (other,) = (tmp_path / "data-archive").glob("db-1.log.*")
    assert other.stat().st_size == 4096
