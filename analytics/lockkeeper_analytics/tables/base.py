"""The tables that are read as they are, from which all views and the other tables are told."""

from lockkeeper_analytics.tables import events, records, statistics
from lockkeeper_analytics.tables.data_files import DATA_FILES, JOURNALS

BASE = {
    table.name: table
    for table in (records.TABLE, statistics.TABLE, events.TABLE, DATA_FILES, JOURNALS)
}
"""Each by its name."""
