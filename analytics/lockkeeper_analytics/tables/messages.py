"""`messages`: one row for each message, with what became of it."""

from lockkeeper_analytics.reading.schema import COLUMNS, INT, LONG, TEXT, TEXTS, TIME
from lockkeeper_analytics.tables.derived import derived_table
from lockkeeper_analytics.tables.shape import Type

FACTS = (
    "message_type",
    "producer_id",
    "persistent",
    "priority",
    "sent_at",
    "expires_at",
    "correlation_id",
    "group_id",
    "group_sequence",
    "reply_to",
    "jms_type",
    "redeliveries",
    "user_id",
    "compressed",
    "properties",
    "retry_of",
    "broker_path",
)
"""Columns of records that a message keeps as they are; only those asked for are decoded."""

_ABOUT = (
    "`acknowledged`; `dead_lettered`; `expired`; `dropped` (its destination or its last "
    "subscription went); `unmatched` (no subscription wanted it); `unwanted` (a topic without "
    "subscriptions); `duplicate` (it was there already); `rolled_back`; `open` (its transaction "
    "has no outcome); `in_doubt` (a prepared transaction adds or consumes it); `pending`"
)


def _fact(name: str) -> tuple[str, Type, str]:
    column = COLUMNS[name]
    return name, (column.ddl, column.arrow), column.meaning


TABLE = derived_table(
    "messages",
    "one row for each message, with what became of it",
    ("directory", TEXT, "the journal directory, as it was named"),
    ("destination_kind", TEXT, "`queue`, `topic`, …"),
    ("destination", TEXT, "name of the destination"),
    ("message_id", TEXT, "JMSMessageID, or the broker's own id of a copy: see `copy_of`"),
    ("copy_of", TEXT, "JMSMessageID of a message with an id of the broker's own"),
    ("outcome", TEXT, _ABOUT),
    ("stored_at", TIME, "when the broker got it (brokerInTime)"),
    ("added_earliest", TIME, "it took effect at this time or later"),
    ("added_latest", TIME, "… and at this time or earlier"),
    ("ended_earliest", TIME, "it ended at this time or later; null: not yet"),
    ("ended_latest", TIME, "… and at this time or earlier"),
    ("life_at_least_ms", LONG, "from `stored_at` to `ended_earliest`"),
    ("life_at_most_ms", LONG, "from `stored_at` to `ended_latest`"),
    ("consumer_id", TEXT, "who ended it last, where the journal says so"),
    ("acknowledged_by", TEXTS, "the durable subscriptions that are done with it"),
    ("waiting_for", TEXTS, "the durable ones that are not"),
    ("dead_letter_destination", TEXT, "where it went when it died, such as `queue://ActiveMQ.DLQ`"),
    ("end_cause", TEXT, "why it died"),
    ("original_destination", TEXT, "where it was before it was moved here"),
    ("dead_letter_cause", TEXT, "why it is a dead letter here"),
    ("transaction", TEXT, "the transaction that added it"),
    ("end_transaction", TEXT, "the transaction that ended it"),
    ("message_bytes", INT, "size of the message in bytes"),
    ("file_id", INT, "number of the data file that holds it"),
    ("offset", LONG, "where its record begins there, in bytes"),
    ("record_bytes", INT, "size of its record"),
    *map(_fact, FACTS),
)
