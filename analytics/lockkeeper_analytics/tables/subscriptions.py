"""`subscriptions`: one row for each durable subscription of the journal, ended ones too."""

from lockkeeper_analytics.reading.schema import FLAG, INT, LONG, TEXT, TIME
from lockkeeper_analytics.tables.derived import derived_table

TABLE = derived_table(
    "subscriptions",
    "one row for each durable subscription and topic, ended ones too",
    ("directory", TEXT, "the journal directory, as it was named"),
    ("subscription", TEXT, "`clientId:name`"),
    ("destination_kind", TEXT, "`topic`"),
    ("destination", TEXT, "name of the topic"),
    ("state", TEXT, "`live`, `deleted`, `replaced` (made again) or `dropped` (its topic went)"),
    ("selector", TEXT, "what it wants of the topic"),
    ("no_local", FLAG, "not what its own connection sends"),
    ("retroactive", FLAG, "what was stored already, too"),
    ("created_earliest", TIME, "at this time or later"),
    ("created_latest", TIME, "… and at this or earlier"),
    ("ended_earliest", TIME, "it ended at this time or later; null: it is live"),
    ("ended_latest", TIME, "… and at this time or earlier"),
    ("pending", LONG, "messages that wait for it"),
    ("pending_bytes", LONG, "their size"),
    ("oldest_pending_at", TIME, "when the first of them was stored"),
    ("acknowledged", LONG, "messages it was done with"),
    ("unmatched", LONG, "messages its selector did not want"),
    ("last_ack_earliest", TIME, "its last acknowledgement was at this time or later"),
    ("last_ack_latest", TIME, "… and at this time or earlier"),
    ("file_id", INT, "data file of its create record"),
)
