"""`transactions`: one row for each transaction, as they end; then those without an outcome."""

from lockkeeper_analytics.reading.schema import INT, LONG, TEXT, TEXTS, TIME
from lockkeeper_analytics.tables.derived import derived_table
from lockkeeper_analytics.tables.shape import NUMBERS

TABLE = derived_table(
    "transactions",
    "one row for each transaction",
    ("directory", TEXT, "the journal directory, as it was named"),
    ("transaction", TEXT, "`TX:…` or `XID:…`"),
    ("kind", TEXT, "`local` or `xa`"),
    (
        "outcome",
        TEXT,
        "`committed`, `rolled_back`, `prepared` (in doubt) or `open` (goes at the next start)",
    ),
    ("adds", LONG, "messages sent in it"),
    ("removes", LONG, "acknowledgements in it"),
    ("message_bytes", LONG, "size of the messages sent in it"),
    ("destinations", TEXTS, "such as `queue://ORDERS`"),
    ("began_earliest", TIME, "first record: then or later"),
    ("began_latest", TIME, "… and then or earlier"),
    ("prepared_earliest", TIME, "it was prepared then or later; null: it was not"),
    ("prepared_latest", TIME, "… and then or earlier"),
    ("ended_earliest", TIME, "it ended then or later; null: it did not"),
    ("ended_latest", TIME, "… and then or earlier"),
    ("file_id", INT, "data file of its first record"),
    ("files", NUMBERS, "data files with what it did"),
)
