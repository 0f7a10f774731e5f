"""The tables of a journal as Arrow batches, without Spark: one file for each.

Comes in: options, records as `rows` reads them. Never here: Spark. `base.py` has those that are
read as they are, part by part in memory of one chunk. The others are told from all records of a
directory (`derived.py`) by DuckDB (`database.py`), which spills what its memory does not hold.
"""

from lockkeeper_analytics.tables import (
    acks,
    body_fields,
    declared_streams,
    destinations,
    events,
    files,
    messages,
    records,
    statistics,
    stream_messages,
    stream_offsets,
    subscriptions,
    transactions,
)

RECORDS = records.TABLE.name
TABLES = {
    table.name: table
    for table in (
        records.TABLE,
        messages.TABLE,
        acks.TABLE,
        statistics.TABLE,
        events.TABLE,
        subscriptions.TABLE,
        destinations.TABLE,
        files.TABLE,
        transactions.TABLE,
        body_fields.TABLE,
        stream_messages.TABLE,
        stream_offsets.TABLE,
        declared_streams.TABLE,
    )
}
"""Every table by its name."""
