"""`files`: one row for each data file, with what pins it (kahadb.md section 6).

A file may go when nothing live is in it, and when every file whose messages its records end is
gone or goes with it: otherwise those messages would come back.
"""

from lockkeeper_analytics.reading.schema import FLAG, INT, LONG, TEXT, TEXTS, TIME
from lockkeeper_analytics.tables.derived import derived_table
from lockkeeper_analytics.tables.shape import COUNTS, NUMBERS

TABLE = derived_table(
    "files",
    "one row for each data file, with what pins it",
    ("directory", TEXT, "the journal directory, as it was named"),
    ("file_id", INT, "number of the data file"),
    ("file", TEXT, "its name"),
    ("file_bytes", LONG, "its length, with space prepared for later"),
    ("is_current", FLAG, "it is the last one, which is written to"),
    ("is_archived", FLAG, "it is in `data-archive`"),
    ("records", LONG, "records in it"),
    ("adds", LONG, "messages in it"),
    ("removes", LONG, "acknowledgements in it"),
    ("first_at", TIME, "its first record was written then or later"),
    ("last_at", TIME, "its last one then, as far as is known"),
    ("live_messages", LONG, "messages in it that are not done with"),
    ("live_bytes", LONG, "the size of their records"),
    ("live_by_destination", COUNTS, "whose they are"),
    ("subscriptions", TEXTS, "live ones that were made in it"),
    ("transactions", TEXTS, "open and prepared ones in it"),
    ("acknowledges", NUMBERS, "files that stay and hold messages which records of this one end"),
    ("pinned_by", TEXTS, "all of this in words; empty: nothing keeps it"),
    ("freed_by_cleanup", FLAG, "a clean-up would remove it now"),
    has_destinations=False,
)
