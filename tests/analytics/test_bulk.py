"""Records read all at once give the rows that records read one by one give."""

import random
from functools import partial

import pytest
from journal_maker import ORDERS, JournalMaker, rows_of, transaction

from lockkeeper.journal.errors import BadRecordError, CorruptBatchError
from lockkeeper.journal.records import (
    AddMessage,
    RemoveDestination,
    RemoveMessage,
    Trace,
)
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import LocalTransactionId, XATransactionId
from lockkeeper_analytics.reading import frames, records, rowset
from lockkeeper_analytics.reading import located as locating
from lockkeeper_analytics.reading import rows as reading
from lockkeeper_analytics.reading.batches import read_chunks
from lockkeeper_analytics.reading.bulk import bulk_of
from lockkeeper_analytics.reading.bulk_frames import BulkFrames

PLACES = (ORDERS, queue("ORDERS.EU"), topic("NEWS"), queue("ä" * 20))
OPTIONS = (
    {},
    {"destination": "ORDERS"},
    {"destination": "topic://>"},
    {"since": "1795000000400"},
    {"until": "1795000000400", "destination": "ORDERS.EU,NEWS"},
    {"columns": "written_before"},
    {"columns": "kind,transaction,subscription", "body": "true"},
)


def one_by_one(directory, monkeypatch, **options):
    with monkeypatch.context() as patch:
        patch.setattr(locating, "bulk_of", lambda data, batches: None)
        return rows_of(directory, **options)


def test_messages_of_transactions_are_plain_ones(tmp_path, monkeypatch):
    maker = JournalMaker(tmp_path / "journal").add(1, 1)
    several = [transaction(1), transaction(2**40), XATransactionId(7, b"global", b"branch" * 9)]
    for number, tx in enumerate(several):
        maker.add(number, number + 1, PLACES[number], tx, redelivery_counter=number)
    maker.flush()
    (chunk,) = read_chunks(maker.path)
    bulk = bulk_of(chunk.data, chunk.batches)
    assert BulkFrames(bulk).is_plain.tolist() == [True] * 4
    assert rows_of(maker.directory) == one_by_one(maker.directory, monkeypatch)


@pytest.mark.parametrize("connection", ["", "ID:a", "ä" * 20, "c" * 110, "c" * 130])
@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**40, 2**62, -1])
def test_ids_of_transactions_are_what_the_journal_decodes(
    tmp_path, monkeypatch, connection, number
):
    tx = LocalTransactionId(connection, number)
    JournalMaker(tmp_path).add(1, 1, tx=tx).commit(tx).rollback(tx).flush()
    found = rows_of(tmp_path, columns="kind,transaction,offset,record_bytes")
    assert [(row["kind"], row["transaction"]) for row in found] == [
        (kind, str(tx)) for kind in ("add", "commit", "rollback")
    ]
    monkeypatch.setattr(rowset, "_local_text", lambda encoded: "")
    monkeypatch.setattr(records, "_is_straight", lambda *asked: False)
    assert rows_of(tmp_path, columns="kind,transaction,offset,record_bytes") == found


@pytest.mark.parametrize("seed", range(60))
def test_damaged_ids_of_transactions_are_told_as_before(tmp_path, monkeypatch, seed):
    chance = random.Random(seed)
    maker = JournalMaker(tmp_path).commit(LocalTransactionId("ID:maker-1", 300))
    damaged = bytearray(maker.waiting[0])
    damaged[chance.randrange(6, len(damaged))] = chance.randrange(256)
    maker.waiting[0] = bytes(damaged)
    maker.flush()

    def told():
        try:
            return rows_of(tmp_path, columns="kind,transaction")
        except BadRecordError as error:
            return str(error)

    found = told()
    monkeypatch.setattr(rowset, "_local_text", lambda encoded: "")
    monkeypatch.setattr(records, "_is_straight", lambda *asked: False)
    assert told() == found


def test_a_message_is_decoded_in_full_once(tmp_path, monkeypatch):
    maker = JournalMaker(tmp_path / "journal")
    for number in range(4):
        maker.add(number, 1, original_destination=ORDERS, group_id="g", user_id="u")
    maker.flush()
    expected, decoded = rows_of(maker.directory), []
    whole = frames.decode_message
    monkeypatch.setattr(
        frames, "decode_message", lambda *asked: decoded.append(asked[1]) or whole(*asked)
    )
    assert rows_of(maker.directory) == expected
    assert len(decoded) == len(set(decoded)) == 4


def random_journal(directory, chance):
    maker = JournalMaker(directory)
    at = 0
    for number in range(200):
        at += chance.choice((0, 1, 7, 40, 200))
        place, tx = chance.choice(PLACES), transaction(number) if chance.random() < 0.2 else None
        match chance.randrange(9):
            case 0 | 1 | 2:
                size = chance.choice((0, 100, 20_000))
                fields = {"properties": {"x": "y" * size}} if size else {}
                maker.add(number, at, place, tx, **fields)
            case 3 | 4:
                maker.remove(number, place, tx, chance.choice((None, "client:sub")))
            case 5:
                maker.clock(at)
            case 6:
                maker.commit(transaction(number))
            case 7:
                maker.line("event", at, event=chance.choice(("start", "stop", "slowConsumer")))
            case 8:
                maker.record(Trace(chance.choice(("LOADED 1", "lk1 {", "lk1 []", ""))))
        if chance.random() < 0.4 and maker.waiting:
            maker.flush()
        if chance.random() < 0.03 and maker.path.exists() and not maker.waiting:
            maker.roll()
    if maker.waiting:
        maker.flush()


@pytest.mark.parametrize("seed", range(12))
def test_random_journals(tmp_path, monkeypatch, seed):
    random_journal(tmp_path / "journal", random.Random(seed))
    chunks = [chunk for path in (tmp_path / "journal").iterdir() for chunk in read_chunks(path)]
    assert all(bulk_of(chunk.data, chunk.batches) for chunk in chunks)
    for options in OPTIONS:
        expected = one_by_one(tmp_path / "journal", monkeypatch, **options)
        assert rows_of(tmp_path / "journal", **options) == expected, options
    assert expected


@pytest.mark.parametrize("name", ["amq-5.17.2-crash", "amq-6.1.7-clean", "prealloc-async"])
def test_journals_of_activemq(golden, monkeypatch, name):
    for options in OPTIONS[:3]:
        assert rows_of(golden / name, **options) == one_by_one(
            golden / name, monkeypatch, **options
        )


def test_small_chunks(golden, monkeypatch):
    directory = golden / "amq-5.17.2-crash"
    expected = one_by_one(directory, monkeypatch)
    whole = reading.read_chunks
    monkeypatch.setattr(reading, "read_chunks", partial(whole, chunk_bytes=3000))
    assert rows_of(directory) == expected


@pytest.mark.parametrize(
    "record",
    [
        RemoveDestination(ORDERS),
        AddMessage(ORDERS, "x" * 200, b"\0\0\0\x30" + b"\x1c" + bytes(47)),
        AddMessage(ORDERS, "ID:1", b"\0\0\0\x01\x1c"),
        AddMessage(queue("Q" * 200), "ID:1", b"\0\0\0\x30" + b"\x1c" + bytes(47)),
        RemoveMessage(ORDERS, "ID:1", None, "k" * 300),
    ],
)
def test_what_is_laid_out_otherwise_is_read_one_by_one(tmp_path, record):
    maker = JournalMaker(tmp_path / "journal").add(1, 1).record(record).remove(1).flush()
    (chunk,) = read_chunks(maker.path)
    assert bulk_of(chunk.data, chunk.batches) is None
    rows = rows_of(maker.directory, columns="kind,destination,message_id")
    assert len(rows) == 3 and rows[0]["destination"] == rows[2]["destination"] == "ORDERS"


@pytest.mark.parametrize("seed", range(30))
def test_damaged_records_are_told_as_before(tmp_path, monkeypatch, seed):
    chance = random.Random(seed)
    maker = JournalMaker(tmp_path / "journal").add(1, 1).add(2, 2).remove(1, subscription="a:b")
    inside = [bytearray(each) for each in maker.waiting]
    for each in inside:
        each[chance.randrange(len(each))] = chance.randrange(256)
    maker.waiting[:] = map(bytes, inside)
    maker.flush()

    def told(read):
        try:
            return read(maker.directory, columns="offset,kind,destination,message_id,message_bytes")
        except (BadRecordError, CorruptBatchError, UnicodeDecodeError) as error:
            return str(error)

    assert told(rows_of) == told(lambda place, **rest: one_by_one(place, monkeypatch, **rest))
