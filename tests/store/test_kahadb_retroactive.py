"""Retroactive subscriptions, which ActiveMQ writes: a clean-up changes nothing of theirs."""

from pathlib import Path

import pytest
from handmade_journal import NEWS, Journal
from store_kit import Kit

from lockkeeper.journal.records import RemoveDestination
from lockkeeper.journal.records import Subscription as SubscriptionRecord
from lockkeeper.message.destination import queue
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.cleanup import collectable
from lockkeeper.store.kahadb.recovery import replay_directory

MINUTE = 60_000
OTHERS = queue("OTHERS")


@pytest.fixture
def journal(tmp_path: Path, kit: Kit) -> Journal:
    return Journal(tmp_path / "journal", kit)


def deleted(journal: Journal) -> list[int]:
    """Delete what a clean-up would delete at the start; return the numbers of the files."""
    references = replay_directory(journal.directory).file_references
    going = collectable(references.files, references.pinned(), max(references.files))
    for number in going:
        (journal.directory / f"db-{number}.log").unlink()
    return going


def ended(journal: Journal, name: str) -> SubscriptionRecord:
    return SubscriptionRecord(NEWS, journal.subscribe(name).subscription_key)


def test_those_stay_that_kept_what_it_found(journal: Journal) -> None:
    journal.write(journal.subscribe("two"))
    journal.write(journal.add(1, NEWS), file_id=2)
    journal.write(journal.subscribe("one", retroactive=True), file_id=3)
    journal.write(ended(journal, "two"), file_id=4)
    journal.write(journal.add(9, OTHERS), file_id=5)
    assert journal.replay() == {"OTHERS": [9], "one": [1]}
    assert deleted(journal) == []
    assert journal.replay() == {"OTHERS": [9], "one": [1]}


def test_its_own_earlier_creation_stays(journal: Journal) -> None:
    journal.write(journal.subscribe("one"))
    journal.write(journal.add(1, NEWS), file_id=2)
    journal.write(journal.subscribe("one", retroactive=True), file_id=3)
    journal.write(journal.add(9, OTHERS), file_id=4)
    assert deleted(journal) == []
    assert journal.replay() == {"OTHERS": [9], "one": [1]}


def test_a_creation_that_ended_what_waited_stays_with_that(journal: Journal) -> None:
    journal.write(journal.subscribe("one"))
    journal.write(journal.add(1, NEWS), journal.add(8, OTHERS), file_id=2)
    journal.write(journal.subscribe("one"), file_id=3)
    journal.write(journal.subscribe("one", retroactive=True), file_id=4)
    journal.write(journal.add(9, OTHERS), file_id=5)
    assert deleted(journal) == []
    assert journal.replay() == {"OTHERS": [8, 9], "one": []}


def test_what_was_before_the_end_of_its_topic_goes(journal: Journal) -> None:
    journal.write(journal.subscribe("two"), journal.add(1, NEWS))
    journal.write(RemoveDestination(NEWS), file_id=2)
    journal.write(journal.subscribe("one", retroactive=True), file_id=3)
    journal.write(journal.add(9, OTHERS), file_id=4)
    assert deleted(journal) == [1, 2]
    assert journal.replay() == {"OTHERS": [9], "one": []}


@pytest.mark.parametrize("again", [False, True], ids=["moved", "as it was"])
def test_one_that_is_carried_forward_gets_nothing_twice(
    journal: Journal, kit: Kit, again: bool
) -> None:
    journal.write(journal.subscribe("two"))
    journal.write(journal.add(1, NEWS), file_id=2)
    one = journal.subscribe("one", retroactive=True)
    journal.write(one, journal.remove(1, NEWS, one.subscription_key), file_id=3)
    journal.write(journal.add(9, OTHERS), file_id=4)
    if not again:
        clean_up_of(journal, kit)
        assert max(number for number, record in journal.records() if is_creation(record)) > 4
    assert journal.replay() == {"OTHERS": [9], "one": [], "two": [1]}


def clean_up_of(journal: Journal, kit: Kit) -> None:
    """Let a broker clean up, which moves subscriptions that have nothing."""
    store = KahaDBStore(journal.directory, clock=kit.clock, file_bytes_max=4096)
    store.open()
    for number in range(20, 32):
        reference = kit.reference(number, size=900)
        store.add(OTHERS, reference, None)
        kit.until_durable(store)
        store.remove(OTHERS, reference)
    for moment in (MINUTE, MINUTE + 1000, 2 * MINUTE, 2 * MINUTE + 1000):
        kit.maintain(store, moment)
        kit.until_durable(store)
    store.close()


def is_creation(record: object) -> bool:
    return isinstance(record, SubscriptionRecord) and record.info is not None
