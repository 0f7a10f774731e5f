"""Histories whose files a Delta log names: one table for all brokers, partitioned by them.

    TABLE/_delta_log/…
    TABLE/broker=north/day=2026-11-18/….parquet

The folder of a broker stands for its rows in the table. Which files count is told by the log alone:
tools of Delta may have put them together.
"""

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa

from lockkeeper.journal.files import FILE_ID_MAX
from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.reading.kept import KeptFile
from lockkeeper_analytics.reading.storage import (
    beside,
    is_url,
    name_of,
    parent_of,
    there_is,
    without_query,
)

if TYPE_CHECKING:
    from deltalake import DeltaTable

LOG = "_delta_log"

_BROKER, _FIRST, _LAST = "partition.broker", "min.file_id", "max.file_id"
_READER_VERSION = 1
"""Tables of a later one have features such as deletion vectors: files tell not all then."""

_S3_SETTINGS = {
    "endpoint_override": "AWS_ENDPOINT_URL",
    "region": "AWS_REGION",
    "scheme": "AWS_ALLOW_HTTP",
}
"""What pyarrow calls settings in URLs, as Delta's storage options."""


def is_table(folder: str) -> bool:
    """Tell whether there is a Delta table in *folder*, a path or URL."""
    return there_is(beside(folder, LOG))


def table_over(directory: str) -> str:
    """Return the folder of the table that *directory* is the folder of a broker in; or nothing."""
    folder = parent_of(directory)
    return folder if is_table(folder) else ""


def open_table(folder: str) -> "DeltaTable":
    """Return the table in *folder* as it is now. Raises AnalyticsError."""
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise AnalyticsError(
            f"{folder}: it is a Delta table, which takes pip install 'lockkeeper-mq[delta]'"
        ) from None
    try:
        table = DeltaTable(address_of(folder), storage_options=settings_of(folder))
    except (DeltaError, OSError) as error:
        raise AnalyticsError(f"{folder}: {error}") from error
    needed = table.protocol().min_reader_version
    if needed > _READER_VERSION:
        raise AnalyticsError(
            f"{folder}: reading this table takes version {needed} of Delta's reader protocol, and "
            f"Lockkeeper knows {_READER_VERSION}: copy its rows into a table without the features "
            "that were added"
        )
    return table


def address_of(folder: str) -> str:
    """Return what Delta calls *folder*: a URL without settings."""
    return without_query(folder)[0]


def settings_of(folder: str) -> dict[str, str]:
    """Return Delta's storage options for the settings in the URL *folder*; none for a path."""
    if not is_url(folder):
        return {}
    given = {name: values[-1] for name, values in parse_qs(urlsplit(folder).query).items()}
    scheme = given.get("scheme", "https")
    if "endpoint_override" in given:
        given["endpoint_override"] = f"{scheme}://{given['endpoint_override']}"
    if "scheme" in given:
        given["scheme"] = str(scheme == "http").lower()
    return {_S3_SETTINGS[name]: value for name, value in given.items() if name in _S3_SETTINGS}


def files_of(table: "DeltaTable", folder: str, broker: str) -> list[KeptFile]:
    """Return the files with rows of *broker* in the *table* of *folder*, in journal order."""
    found = []
    for row in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        if row[_BROKER] == broker:
            path = beside(folder, unquote(row["path"]))
            first, last = row.get(_FIRST), row.get(_LAST)
            file_id = 0 if first is None else first
            last_id = FILE_ID_MAX if last is None else last
            found.append(KeptFile(file_id, path, last_id, row["size_bytes"]))
    return sorted(found, key=lambda file: (file.file_id, name_of(file.path), file.path))
