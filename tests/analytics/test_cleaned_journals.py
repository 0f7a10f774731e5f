"""A clean-up changes nothing: without the files that it frees, the same is there as before."""

import random

import pytest
from journal_maker import rows_of
from random_journal import RandomJournal

from lockkeeper.store.kahadb.cleanup import collectable
from lockkeeper.store.kahadb.recovery import replay_directory


class JournalOfNewMessages(RandomJournal):
    """Adds each message once: of one that came again, the other add may count without the first."""

    added = 0

    def add(self, at):
        place = self.chance.choice(self.places)
        self.maker.add(self.added, at, place, tx=self._transaction())
        self.added += 1

    def _number(self):
        return self.chance.randrange(max(0, self.added - 2 * self.ids), self.added + 1)


@pytest.fixture(params=range(60))
def directory(request, tmp_path):
    chance = random.Random(request.param)
    drops = request.param % 2 == 0
    journal = JournalOfNewMessages(tmp_path / "journal", chance, drops=drops)
    journal.kinds += ["roll"] * 5
    return journal.write(80)


def state(directory):
    """Return what a broker recovers: messages by their place, subscriptions, transactions.

    Messages are sorted: an updated one stands where its first record stood, as long as that is
    there.
    """
    recovered = replay_directory(directory).recovered
    queues = {
        place: sorted(one.location for one in references)
        for place, references in recovered.queues.items()
        if references
    }
    subscriptions = {
        (one.subscription.destination, one.subscription.key): sorted(
            each.location for each in one.pending
        )
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
