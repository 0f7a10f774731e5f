"""Facts that are left out of Spark's plans have no rows: what would make some is in no record."""

from random import Random

import pytest
from journal_reports import asked
from random_journal import ORDINARY, RandomJournal

from lockkeeper.message.destination import queue
from lockkeeper_analytics.facts.absent import (
    ANY_OF_THEM,
    LATER,
    LATER_ARRIVALS,
    absent_facts,
)

TOLD_IN_TEXTS = ("statistics", "events", "stream_offsets", "declared_streams")
STREAMS = ("stream_entries", "stream_texts", "stream_partitions", "group_places")
BRIDGED = ("hops",)
DEADLY = ("dead_letter_records", "letters", "deaths")
TRANSACTED = ("outcomes", "transaction_records", "transaction_files")
PREPARED = ("prepares", "prepared_transactions", "prepared_removes")
RARE = (*TOLD_IN_TEXTS, *STREAMS, *BRIDGED, *DEADLY)
"""Those that no random journal of ordinary queues and topics has."""


class Bare(RandomJournal):
    """Writes records of some kinds only, in ordinary queues and topics."""

    def __init__(self, directory, chance, kinds, places=ORDINARY):
        super().__init__(directory, chance)
        self.kinds, self.places = list(kinds), places

    def _transaction(self):
        return super()._transaction() if "outcome" in self.kinds else None

    def write(self, records=120):
        if "outcome" in self.kinds:
            return super().write(records)
        for at in range(records):
            getattr(self, self.chance.choice(self.kinds))(at)
        self.maker.flush()
        return self.maker.directory


PLAIN = ("add", "add", "remove")
KINDS = {
    PLAIN: {*RARE, *TRANSACTED, *PREPARED, "subscribed", "periods", "updates"},
    (*PLAIN, "subscribe", "unsubscribe"): {*RARE, *TRANSACTED, *PREPARED, "periods", "updates"},
    (*PLAIN, "update", "drop"): {*RARE, *TRANSACTED, *PREPARED, "subscribed"},
    (*PLAIN, "outcome"): {*RARE, *PREPARED, "subscribed", "periods", "updates"},
    (*PLAIN, "outcome", "prepare"): {*RARE, "subscribed", "periods", "updates"},
}


@pytest.mark.parametrize("kinds", KINDS, ids=", ".join)
@pytest.mark.parametrize("seed", range(2))
def test_what_no_record_tells_of_has_no_rows(tmp_path, seed, kinds):
    directory = Bare(tmp_path / "journal", Random(seed), kinds).write()
    (answer,) = asked(ANY_OF_THEM, directory)
    absent = absent_facts(tuple(answer.values()))
    assert absent == KINDS[kinds]
    counts = ", ".join(f"(SELECT count(*) FROM {name}) AS {name}" for name in absent)
    assert asked(f"SELECT {counts}", directory) == [dict.fromkeys(absent, 0)]


def counted_later(directory):
    """Return how many adds begin no stay, at most, and how many do not."""
    (most,) = asked(LATER, directory)
    (count,) = asked(f"SELECT count(*) AS number FROM {LATER_ARRIVALS[0]}", directory)
    return *most.values(), count["number"]


@pytest.mark.parametrize("seed", range(4))
def test_of_queues_every_add_that_begins_no_stay_is_counted(tmp_path, seed):
    kinds = (*PLAIN, "update", "outcome", "prepare", "drop", "flush", "roll")
    places = (queue("A"), queue("B"))
    most, count = counted_later(Bare(tmp_path / "journal", Random(seed), kinds, places).write())
    assert most == count > 0


@pytest.mark.parametrize("seed", range(4))
def test_of_topics_no_add_that_begins_no_stay_is_missed(tmp_path, seed):
    kinds = (*PLAIN, "subscribe", "unsubscribe", "update", "outcome", "drop")
    most, count = counted_later(Bare(tmp_path / "journal", Random(seed), kinds).write())
    assert most >= count > 0


def test_messages_that_come_once_leave_nothing_that_comes_later(tmp_path):
    maker = RandomJournal(tmp_path / "journal", Random(0)).maker
    for number in range(9):
        maker.add(number, number)
    maker.remove(4).flush()
    assert counted_later(maker.directory) == (0, 0)
