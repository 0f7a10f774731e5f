"""`acks`: one row for each acknowledgement that took effect.

One in a transaction counts where its commit is; one without a commit is not there.
"""

from lockkeeper_analytics.reading.schema import FLAG, INT, LONG, TEXT, TIME
from lockkeeper_analytics.tables.derived import derived_table

TABLE = derived_table(
    "acks",
    "one row for each acknowledgement that took effect",
    ("directory", TEXT, "the journal directory, as it was named"),
    ("destination_kind", TEXT, "`queue`, `topic`, …"),
    ("destination", TEXT, "name of the destination"),
    ("message_id", TEXT, "JMSMessageID"),
    ("subscription", TEXT, "the durable subscription that acknowledged, `clientId:name`"),
    ("outcome", TEXT, "`acknowledged`, `unmatched`, `dead_lettered` or `expired`"),
    ("acked_at_earliest", TIME, "at this time or later"),
    ("acked_at_latest", TIME, "… and at this time or earlier"),
    ("is_exact", FLAG, "the two are one: a clock line tells the time"),
    ("stored_at", TIME, "when the broker got the message; null: its file is gone"),
    ("latency_at_least_ms", LONG, "from `stored_at` to `acked_at_earliest`"),
    ("latency_at_most_ms", LONG, "from `stored_at` to `acked_at_latest`"),
    ("ack_type", TEXT, "`standard`, `poison`, … where it is said"),
    ("consumer_id", TEXT, "who did, where it is said"),
    ("cause", TEXT, "why the message died"),
    ("transaction", TEXT, "the transaction it was done in"),
    ("file_id", INT, "number of the data file that says so"),
    ("offset", LONG, "where its record begins there, in bytes"),
    ("message_file_id", INT, "number of the data file that held the message"),
)
