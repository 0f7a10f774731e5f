"""A directory with streams at ActiveMQ: it sees queues, and gives everything back."""

from collections.abc import Iterator
from pathlib import Path

import brokers
import pytest
from ports import free_port
from streams_kit import DiskBench, taken

from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.outputs import HalfStored, Locked
from lockkeeper.broker.streams.settings import StreamSettings
from lockkeeper.broker.streams.transactions import Outcome
from lockkeeper.client import connect
from lockkeeper.message.segments import SegmentName

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

FILE_BYTES = 65536
COUNT = 60
TAKEN = (3, 4, 59)
"""Offsets of what somebody consumes from a segment's queue at ActiveMQ."""
SEGMENT = SegmentName("orders", 1, 0).destination


@pytest.fixture
def activemq(tmp_path: Path) -> Iterator[brokers.RunningBroker]:
    reason = brokers.missing("activemq")
    if reason:
        pytest.skip(reason)
    fill(tmp_path / "kahadb")
    home, port = tmp_path / "home", free_port()
    command = brokers.activemq_command(home, port, tmp_path, FILE_BYTES, cleanup_ms=300)
    broker = brokers.RunningBroker("activemq", port, home, command, start_seconds_max=600)
    yield broker
    broker.kill()


def draft(partition: int, number: int) -> Draft:
    """Return one of the messages, alike on every side."""
    properties = {
        "TAGS": f"t{number % 3}",
        "KEYS": f"k{number}",
        "UNIQ_KEY": f"{partition}-{number}",
    }
    return Draft(f"{partition}-{number}".encode() * 50, properties, born_at=number, reconsumed=1)


def bench_on(directory: Path) -> DiskBench:
    """Return our broker's core on a directory."""
    return DiskBench(directory, file_bytes_max=FILE_BYTES)


def fill(directory: Path) -> None:
    """Have a stream with two partitions, a group with a lock, a half message, one for later."""
    directory.mkdir()
    bench = bench_on(directory)
    streams, client = bench.broker.streams, bench.connect()
    streams.declare("orders", StreamSettings(2))
    for number in range(COUNT):
        for partition in range(2):
            bench.append(client, "orders", draft(partition, number), partition=partition)
    bench.append(client, "orders", "later", delay_level=1)
    streams.commit_offset("billing", "orders", 0, 17)
    streams.groups.lock(client, "l", "billing", "me", [("orders", 1)])
    streams.begin_transaction(client, "h", "shop", "orders", 0, Draft(b"half"))
    bench.settle()
    locked, half = sorted(taken(client), key=lambda each: type(each) is HalfStored)
    assert type(locked) is Locked
    (directory / "half").write_text(str(half.number))
    bench.broker.streams.close()
    bench.store.close()


def check(directory: Path) -> None:
    """Look for everything in a directory that comes back."""
    bench = bench_on(directory)
    streams, client = bench.broker.streams, bench.connect()
    for partition, gone in ((0, ()), (1, TAKEN)):
        expected = [(n, draft(partition, n)) for n in range(COUNT) if n not in gone]
        records = bench.read(client, "orders", partition=partition, count=1000).records
        assert [(record.offset, record.draft) for record in records] == expected
    assert streams.queries.offsets("orders", 1) == (0, COUNT)
    found = streams.queries.find_key("orders", "1-7", 0, bench.now, 9)
    assert [(number, record.draft) for number, record in found] == [(1, draft(1, 7))]
    group = streams.groups.find("billing")
    assert group is not None
    assert group.offsets == {("orders", 0): 17}
    assert {place: lock.owner for place, lock in group.locks.items()} == {("orders", 1): "me"}
    assert streams.pending_transactions == 1
    number = int((directory / "half").read_text())
    streams.end_transaction(client, "e", number, Outcome.COMMIT)
    bench.tick(1_000)
    bench.tick()
    taken(client)
    read = bench.read(client, "orders", offset=COUNT)
    assert sorted(record.draft.body for record in read.records) == [b"half", b"later"]
    assert bench.append(client, "orders", "next", partition=1).offset == COUNT
    bench.store.close()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_streams_come_back_from_activemq(
    activemq: brokers.RunningBroker, tmp_path: Path, end: str
) -> None:
    with connect(activemq.url) as connection:
        session = connection.session()
        shown = [message.body for message in session.browse(SEGMENT.name)]
        assert shown == [draft(1, number).body for number in range(COUNT)]
        first = next(iter(session.browse(SEGMENT.name)))
        assert first.properties["TAGS"] == "t0"
        consumer = session.consumer(SEGMENT.name, selector=f"KEYS IN {selected()}")
        received = [consumer.receive(timeout=20) for _ in TAKEN]
        assert [one.body for one in received if one] == [draft(1, n).body for n in TAKEN]
        consumer.close()
        # Data files come and go meanwhile.
        for _ in range(4):
            session.producer("OTHER").send_many(["x" * 1000] * 100)
            other = session.consumer("OTHER")
            for _ in range(100):
                assert other.receive(timeout=20) is not None
            other.close()
    getattr(activemq, end)()
    check(tmp_path / "kahadb")


def selected() -> str:
    """Return the keys of what is consumed, for a selector."""
    return "(" + ", ".join(f"'k{number}'" for number in TAKEN) + ")"
