"""Delta table as a history: a step is one commit, which is there as a whole or not at all.

    TABLE/broker=north/day=2026-11-18/db-00000007-000000004096-5f1c….parquet
    TABLE/_lockkeeper/broker=north/1f2e….json

The files of a step are written first, under names that no other run gives, and then a small file
that says where the next step begins. The commit names the files, and in a transaction identifier of
the broker the number of the small file: so both count from then on, and of two runs that begin at
the same place one is refused. What a killed run has written is in no commit, and vacuuming the
table removes it. The small file is beside the log, since the log forgets what its commits said, and
tools that put files together forget their footers.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.history.folders import metadata_of
from lockkeeper_analytics.history.place import VERSION, Step, check_version
from lockkeeper_analytics.history.writing import remove_file, synced, write_file, write_rows
from lockkeeper_analytics.reading.delta_log import (
    LOG,
    address_of,
    files_of,
    is_table,
    open_table,
    settings_of,
)
from lockkeeper_analytics.reading.kept import (
    DAY_FOLDER,
    NO_DAY,
    KeptFile,
    folder_of,
    kept_name,
)
from lockkeeper_analytics.reading.storage import beside, is_url, open_file

BROKER, DAY = "broker", "day"
_NOTES = "_lockkeeper"
_IN_USE = "another run writes to it; run again when that is done"
_NUMBER_BYTES = 7
"""A transaction's number is signed, of 64 bits."""


class DeltaPlace:
    """The rows of one broker in the Delta table in *folder*, a path or URL; made if need be.

    *columns* are those of the rows. Raises AnalyticsError.
    """

    def __init__(self, folder: str, broker: str, columns: pa.Schema) -> None:
        self._folder = folder
        self._broker = broker
        self._place = beside(folder, folder_of(broker))
        self._application = f"lockkeeper.keep/{broker}"
        fields = [*columns, pa.field(BROKER, pa.string()), pa.field(DAY, pa.date32())]
        self._table = _table_in(folder, Schema.from_arrow(pa.schema(fields)))
        self._number = self._table.transaction_version(self._application)

    def __str__(self) -> str:
        return self._place

    def last(self) -> dict[str, Any] | None:
        """Return what the last commit tells of where the next step begins."""
        if self._number is None:
            return None
        path = self._note(self._number)
        try:
            with open_file(path) as file:
                told: dict[str, Any] = json.loads(file.read())
        except (OSError, ValueError) as error:
            self._check_unchanged()
            reason = "it says where the next step begins; put it back from a copy"
            raise AnalyticsError(f"{path}: {reason} ({error})") from error
        check_version(path, told.pop("schema"))
        return told

    def add(self, step: Step) -> None:
        """Write the files of a step and commit them. Raises AnalyticsError."""
        metadata, attempt = metadata_of(step), token_hex(8)
        added = []
        for day, rows in step.days.items():
            name = f"{folder_of(self._broker)}/{DAY_FOLDER}{day}/{kept_name(*step.begin, attempt)}"
            self._make_folder(name)
            size = write_rows(rows.replace_schema_metadata(metadata), beside(self._folder, name))
            values = {BROKER: self._broker, DAY: None if day == NO_DAY else day}
            now = int(time.time() * 1000)
            added.append(AddAction(name, size, values, now, True, json.dumps(_statistics(rows))))
        note = json.dumps({"schema": VERSION, **step.following}, sort_keys=True).encode()
        number = int.from_bytes(sha256(note).digest()[:_NUMBER_BYTES])
        self._make_folder(f"{_NOTES}/{folder_of(self._broker)}/note")
        write_file(note, self._note(number))
        former = self._number
        self._commit(added, number, step.following)
        if former not in (None, number):
            remove_file(self._note(former))

    def files(self) -> Sequence[KeptFile]:
        """Return the files of all commits."""
        return files_of(self._table, self._folder, self._broker)

    def _commit(
        self, added: Sequence[AddAction], number: int, following: Mapping[str, Any]
    ) -> None:
        told = {"lockkeeper.broker": self._broker, "lockkeeper.next": dict(following)}
        transaction = Transaction(self._application, number)
        properties = CommitProperties(custom_metadata=told, app_transactions=[transaction])
        before = self._table.version()
        with _told_of(self._place):
            self._table.create_write_transaction(
                list(added),
                "append",
                self._table.schema(),
                [BROKER, DAY],
                commit_properties=properties,
            )
        self._number = number
        self._check_unchanged()
        if not is_url(self._folder):
            _sync_commits(Path(self._folder) / LOG, before + 1, self._table.version())

    def _check_unchanged(self) -> None:
        """Raise AnalyticsError when another run has gone on behind the last step that is known.

        What it added is not to be added again.
        """
        with _told_of(self._place):
            self._table.update_incremental()
        if self._table.transaction_version(self._application) != self._number:
            raise AnalyticsError(f"{self._place}: {_IN_USE}")

    def _note(self, number: int) -> str:
        name = f"{_NOTES}/{folder_of(self._broker)}/{number:014x}.json"
        return beside(self._folder, name)

    def _make_folder(self, name: str) -> None:
        """Have the folder of a file, which object stores do without."""
        if not is_url(self._folder):
            folder = (Path(self._folder) / name).parent
            folder.mkdir(parents=True, exist_ok=True)
            synced(folder.parent)


def _table_in(folder: str, schema: Schema) -> DeltaTable:
    """Return the table in *folder*, with the columns of *schema* at least."""
    with _told_of(folder):
        if not is_table(folder):
            DeltaTable.create(
                address_of(folder),
                schema,
                "ignore",
                [BROKER, DAY],
                "lockkeeper records",
                f"records of journals, schema {VERSION}, by lockkeeper keep",
                storage_options=settings_of(folder),
            )
        table = open_table(folder)
        known = {field.name for field in table.schema().fields}
        missing = [field for field in schema.fields if field.name not in known]
        if missing:
            table.alter.add_columns(missing)
            table.update_incremental()
    return table


@contextmanager
def _told_of(place: str) -> Iterator[None]:
    """Let errors say which *place* they are of. Raises AnalyticsError."""
    try:
        yield
    except CommitFailedError as error:
        raise AnalyticsError(f"{place}: {_IN_USE} ({error})") from error
    except (DeltaError, OSError) as error:
        raise AnalyticsError(f"{place}: {error}") from error


def _statistics(rows: pa.Table) -> dict[str, Any]:
    """Return what the log tells of a file with *rows*: which data files they are of."""
    bounds = pc.min_max(rows["file_id"]).as_py()
    return {
        "numRecords": rows.num_rows,
        "minValues": {"file_id": bounds["min"]},
        "maxValues": {"file_id": bounds["max"]},
        "nullCount": {"file_id": 0},
    }


def _sync_commits(log: Path, first: int, last: int) -> None:
    """Have the commits of some versions and their names on the disk."""
    for version in range(first, last + 1):
        synced(log / f"{version:020}.json")
    synced(log)
