"""Random lives of streams: tables and reports say what the broker answers at the end of each."""

import random
from collections import Counter

import pytest
from journal_maker import rows_of
from journal_reports import asked
from streams_journal import Streams, draft
from streams_kit import DiskBench
from test_streams_told import kept, lags_found, last_lag, milliseconds, properties_read

from lockkeeper.broker.streams.settings import Retention, StreamSettings

SEEDS, MORE_SEEDS = range(4), range(4, 60)
STEPS = 60
NAMES = ("orders", "or-de_rs|2", "a.b")
GROUPS = ("billing", "audit", "late")


class Life:
    """Has something happen to streams again and again."""

    def __init__(self, directory, seed):
        self.chance = random.Random(seed)
        directory.mkdir()
        bench = DiskBench(directory, file_bytes_max=1 << 15)
        self.told = Streams(directory, bench, bench.connect())
        self.number = 0
        for name in NAMES:
            self.declare(name)

    @property
    def streams(self):
        return self.told.bench.broker.streams

    def found(self, name):
        """Return a stream, None where there is none."""
        return next((each for each in self.streams if each.name == name), None)

    def declare(self, name):
        stream = self.found(name)
        partitions = max(self.chance.randint(1, 3), len(stream.partitions) if stream else 0)
        retention = Retention(time=20_000) if self.chance.random() < 0.5 else Retention()
        self.streams.declare(name, StreamSettings(partitions, retention))

    def place(self):
        """Return a partition of a stream, None where there is no stream."""
        names = [name for name in NAMES if self.found(name)]
        if not names:
            return None
        name = self.chance.choice(names)
        return name, self.chance.randrange(len(self.found(name).partitions))

    def send(self):
        place = self.place()
        if place is None:
            return
        for _ in range(self.chance.randint(1, 6)):
            self.number += 1
            self.told.send(*place, draft(self.number, self.chance.choice((10, 300, 4_000))))

    def commit(self):
        place, group = self.place(), self.chance.choice(GROUPS)
        if place is not None:
            end = self.streams.get(place[0]).partition(place[1]).maximum
            self.told.commit(group, (*place, self.chance.randint(0, end)))

    def give_back(self):
        place, group = self.place(), self.chance.choice(GROUPS)
        if place is None or self.streams.groups.find(group) is None:
            return
        partition = self.streams.get(place[0]).partition(place[1])
        if partition.minimum < partition.maximum:
            offset = self.chance.randrange(partition.minimum, partition.maximum)
            level = self.chance.choice((1, 2, -1))
            if partition.record(offset) is not None:
                self.streams.send_back(self.told.client, "b", group, *place, offset, level)

    def end_group(self):
        group = self.chance.choice(GROUPS)
        if self.streams.groups.find(group) is not None:
            self.streams.groups.delete(group)

    def remove(self):
        place = self.place()
        if place is not None:
            self.streams.remove(place[0])

    def consume_at_activemq(self):
        segments = [each for each in self.told.bench.store.streams.segments if len(each)]
        if segments:
            segment = self.chance.choice(segments)
            for offset in range(segment.base, segment.end):
                if self.chance.random() < 0.7:
                    self.told.take_out(segment, offset)
            self.restart()

    def restart(self):
        self.told.bench.restart()
        self.told.client = self.told.bench.connect()

    def run(self):
        happens = [self.send] * 8 + [self.commit] * 5 + [self.give_back] * 2
        happens += [self.end_group, self.remove, self.restart, self.consume_at_activemq]
        happens += [lambda: self.declare(self.chance.choice(NAMES))] * 2
        for _ in range(STEPS):
            self.chance.choice(happens)()
            self.told.step(self.chance.choice((0, 1, 5)))
        self.told.step()
        return self.told


@pytest.fixture(
    params=[*SEEDS, *(pytest.param(each, marks=pytest.mark.thorough) for each in MORE_SEEDS)]
)
def told(request, tmp_path):
    return Life(tmp_path / "journal", request.param).run()


def test_tables_and_reports_are_what_the_broker_says(told):
    streams, records = told.bench.broker.streams, kept(told)
    found = {
        (row["stream"], row["partition"], row["file_id"] << 32 | row["location"]): (
            row["offset"],
            row["content"],
            dict(row["properties"]),
            milliseconds(row["stored_at"]),
        )
        for row in rows_of(told.directory, table="stream_messages", body="true")
    }
    expected = {
        (*place[:2], record.location): (
            record.offset,
            record.draft.body,
            properties_read(record.draft),
            record.stored_at,
        )
        for place, record in records.items()
    }
    assert {place: found.get(place) for place in expected} == expected
    counts = Counter(place[:2] for place in records)
    partitions = [
        (
            *(stream.name, partition.number, partition.minimum, partition.maximum),
            counts[stream.name, partition.number],
        )
        for stream in streams
        for partition in stream.partitions
        if not stream.name.startswith("SCHEDULE_TOPIC")
    ]
    names = ("stream", "partition", "first_offset", "end_offset", "messages")
    rows = asked("FROM partitions_report", told.directory)
    assert [tuple(row[name] for name in names) for row in rows] == sorted(partitions)
    lags = [
        (group.name, lag.stream, lag.partition, lag.offset, lag.maximum, lag.messages)
        for group in streams.groups
        for lag in streams.queries.lag(group)
    ]
    names = ("consumer_group", "stream", "partition", "next_offset", "end_offset", "waiting")
    rows = asked("FROM groups_report", told.directory)
    assert sorted(tuple(row[name] for name in names) for row in rows) == sorted(lags)
    assert lags_found(told) == told.lags
    assert last_lag(told) == waiting_in(rows)


def waiting_in(rows):
    """Return what rows of `groups` say of each group and stream: messages, age of the oldest."""
    found = {}
    for row in rows:
        key = row["consumer_group"], row["stream"]
        waiting, oldest = found.get(key, (0, None))
        if row["oldest_at"] is not None:
            oldest = max(oldest or 0, row["lag_ms"])
        found[key] = waiting + row["waiting"], oldest
    return found


def test_what_was_consumed_at_activemq_ends_with_its_segment(tmp_path):
    bench = DiskBench(tmp_path, file_bytes_max=1 << 15)
    told = Streams(tmp_path, bench, bench.connect())
    for name in ("orders", "gone"):
        bench.broker.streams.declare(name, StreamSettings(1))
        told.send(name, 0, draft(1), draft(2))
    for segment in list(bench.store.streams.segments):
        for offset in (0, 1) if segment.name.stream == "gone" else (0,):
            told.take_out(segment, offset)
    bench.restart()
    bench.broker.streams.remove("gone")
    bench.settle()
    rows = asked("FROM partitions_report", tmp_path)
    told_of = [(row["stream"], row["first_offset"], row["messages"]) for row in rows]
    assert told_of == [("orders", 0, 1)]
