"""Histories of records, with a log or without one, by the folders of their brokers."""

from collections.abc import Sequence
from urllib.parse import unquote

from lockkeeper_analytics.reading.delta_log import files_of, open_table, table_over
from lockkeeper_analytics.reading.kept import BROKER_FOLDER, KeptFile, files_in_folder
from lockkeeper_analytics.reading.storage import is_url, name_of

KEPT_IN = 10
"""A journal takes about so many times the room of its history: 6 to 20 times were measured."""


def kept_files(directory: str) -> Sequence[KeptFile]:
    """Return the files of the history in *directory*, in journal order; none: it is none.

    Raises AnalyticsError for a Delta table that cannot be read.
    """
    name = name_of(directory)
    table = table_over(directory) if name.startswith(BROKER_FOLDER) else ""
    if table:
        broker = unquote(name.removeprefix(BROKER_FOLDER))
        return files_of(open_table(table), table, broker)
    return () if is_url(directory) else files_in_folder(directory)


def kept_for_bytes(directory: str) -> int:
    """Return for about how many bytes of a journal the files of a history stand."""
    return KEPT_IN * sum(file.size for file in kept_files(directory))
