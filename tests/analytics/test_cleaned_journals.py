"""A clean-up changes nothing: without the files that it frees, the same is there as before."""

import random

import pytest
from journal_maker import rows_of
from random_journal import RandomJournal

from lockkeeper.store.kahadb.cleanup import collectable
from lockkeeper.store.kahadb.recovery import replay_directory


@pytest.fixture(params=range(60))
def directory(request, tmp_path):
    chance = random.Random(request.param)
    journal = RandomJournal(tmp_path / "journal", chance, drops=request.param % 2 == 0)
    # Each message comes once: of one that came again, the other add may count without the first.
    journal.kinds += ["roll"] * 5
    journal.ids = 40
    return journal.write(80)


def state(directory):
    """Return what a broker recovers: messages by their place, subscriptions, transactions."""
    recovered = replay_directory(directory).recovered
    queues = {
        place: [one.location for one in references]
        for place, references in recovered.queues.items()
        if references
    }
    subscriptions = {
        (one.subscription.destination, one.subscription.key): [
            each.location for each in one.pending
        ]
        for one in recovered.subscriptions
    }
    return queues, subscriptions, set(recovered.prepared)


def remove(directory, numbers):
    for number in numbers:
        (directory / f"db-{number}.log").unlink()


def test_of_what_the_table_says(directory):
    before = state(directory)
    rows = rows_of(directory, table="files")
    remove(directory, [row["file_id"] for row in rows if row["freed_by_cleanup"]])
    assert state(directory) == before


def test_of_what_the_broker_deletes(directory):
    before = state(directory)
    references = replay_directory(directory).file_references
    remove(directory, collectable(references.files, references.pinned(), max(references.files)))
    assert state(directory) == before
