"""The tables that are read as they are, from which all views and the other tables are told."""

from lockkeeper_analytics.tables import (
    body_fields,
    declared_streams,
    events,
    records,
    statistics,
    stream_messages,
    stream_offsets,
)
from lockkeeper_analytics.tables.checked_files import CHECKED_FILES
from lockkeeper_analytics.tables.data_files import DATA_FILES, JOURNALS

BASE = {
    table.name: table
    for table in (
        DATA_FILES,
        JOURNALS,
        CHECKED_FILES,
        records.TABLE,
        statistics.TABLE,
        events.TABLE,
        body_fields.TABLE,
        stream_messages.TABLE,
        stream_offsets.TABLE,
        declared_streams.TABLE,
    )
}
"""Each by its name, in the order in which they are read.

What is listed comes first: a broker goes on meanwhile, and of a file that was not the last one
when it was listed, all records are read.
"""
