"""Bytes of records that are damaged under right checksums: errors name the place, or are passed."""

import re
import shutil
import struct
from random import Random
from zlib import adler32

import pytest
from journal_maker import JournalMaker, rows_of, transaction
from random_journal import RandomStory, framed
from test_bulk import one_by_one

from lockkeeper.journal.batch import CONTROL, CONTROL_SIZE
from lockkeeper.journal.errors import BadRecordError, JournalError
from lockkeeper.journal.records import Subscription, Trace
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.openwire import SubscriptionInfo
from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.reading.batches import read_chunks
from lockkeeper_analytics.sql.query import run

COLUMNS = ("kind", "destination", "transaction", "retroactive", "kind,properties,selector,ack_type")


def batches(path):
    """Return where the insides of the batches of the file at *path* are, and their lengths."""
    return [
        (chunk.base + start, end - start)
        for chunk in read_chunks(path)
        for start, end in chunk.batches
    ]


def change(path, start, size, changes):
    """Put other bytes at places of a batch, and mend its checksum."""
    data = bytearray(path.read_bytes())
    for at, octet in changes.items():
        data[at] = octet
    checksum = adler32(bytes(data[start : start + size]))
    data[start - 8 : start] = struct.pack(">q", checksum)
    assert CONTROL.unpack_from(data, start - CONTROL_SIZE)[1:] == (size, checksum)
    path.write_bytes(data)


@pytest.fixture
def maker(tmp_path):
    maker = JournalMaker(tmp_path / "journal").add(1, 0).flush()
    maker.add(2, 1, queue("BAD"), tx=transaction(1)).flush()
    return maker.add(3, 2).commit(transaction(2)).flush()


@pytest.mark.parametrize(
    ("batch", "text", "columns", "left"),
    [
        (1, b"BAD", "destination", [1, 3, None]),
        (1, b"ID:maker", "transaction", [1, 3, None]),
        (2, b"ID:maker-1:1\x08\x02", "transaction", [1, 2, 3]),
    ],
)
@pytest.mark.parametrize("is_bulk", [True, False])
def test_destinations_and_transactions_that_are_none(
    maker, monkeypatch, batch, text, columns, left, is_bulk
):
    start, size = batches(maker.path)[batch]
    at = maker.path.read_bytes().index(text, start)
    change(maker.path, start, size, {at + len(text) - 1: 0xFF, at: 0xFF})

    def read(**options):
        if is_bulk:
            return rows_of(maker.directory, **options)
        return one_by_one(maker.directory, monkeypatch, **options)

    place = re.escape(str(maker.path))
    with pytest.raises(BadRecordError, match=f"^{place}: bad record at offset ") as raised:
        read(columns=columns)
    assert start <= raised.value.offset < at < start + size
    if columns == "destination":
        with pytest.raises(BadRecordError, match=f"^{place}: bad record at offset "):
            read(columns="kind", destination="NOBODY")
    for asked in ({}, {"columns": "message_id"}, {"columns": f"message_id,{columns}"}):
        rows = read(corrupt="skip", **asked)
        ids = [row["message_id"] and int(row["message_id"].rpartition(":")[2]) for row in rows]
        assert ids == left


def test_subscriptions_are_passed_over_like_messages(maker):
    info = SubscriptionInfo(client_id="ann", destination=topic("T"), subscription_name="s")
    maker.record(Subscription(topic("T"), "ann:s", True, framed(info))).flush()
    start, size = batches(maker.path)[3]
    data = maker.path.read_bytes()
    change(maker.path, start, size, {data.index(b"\x01T", start) + 1: 0xFF})
    with pytest.raises(BadRecordError, match=r"/db-1\.log: bad record at offset \d+: destination"):
        rows_of(maker.directory)
    assert len(rows_of(maker.directory, corrupt="skip")) == 4


def test_queries_pass_over_what_is_damaged(maker):
    start, size = batches(maker.path)[1]
    at = maker.path.read_bytes().index(b"BAD", start)
    change(maker.path, start, size, {at: 0xFF})
    query, path = "select destination from messages order by all", str(maker.directory)
    with pytest.raises(AnalyticsError, match=rf"{re.escape(path)}/db-1\.log: bad record at offset"):
        list(run(query, {"path": path}))
    found = [
        row for batch in run(query, {"path": path, "corrupt": "skip"}) for row in batch.to_pylist()
    ]
    assert found == [{"destination": "ORDERS"}] * 2


def test_clock_lines_with_impossible_times_tell_none(maker):
    for at in ("1" * 30, "-5", "true", "[" * 100_000):
        maker.record(Trace(f'lk1 {{"t":"clock","at":{at}}}'))
    maker.flush()
    assert rows_of(maker.directory, columns="written_after")


@pytest.mark.parametrize("seed", range(40))
def test_any_damage_is_named_or_passed_over(tmp_path, golden, seed):
    chance = Random(seed)
    directory = tmp_path / "journal"
    if chance.random() < 0.5:
        RandomStory(directory, chance, 5).write(60)
    else:
        directory.mkdir()
        of = golden / chance.choice(["amq-5.17.2-crash", "amq-6.1.7-clean"])
        path = chance.choice(sorted(of.glob("db-*.log")))
        shutil.copyfile(path, directory / path.name)
    path = chance.choice(sorted(directory.glob("db-*.log")))
    for _ in range(chance.choice((1, 1, 3))):
        start, size = chance.choice(batches(path))
        at = start + chance.randrange(size)
        octet = chance.choice((0, 255, path.read_bytes()[at] ^ 1 << chance.randrange(8)))
        change(path, start, size, {at: octet})
    for columns in COLUMNS:
        try:
            rows_of(directory, columns=columns)
        except JournalError as error:
            assert re.match(
                rf"{re.escape(str(directory))}/db-\d+\.log: .*at offset \d+: ", str(error)
            )
    told = [
        [row["kind"] for row in rows_of(directory, columns=f"kind,{each}", corrupt="skip")]
        for each in COLUMNS
    ]
    assert told == [told[0]] * len(COLUMNS)
    rows_of(directory, body="true", corrupt="skip")
    rows_of(directory, table="messages", corrupt="skip")
