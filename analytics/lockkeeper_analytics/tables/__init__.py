"""The tables of a journal as Arrow batches, without Spark: one file for each.

Comes in: options, records as `rows` reads them. Never here: Spark, a query language. `records`,
`statistics` and `events` are read part by part in memory of one chunk; for the others a directory
is replayed from its beginning (`history.py`), and memory holds what is live in it.
"""

from lockkeeper_analytics.tables import (
    acks,
    destinations,
    events,
    files,
    messages,
    records,
    statistics,
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
    )
}
"""Every table by its name."""
