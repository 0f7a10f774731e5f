"""`destinations`: one row for each destination that records of the journal name."""

from lockkeeper_analytics.reading.schema import FLAG, LONG, TEXT, TIME
from lockkeeper_analytics.tables.derived import derived_table

TABLE = derived_table(
    "destinations",
    "one row for each destination",
    ("directory", TEXT, "the journal directory, as it was named"),
    ("destination_kind", TEXT, "`queue`, `topic`, …"),
    ("destination", TEXT, "name of the destination"),
    ("is_removed", FLAG, "it was removed, and nothing came since"),
    ("stored", LONG, "messages that came, transactions by their commit"),
    ("stored_bytes", LONG, "their size"),
    ("first_stored_at", TIME, "when the first one came"),
    ("last_stored_at", TIME, "when the last one came"),
    ("acknowledged", LONG, "messages that ended so; see `messages`"),
    ("dead_lettered", LONG, "messages that ended so"),
    ("expired", LONG, "messages that ended so"),
    ("dropped", LONG, "messages that ended so"),
    ("unmatched", LONG, "messages that ended so"),
    ("unwanted", LONG, "messages that ended so"),
    ("duplicate", LONG, "messages that came again"),
    ("pending", LONG, "messages that are there"),
    ("pending_bytes", LONG, "their size"),
    ("oldest_pending_at", TIME, "when the first of them was stored"),
    ("in_doubt", LONG, "messages that a prepared transaction consumes"),
    ("subscriptions", LONG, "durable subscriptions now"),
)
