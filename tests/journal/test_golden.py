"""Journals that real ActiveMQ wrote: read, compared with an independent reader, rebuilt."""

import json
from pathlib import Path
from typing import Any

import pytest

from lockkeeper.journal.batch import EOF_OLD, EOF_RECORD, EOF_SIZE, build_batch
from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.records import (
    AckFileMap,
    AddMessage,
    Commit,
    Prepare,
    ProducerAudit,
    Record,
    RemoveMessage,
    Rollback,
    Subscription,
    Trace,
)
from lockkeeper.journal.scan import FileScan, record_offsets, scan_file
from lockkeeper.journal.walk import walk_batch

GOLDEN = Path(__file__).parents[1] / "golden" / "kahadb"
DIRECTORIES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
LISTED = [name for name in DIRECTORIES if name.startswith("amq-")]
COMMANDS = {
    "trace": Trace,
    "add": AddMessage,
    "remove": RemoveMessage,
    "prepare": Prepare,
    "commit": Commit,
    "rollback": Rollback,
    "sub": Subscription,
    "audit": ProducerAudit,
    "ackmap": AckFileMap,
}


def read_all(directory: str) -> list[tuple[str, bytes, FileScan]]:
    """Return (file name, data, scan) of every data file of a golden *directory*."""
    files = list_data_files(GOLDEN / directory)
    contents = [(file.path.name, file.path.read_bytes()) for file in files]
    return [(name, data, scan_file(data, name)) for name, data in contents]


def described(record: Record) -> dict[str, Any]:
    """Return the fields of *record* in the words of the independent reader's listing."""
    fields: dict[str, Any] = {}
    if destination := getattr(record, "destination", None):
        kind = destination.kind.name.lower()
        fields["destination"] = {"type": kind, "name": destination.name}
    for attribute, name in (("message_id", "messageId"), ("subscription_key", "subscriptionKey")):
        if getattr(record, attribute, None) is not None:
            fields[name] = getattr(record, attribute)
    match record:
        case Trace(message):
            fields["message"] = message
        case AddMessage():
            fields |= {"message": len(record.message), "priority": record.priority}
            fields["prioritySupported"] = int(record.priority_supported or 0)
        case RemoveMessage(ack=ack) if ack is not None:
            fields["ack"] = len(ack)
        case Subscription(info=info) if info is not None:
            fields |= {"retroactive": int(record.retroactive or 0), "subscriptionInfo": len(info)}
        case ProducerAudit(audit):
            fields["audit"] = len(audit)
        case AckFileMap(ack_file_map):
            fields["ackMessageFileMap"] = len(ack_file_map)
    transaction = getattr(record, "transaction", None)
    if transaction is not None and hasattr(transaction, "connection_id"):
        local = {"connection_id": transaction.connection_id, "transaction_id": transaction.value}
        fields["transaction_info"] = {"local": local}
    elif transaction is not None:
        fields["transaction_info"] = {
            "xa": {
                "format_id": transaction.format_id,
                "branch_qualifier": transaction.branch_qualifier.hex(),
                "global_transaction_id": transaction.global_transaction_id.hex(),
            }
        }
    return fields


def lengths(fields: dict[str, Any]) -> dict[str, Any]:
    """Replace the listing's decoded frames by their lengths."""
    names = {"frame_len", "java_serialized_len"}
    return {
        name: next((value[key] for key in names if isinstance(value, dict) and key in value), value)
        for name, value in fields.items()
    }


@pytest.mark.parametrize("directory", LISTED)
def test_every_batch_and_record_is_what_the_independent_reader_listed(directory: str) -> None:
    found: list[tuple[object, ...]] = []
    for name, data, scan in read_all(directory):
        assert scan.problem is None
        for batch in scan.batches:
            length = batch.end - batch.start
            found.append((name, batch.offset, length, batch.checksum, None, None))
            for offset, size in record_offsets(data, batch, name):
                record = decode_record(data, offset, name)
                found.append((name, offset, size, 0, type(record), described(record)))
        found.append((name, scan.end, 0, 0, None, None))
    expected = []
    for line in (GOLDEN / f"{directory}.records.jsonl").read_text().splitlines():
        row = json.loads(line)
        command = COMMANDS.get(row.get("command"))
        length, fields = row.get("length", row.get("size", 0)), row.get("fields")
        fields = lengths(fields) if fields is not None else None
        expected.append(
            (row["file"], row["offset"], length, row.get("adler32", 0), command, fields)
        )
    assert found == expected


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_every_record_encodes_to_the_bytes_it_was_read_from(directory: str) -> None:
    count = 0
    for name, data, scan in read_all(directory):
        for batch in scan.batches:
            for offset, size in record_offsets(data, batch, name):
                record = decode_record(data, offset, name)
                assert encode_record(record) == data[offset : offset + size]
                count += 1
    assert count >= 12


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_every_file_is_rebuilt_batch_by_batch(directory: str) -> None:
    for name, data, scan in read_all(directory):
        rebuilt = bytearray(data[scan.end :])
        whole = bytearray()
        for batch in scan.batches:
            records = [decode_record(data, at, name) for at, _ in record_offsets(data, batch)]
            written = build_batch(b"".join(map(encode_record, records)))
            if batch.checksum == 0:
                written = written[:20] + bytes(8) + written[28:]
            del whole[batch.offset :]
            whole += written
        if scan.batches:
            assert rebuilt[:EOF_SIZE] == EOF_RECORD
            assert whole + rebuilt[EOF_SIZE:] == data


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_the_quick_walk_agrees_with_the_full_decoder(directory: str) -> None:
    for name, data, scan in read_all(directory):
        for batch in scan.batches:
            walked = walk_batch(data, batch.start, batch.end, name)
            assert [row[1:3] for row in walked] == list(record_offsets(data, batch))
            for row in walked:
                record = decode_record(data, row[1], name)
                if isinstance(record, AddMessage | RemoveMessage):
                    assert row[4].decode() == record.message_id
                    value = data[row[5] : row[5] + row[6]]
                    assert value == (
                        record.message if isinstance(record, AddMessage) else record.ack or b""
                    )
                    assert (row[7] is None) == (record.transaction is None)


@pytest.mark.parametrize(
    ("mode", "checksums"),
    [
        ("none", True),
        ("sparse", True),
        ("zeros", True),
        ("chunked", True),
        ("async", True),
        ("nochecksum", False),
    ],
)
def test_a_preallocated_file_ends_at_its_first_end_record(mode: str, checksums: bool) -> None:
    scans = [scan for _, _, scan in read_all(f"prealloc-{mode}")]
    assert all(scan.problem is None for scan in scans)
    assert all(bool(batch.checksum) is checksums for scan in scans for batch in scan.batches)
    adds = 0
    for name, data, scan in read_all(f"prealloc-{mode}"):
        for batch in scan.batches:
            adds += sum(row[0] == 1 for row in walk_batch(data, batch.start, batch.end, name))
    assert adds == 8


def test_a_file_that_was_only_prepared_holds_nothing() -> None:
    name, _data, scan = read_all("prealloc-async")[-1]
    assert (name, scan.batches, scan.end, scan.problem) == ("db-2.log", [], 0, None)


def test_zeros_in_place_of_a_batch_end_the_file() -> None:
    batch = build_batch(encode_record(Trace("x")))
    for behind in (b"", bytes(100), bytes(100) + EOF_RECORD):
        scan = scan_file(batch[:-EOF_SIZE] + EOF_OLD + behind, "db-1.log")
        assert (len(scan.batches), scan.problem) == (1, None)


def test_zeros_with_anything_behind_them_are_a_torn_tail() -> None:
    batch = build_batch(encode_record(Trace("x")))
    scan = scan_file(batch[:-EOF_SIZE] + EOF_OLD + b"anything", "db-1.log")
    assert (len(scan.batches), scan.end, scan.is_torn) == (1, len(batch) - EOF_SIZE, True)
