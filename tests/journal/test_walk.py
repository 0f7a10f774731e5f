"""The recovery walk and the hot path's encoders agree with the full codec."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockkeeper.journal.encode import (
    encode_destination,
    encode_record,
    encode_transaction,
    wrap_command,
)
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.protobuf import bytes_field, number_field
from lockkeeper.journal.records import AddMessage, Commit, RemoveMessage, Trace
from lockkeeper.journal.splice import (
    add_frame,
    add_tail,
    destination_field,
    remove_lead,
    transaction_field,
)
from lockkeeper.journal.walk import walk_batch
from lockkeeper.message.destination import Destination, Kind
from lockkeeper.message.ids import LocalTransactionId, XATransactionId

names = st.text(min_size=1, max_size=150)
destinations = st.builds(Destination, st.sampled_from(Kind), names)
transactions = st.none() | st.one_of(
    st.builds(LocalTransactionId, names, st.integers(0, 2**40)),
    st.builds(XATransactionId, st.integers(-5, 500), st.binary(max_size=64), st.binary(max_size=9)),
)
frames = st.binary(max_size=40) | st.sampled_from([0, 90, 127, 128, 16300, 16384, 70000]).map(bytes)
adds = st.builds(
    AddMessage, destinations, names, frames, st.integers(0, 9), st.booleans(), transactions
)
removes = st.builds(
    RemoveMessage, destinations, names, st.none() | frames, st.none() | names, transactions
)


@given(st.lists(adds | removes | st.builds(Trace, names), max_size=8))
def test_the_walk_gives_what_the_records_say(
    written: list[AddMessage | RemoveMessage | Trace],
) -> None:
    data = b"prefix" + b"".join(map(encode_record, written)) + b"suffix"
    walked = walk_batch(data, 6, len(data) - 6)
    assert len(walked) == len(written)
    for row, record in zip(walked, written, strict=True):
        command, offset, size, destination, message_id, at, length, transaction, key, priority = row
        assert data[offset : offset + size] == encode_record(record)
        if isinstance(record, Trace):
            assert (command, destination, at, length) == (0, b"", offset + 5, size - 5)
            continue
        assert destination == encode_destination(record.destination)
        assert message_id == record.message_id.encode()
        expected = encode_transaction(record.transaction) if record.transaction else None
        assert transaction == expected
        if isinstance(record, AddMessage):
            assert data[at : at + length] == record.message
            assert (command, key) == (1, None)
            assert priority == (record.priority if record.priority_supported else 4)
        else:
            assert (data[at : at + length] if at else None) == record.ack
            assert key == (record.subscription_key and record.subscription_key.encode())
            assert (command, priority) == (2, 0)


@given(adds)
def test_the_pieces_around_id_and_body_are_the_whole_add_record(record: AddMessage) -> None:
    body = record.message
    transaction = transaction_field(record.transaction) if record.transaction else b""
    key = record.message_id.encode()
    destination = destination_field(record.destination)
    before, after = add_frame(destination, len(key), len(body), transaction)
    tail = add_tail(record.priority, record.priority_supported)
    framed = replace(record, message=len(body).to_bytes(4, "big") + body)
    assert before + key + after + body + tail == encode_record(framed)


@given(removes)
def test_a_spliced_remove_is_the_whole_record(record: RemoveMessage) -> None:
    key, subscription = record.message_id.encode(), record.subscription_key
    rest = b"" if record.ack is None else bytes_field(4, record.ack)
    rest += b"" if subscription is None else bytes_field(5, subscription.encode())
    lead = remove_lead(
        destination_field(record.destination),
        len(key),
        len(rest),
        transaction_field(record.transaction) if record.transaction else b"",
    )
    assert lead + key + rest == encode_record(record)


def test_fields_in_another_order_are_read_too() -> None:
    destination = encode_destination(Destination(Kind.TOPIC, "T"))
    message = bytes_field(4, b"frame") + number_field(6, 1) + number_field(5, 7)
    message += bytes_field(3, b"ID:1") + bytes_field(2, destination) + number_field(99, 1)
    data = wrap_command(1, message)
    row = walk_batch(data, 0, len(data))[0]
    assert row[3:5] == (destination, b"ID:1")
    assert data[row[5] : row[5] + row[6]] == b"frame"
    assert row[7:] == (None, None, 7)


def test_records_in_a_row_share_the_bytes_of_their_destination() -> None:
    here, there = Destination(Kind.QUEUE, "HERE"), Destination(Kind.QUEUE, "THERE")
    ids = ["1", "2", "10", "11"]
    written = [AddMessage(here, text, b"") for text in ids] + [AddMessage(there, "3", b"")]
    data = b"".join(map(encode_record, written))
    rows = walk_batch(data, 0, len(data))
    assert all(row[3] is rows[0][3] for row in rows[:4])
    assert rows[4][3] == encode_destination(there)


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\0\x07\x01\x01",
        b"\0\0\0\x09\x01\x01\x00",
        b"\0\0\0\x07\x02\x01\x00",
        b"\0\0\0\x00\x01\x01\x00",
        b"\xff\xff\xff\xff\x01\x01\x00",
        wrap_command(1, b""),
        wrap_command(2, bytes_field(3, b"ID:1")),
        wrap_command(1, encode_record(Commit(LocalTransactionId("a", 1)))),
    ],
)
def test_a_record_that_does_not_fit_is_named_with_file_and_offset(data: bytes) -> None:
    sound = encode_record(Trace("x"))
    with pytest.raises(BadRecordError, match=rf"db-3.log: bad record at offset {len(sound)}"):
        walk_batch(sound + data, 0, len(sound + data), "db-3.log")


@given(st.lists(adds | removes, min_size=1, max_size=3), st.data())
def test_changed_bytes_never_lead_the_walk_astray(
    written: list[AddMessage | RemoveMessage], data: st.DataObject
) -> None:
    changed = bytearray(b"".join(map(encode_record, written)))
    position = data.draw(st.integers(0, len(changed) - 1))
    changed[position] = data.draw(st.integers(0, 255))
    try:
        rows = walk_batch(bytes(changed), 0, len(changed))
    except BadRecordError:
        return
    assert sum(row[2] for row in rows) == len(changed)
    for _command, offset, size, _destination, _id, at, length, *_rest in rows:
        assert at == 0 or offset < at <= at + length <= offset + size
