"""Random lives of a journal under a stream: whatever it does not read is told."""

import random
from collections import Counter

import pytest
from journal_maker import JournalMaker
from test_tail import Query

from lockkeeper.journal.records import RewrittenDataFile

SEEDS, MORE_SEEDS = range(8), range(8, 60)
STEPS = 40


class Life:
    """Files come and go while a query looks now and then."""

    def __init__(self, directory, seed):
        self.chance = random.Random(seed)
        self.maker = JournalMaker(directory)
        self.batches = Counter()
        self.passed_over = set()
        self.there = set()
        self.rows = []
        for _ in range(self.chance.randint(2, 6)):
            self.write()
            self.roll()
        self.write()
        self.remove()
        self.remove()
        self.there = set(self.numbers())
        limit = str(self.chance.choice((1, 700, 2_000, 100_000)))
        options = {"maxBytesPerTrigger": limit, "failOnDataLoss": "false", "holdBytes": "0"}
        self.query = Query(directory, **options)
        self.look()

    def numbers(self):
        return [int(path.stem[3:]) for path in self.maker.directory.glob("db-*.log")]

    def write(self):
        number = sum(self.batches.values())
        self.maker.add(number, number).flush()
        self.batches[self.maker.file_id] += 1

    def roll(self):
        self.maker.roll()
        if self.there and self.chance.random() < 0.1:
            source = self.chance.randint(min(self.there), self.maker.file_id - 1)
            self.maker.record(RewrittenDataFile(source)).remove(1).flush()
            self.passed_over.add(self.maker.file_id)
            self.maker.roll()
        self.write()

    def remove(self):
        removable = [number for number in self.numbers() if number < self.maker.file_id]
        if removable:
            (self.maker.directory / f"db-{self.chance.choice(removable)}.log").unlink()

    def look(self):
        self.rows += self.query.step() or []

    def look_at_what_is_there(self):
        self.query.reader.prepareForTriggerAvailableNow()
        self.remove()
        self.roll()
        while (rows := self.query.step()) is not None:
            self.rows += rows
        self.query.restart()

    def run(self):
        happens = [self.write, self.roll, self.remove, self.look] * 4
        happens += [self.query.restart, self.look_at_what_is_there]
        for _ in range(STEPS):
            self.chance.choice(happens)()
        self.roll()
        while (rows := self.query.step()) is not None:
            self.rows += rows
        return self


@pytest.mark.parametrize(
    "seed", [*SEEDS, *(pytest.param(each, marks=pytest.mark.thorough) for each in MORE_SEEDS)]
)
def test_all_is_read_or_told_as_lost_but_what_was_missing_at_the_beginning(tmp_path, seed):
    life = Life(tmp_path / "journal", seed).run()
    first, last = min(life.there), max(life.there)
    lost = [row for row in life.rows if row["kind"] == "lost"]
    told = [row["file_id"] for row in lost]
    read = Counter(row["file_id"] for row in life.rows if row["kind"] == "add")
    assert len(set(told)) == len(told)
    assert max(Counter(row["message_id"] for row in life.rows if row["message_id"]).values()) == 1
    for number in range(first, life.maker.file_id + 1):
        if number < last and number not in life.there:
            assert not read[number] and number not in told
        elif number not in life.passed_over and number not in told:
            assert read[number] == life.batches[number], number
    for row in lost:
        assert bool(row["offset"]) == bool(read[row["file_id"]])
    assert not [row for row in life.rows if row["kind"] == "remove"]
