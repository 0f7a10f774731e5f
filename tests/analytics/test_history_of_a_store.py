"""A store's own compactions, at random, with runs between them: the order stays, and what waits.

The store keeps whole files in its archive, of which the runs know nothing: what is there, record by
record, is what a history has part of.
"""

import random
import shutil
import sys
from itertools import count
from pathlib import Path

import pytest
from journal_maker import rows_of

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))

from store_kit import Kit
from test_kahadb_compaction import DEAD, NEWS, SLOW_READER, A, Traffic, clean_up, make

from lockkeeper.journal.batch import EOF_SIZE
from lockkeeper.journal.compacted import HEAD_BYTES, compaction_in
from lockkeeper_analytics.history import keeping
from lockkeeper_analytics.tables.options import parse_options

SEEDS, MORE_SEEDS = range(3), range(3, 30)
SAID = ("kind", "destination", "message_id", "subscription", "transaction", "record_bytes")


class Lived:
    """A directory that a store writes, a history of it, and what it was with nothing removed."""

    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.kit = Kit()
        self.data, self.seen = folder / "data", folder / "seen"
        self.whole, self.history = folder / "whole", folder / "history"
        self.store = make(self.data, self.kit, archive=True)
        self.store.open()
        self.lost = 0

    def keep(self):
        """Let a run read the files, not the archive."""
        shutil.rmtree(self.seen, ignore_errors=True)
        self.seen.mkdir()
        for path in self.data.glob("db-*.log"):
            shutil.copy(path, self.seen)
        kept = keeping.keep(parse_options({"path": f"north={self.seen}"}), str(self.history))
        self.lost += kept.lost

    def end(self):
        """Close the store, and put together the files as they were written."""
        self.store.close()
        self.whole.mkdir()
        for path in (*self.data.glob("db-*.log"), *(self.data / "data-archive").glob("*.log")):
            if compaction_in(path.read_bytes()[:HEAD_BYTES]) is None:
                shutil.copy(path, self.whole)

    def kept(self, **options):
        return rows_of(self.history / "broker=north", **options)


def in_order(rows):
    return sorted(rows, key=lambda row: (row["file_id"], row["offset"]))


def told(rows):
    """Return what became of each message."""
    return {
        (row["destination"], row["message_id"]): (row["outcome"], row["waiting_for"])
        for row in rows
    }


def check(lived):
    """Hold a history against the journal, and against the files as they were written."""
    whole = {}
    for row in in_order(rows_of(lived.whole)):
        said = tuple(row[name] for name in SAID)
        whole.setdefault(said, []).append((row["file_id"], row["offset"]))
    rows = in_order(lived.kept())
    places = [(row["file_id"], row["offset"]) for row in rows if row["kind"] != "lost"]
    assert len(set(places)) == len(places)
    found = [row for row in rows if row["kind"] not in ("lost", "trace", "audit", "ack_map")]
    originals = [whole[tuple(row[name] for name in SAID)] for row in found]
    assert [len(each) for each in originals] == [1] * len(found)
    assert [each[0] for each in originals] == sorted({each[0] for each in originals})
    journal = told(rows_of(lived.seen, table="messages"))
    history = told(lived.kept(table="messages"))
    assert {key: history.get(key) for key in journal} == journal


@pytest.fixture(
    params=[*SEEDS, *(pytest.param(each, marks=pytest.mark.thorough) for each in MORE_SEEDS)]
)
def lived(request, tmp_path):
    return Lived(tmp_path, request.param)


def test_history_has_records_in_the_order_in_which_they_were_written(lived):
    traffic = Traffic(lived.store, lived.kit, lived.random.random())

    def live():
        for _ in range(lived.random.randrange(20, 120)):
            traffic.step()
        lived.kit.until_durable(lived.store)

    for _ in range(3):
        live()
        lived.keep()
        live()
        clean_up(lived.store, lived.kit)
        if lived.random.random() < 0.5:
            lived.keep()
    lived.keep()
    lived.end()
    check(lived)


def test_what_a_subscription_waits_for_came_behind_it(tmp_path):
    lived = Lived(tmp_path, 0)
    store, kit = lived.store, lived.kit

    def come_and_go(numbers):
        for number in numbers:
            one = kit.reference(number, A, 900)
            store.add(A, one, None)
            kit.until_durable(store)
            store.remove(A, one, skip_unwritten=False)
        kit.until_durable(store)

    come_and_go(range(8))
    store.subscribe(SLOW_READER, None)
    kit.until_durable(store)
    lived.keep()
    for number in range(1000, 1003):
        one = kit.reference(number, NEWS, 300)
        one.holders = 1
        store.add(NEWS, one, None)
    come_and_go(range(100, 160))
    clean_up(store, kit)
    lived.keep()
    lived.end()
    assert lived.lost
    check(lived)
    waiting = [(row["subscription"], row["pending"]) for row in lived.kept(table="subscriptions")]
    assert waiting == [("client:slow", 3)]


def test_a_file_that_was_kept_to_its_end_has_lost_nothing(tmp_path):
    lived = Lived(tmp_path, 0)
    store, kit = lived.store, lived.kit
    numbers = count(1)

    def add(destination, size):
        one = kit.reference(next(numbers), destination, size)
        store.add(destination, one, None)
        kit.until_durable(store)
        return one

    def end(one):
        store.remove(A, one, skip_unwritten=False)
        kit.until_durable(store)

    add(DEAD, 2000)
    waiting = []
    while not (lived.data / "db-2.log").exists():
        lived.keep()
        waiting.append(add(A, 3000))
    for one in waiting:
        end(one)
    for _ in range(20):
        end(add(A, 2000))
    clean_up(store, kit)
    first = compaction_in((lived.data / "db-1.log").read_bytes()[:HEAD_BYTES])
    assert first is not None
    # The store makes files in their full length.
    assert first.end + EOF_SIZE < first.size
    lived.keep()
    lived.end()
    check(lived)
    lost = [row["trace"] for row in lived.kept() if row["kind"] == "lost"]
    assert [each for each in lost if "db-1.log" in each] == []
