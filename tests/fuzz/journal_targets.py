"""Targets: data files of a journal, and directories that hold them."""

import shutil
from contextlib import suppress
from pathlib import Path
from random import Random

from fuzzer import Target, WrongError, new_directory
from mutations import mutated
from recordings import journal_files, journal_records
from session_targets import World

from lockkeeper.journal.batch import EOF_RECORD, build_batch
from lockkeeper.journal.damage import fragments, inspect_file, sound_pieces
from lockkeeper.journal.decode import decode_destination, decode_record, decode_transaction
from lockkeeper.journal.errors import JournalError
from lockkeeper.journal.files import data_file_name
from lockkeeper.journal.records import PRIORITY_DEFAULT, AddMessage, RemoveMessage
from lockkeeper.journal.recount import recount_directory
from lockkeeper.journal.scan import Batch, record_offsets, scan_file
from lockkeeper.journal.verify import read_records, verify_directory
from lockkeeper.journal.walk import ADD, REMOVE, QuickRecord, walk_batch
from lockkeeper.store.base import StoreError
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.recovery import replay_directory

FILES_MAX = 3


def targets() -> list[Target]:
    """Return all of this theme."""
    return [
        Target("records", _record, _read_record, (JournalError,), 4),
        Target("files", _file, _read_file, (), 0.6),
        Target("directories", _files, _read_directory, (StoreError, JournalError), 0.2, seconds=3),
        Target("recoveries", _files, _recover, (), 0.03, seconds=5),
    ]


def _record(chance: Random) -> bytes:
    """Return records in a row, one of them changed, most of them with sizes that fit."""
    known = journal_records()
    chosen = [chance.choice(known) for _ in range(chance.randint(1, 4))]
    at = chance.randrange(len(chosen))
    changed = mutated(chance, [chosen[at]], changes=3)
    if chance.random() < 0.8 and len(changed) >= 5:
        changed = len(changed).to_bytes(4, "big") + b"\1" + changed[5:]
    if chance.random() < 0.7 and len(changed) > 7:
        changed = _with_length(changed)
    chosen[at] = changed
    return b"".join(chosen)


def _with_length(record: bytes) -> bytes:
    """Put the right length before the fields of a record whose length took one byte or two."""
    body = record[7:] if record[6] < 128 else record[8:]
    length, out = len(body), b""
    while length > 127:
        out, length = out + bytes([length & 127 | 128]), length >> 7
    fields = record[5:6] + out + bytes([length]) + body
    return (len(fields) + 5).to_bytes(4, "big") + b"\1" + fields


def _read_record(data: bytes) -> None:
    """Read records one by one, and as recovery does: who reads, reads the same."""
    for offset in range(1, min(len(data), 64), 7):
        with suppress(JournalError):
            decode_record(data, offset, "db-1.log")
    batch = Batch(0, 0, len(data), 0)
    try:
        rows = walk_batch(data, 0, len(data), "db-1.log")
    except JournalError:
        if all(_is_record(data[at : at + size]) for at, size in record_offsets(data, batch)):
            raise WrongError("recovery refuses what can be read") from None
        raise
    for row in rows:
        # Recovery reads less of a record, so it may take what cannot be read in whole.
        if row[0] in (ADD, REMOVE) and _is_record(data[row[1] : row[1] + row[2]]):
            _compare(data, row)


def _is_record(data: bytes) -> bool:
    try:
        decode_record(data)
    except JournalError:
        return False
    return True


def _compare(data: bytes, row: QuickRecord) -> None:
    """Compare what recovery reads of an add or a remove with what is there."""
    _, offset, _, destination, name, at, length, transaction, key, priority = row
    record = decode_record(data, offset)
    value = data[at : at + length] if at else None
    found: tuple[object, ...] = (
        decode_destination(destination),
        name.decode(),
        value,
        None if transaction is None else decode_transaction(transaction),
    )
    if isinstance(record, AddMessage):
        ordered_by = record.priority if record.priority_supported else PRIORITY_DEFAULT
        other: tuple[object, ...] = (record.message, ordered_by)
        found += (priority,)
    else:
        assert isinstance(record, RemoveMessage)
        other = (record.ack, record.subscription_key)
        found += (None if key is None else key.decode(),)
    whole = (record.destination, record.message_id, other[0], record.transaction, other[1])
    if found != whole:
        raise WrongError(f"recovery reads {found}, and there is {whole}")


def _file(chance: Random) -> bytes:
    """Return a file with changes, or one of batches that are sound but for what is in them."""
    if chance.random() < 0.5:
        return mutated(chance, [chance.choice(journal_files())[:8192]], changes=3)
    known = journal_records()
    batches = [
        build_batch(_record(chance) + chance.choice(known)) for _ in range(chance.randint(1, 4))
    ]
    return b"".join(batches) + chance.choice((b"", EOF_RECORD, bytes(64)))


def _read_file(data: bytes) -> None:
    """Look for what is sound, and for what can be read of the rest."""
    scan = scan_file(data, "db-1.log")
    for batch in scan.batches:
        try:
            for offset, _ in record_offsets(data, batch):
                decode_record(data, offset)
        except JournalError:
            continue
    for is_last in (True, False):
        inspection = inspect_file(data, "db-1.log", is_last)
        for damage in inspection.damages:
            list(fragments(data, damage))
        mended = b"".join(sound_pieces(data, inspection))
        if inspect_file(mended, "db-1.log", False).damages:
            raise WrongError("what is sound of the file is not sound")


def _files(chance: Random) -> bytes:
    """Return what one to three files are to hold: sound batches of changed records, or noise."""
    found = []
    for _ in range(chance.randint(1, FILES_MAX)):
        known = journal_records()
        start = chance.randrange(len(known))
        inside = list(known[start : start + chance.randint(1, 30)])
        if chance.random() < 0.8:
            inside[chance.randrange(len(inside))] = _record(chance)
        data = build_batch(b"".join(inside)) * chance.choice((1, 1, 2))
        if chance.random() < 0.3:
            data = mutated(chance, [data, *journal_files()[:8]], changes=2)
        found.append(len(data).to_bytes(4, "big") + data)
    return b"".join(found)


class _Directory:
    """A directory in memory that is filled anew for every input."""

    def __init__(self) -> None:
        self._path: Path | None = None

    def fill(self, data: bytes) -> Path:
        """Return the directory with these files."""
        if self._path is None or not self._path.exists():
            self._path = new_directory()
        shutil.rmtree(self._path)
        self._path.mkdir()
        position, number = 0, 1
        while position < len(data):
            size = int.from_bytes(data[position : position + 4], "big")
            inside = data[position + 4 : position + 4 + size]
            (self._path / data_file_name(number)).write_bytes(inside)
            position, number = position + 4 + size, number + 1
        return self._path


_directory = _Directory()


def _read_directory(data: bytes) -> None:
    """Read a directory as everything does that reads one."""
    path = _directory.fill(data)
    for report in verify_directory(path):
        str(report)
    for stored in read_records(path):
        str(stored)
    with suppress(JournalError):
        recount_directory(path)
    replay_directory(path)


def _recover(data: bytes) -> None:
    """Open a directory with a broker, and serve; if refused, without what is damaged."""
    path = _directory.fill(data)
    try:
        _serve(KahaDBStore(path))
    except StoreError:
        try:
            _serve(KahaDBStore(path, accept_loss=True))
        except StoreError as error:
            raise WrongError(f"refused although loss is accepted: {error}") from error


def _serve(store: KahaDBStore) -> None:
    world = World(store)
    try:
        world.serve()
        for later in (1, 100_000):
            world.turn(later)
        world.serve()
    finally:
        store.close()
