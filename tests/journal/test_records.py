"""Every command goes to bytes and back; what cannot be read says why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockkeeper.journal import records
from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.encode import encode_record, wrap_command
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.protobuf import bytes_field, number_field
from lockkeeper.journal.schema import SCHEMAS
from lockkeeper.message.destination import Destination, Kind, queue
from lockkeeper.message.ids import LocalTransactionId, XATransactionId

text = st.text(max_size=200)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
blob = st.binary(max_size=300)
destinations = st.builds(Destination, st.sampled_from(Kind), text)
transactions = st.one_of(
    st.builds(LocalTransactionId, text, int64), st.builds(XATransactionId, int32, blob, blob)
)
adds = st.builds(
    records.AddMessage,
    destinations,
    text,
    blob,
    int32,
    st.booleans(),
    st.none() | transactions,
)
removes = st.builds(
    records.RemoveMessage,
    destinations,
    text,
    st.none() | blob,
    st.none() | text,
    st.none() | transactions,
)
anything = st.one_of(
    adds,
    removes,
    st.builds(records.Trace, text),
    st.builds(records.Prepare, transactions),
    st.builds(records.Commit, transactions),
    st.builds(records.Rollback, transactions),
    st.builds(records.RemoveDestination, destinations),
    st.builds(
        records.Subscription, destinations, text, st.none() | st.booleans(), st.none() | blob
    ),
    st.builds(records.ProducerAudit, blob),
    st.builds(records.AckFileMap, blob),
    st.builds(records.UpdateMessage, adds),
    st.builds(records.AddScheduledJob, text, text, int64, text, int64, int64, int32, blob, int64),
    st.builds(records.RescheduleJob, text, text, int64, int64, int32),
    st.builds(records.RemoveScheduledJob, text, text, int64),
    st.builds(records.RemoveScheduledJobs, text, int64, int64),
    st.builds(records.DestroyScheduler, text),
    st.builds(records.RewrittenDataFile, int32, int32, st.booleans()),
)


@given(anything)
def test_every_record_reads_back_as_written(record: records.Record) -> None:
    encoded = encode_record(record)
    assert decode_record(encoded) == record
    assert int.from_bytes(encoded[:4], "big") == len(encoded)


def test_the_table_knows_the_commands_0_to_16() -> None:
    assert [schema.command for schema in SCHEMAS] == list(range(17))


@given(anything, st.data())
def test_a_cut_or_changed_record_never_raises_anything_but_a_bad_record(
    record: records.Record, data: st.DataObject
) -> None:
    encoded = bytearray(encode_record(record))
    position = data.draw(st.integers(0, len(encoded) - 1))
    encoded[position] = data.draw(st.integers(0, 255))
    try:
        decode_record(bytes(encoded), 0, "db-1.log")
    except BadRecordError as error:
        assert "db-1.log: bad record at offset 0" in str(error)


def test_a_local_transaction_uses_field_number_one_twice() -> None:
    encoded = encode_record(records.Commit(LocalTransactionId("ID:a", 5)))
    assert encoded.endswith(b"\x0a\x0a\x0a\x08\x0a\x04ID:a\x08\x05"[2:])


def test_the_branch_of_an_xa_transaction_comes_before_its_global_id() -> None:
    encoded = encode_record(records.Prepare(XATransactionId(7, b"global", b"branch")))
    assert encoded.endswith(b"\x08\x07\x12\x06branch\x1a\x06global")


def test_a_negative_number_takes_ten_bytes() -> None:
    encoded = encode_record(records.Rollback(XATransactionId(-1, b"", b"")))
    assert b"\x08" + b"\xff" * 9 + b"\x01" in encoded


def test_an_absent_priority_is_four_and_unknown_fields_are_skipped() -> None:
    destination = bytes_field(2, number_field(1, 0) + bytes_field(2, b"A"))
    message = destination + bytes_field(3, b"ID:1") + bytes_field(4, b"frame")
    message += number_field(77, 12) + b"\xfd\x04" + bytes(4) + b"\xf9\x04" + bytes(8)
    expected = records.AddMessage(queue("A"), "ID:1", b"frame", 4, False)
    assert decode_record(wrap_command(1, message)) == expected


DESTINATION = bytes_field(1, number_field(1, 0) + bytes_field(2, b"A"))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (wrap_command(42, b""), "command type 42 is unknown"),
        (wrap_command(6, b""), "RemoveDestination lacks destination"),
        (wrap_command(6, bytes_field(1, number_field(1, 9))), "destination has kind 9"),
        (wrap_command(0, bytes_field(1, b"\xff\xfe")), "message is not UTF-8"),
        (wrap_command(4, bytes_field(1, b"")), "names no transaction"),
        (wrap_command(4, bytes_field(1, bytes_field(1, b""))), "lacks its connection"),
        (wrap_command(4, bytes_field(1, bytes_field(2, b""))), "lacks its format"),
        (wrap_command(6, DESTINATION[:-1]), "passes the end"),
        (wrap_command(6, b"\x0b"), "wire type 3"),
        (wrap_command(6, b"\xff" * 11), "varint does not end"),
        (b"\0\0\0\x09\x02" + bytes(4), "kind is 2"),
        (b"\0\0\0\x09\x01\x06\x05ab", "does not fill"),
        (b"\0\0\0\xff\x01\x06\x00", "size 255 does not fit"),
    ],
)
def test_a_bad_record_says_what_is_wrong_where(record: bytes, reason: str) -> None:
    with pytest.raises(BadRecordError, match=reason) as caught:
        decode_record(b"xyz" + record, 3, "db-9.log")
    assert (caught.value.file_name, caught.value.offset) == ("db-9.log", 3)
