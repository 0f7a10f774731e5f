"""The columns of a journal row: name, type in Arrow and in Spark, and what must be read for it."""

from enum import IntFlag
from typing import NamedTuple

import pyarrow as pa

from lockkeeper_analytics.reading.arrays import TIMESTAMP


class Needs(IntFlag):
    """What has to be decoded of a record before a column is known; nothing else is touched."""

    RECORD = 0
    TIMES = 1
    HEAD = 2
    TAIL = 4
    ACK = 8
    BODY = 16


class Column(NamedTuple):
    """One column; `ddl` is its Spark type, `arrow` the same for the batches sent to Spark."""

    name: str
    ddl: str
    arrow: pa.DataType
    needs: Needs
    meaning: str


TEXT = ("string", pa.string())
INT = ("int", pa.int32())
LONG = ("bigint", pa.int64())
FLAG = ("boolean", pa.bool_())
TIME = ("timestamp", TIMESTAMP)
MAP = ("map<string,string>", pa.map_(pa.string(), pa.string()))
BYTES = ("binary", pa.binary())
TEXTS = ("array<string>", pa.list_(pa.string()))

DIRECTORY, BROKER = "directory", "broker"
_RECORD, _TIMES, _HEAD, _TAIL = Needs.RECORD, Needs.TIMES, Needs.HEAD, Needs.TAIL

_ALL = (
    (DIRECTORY, TEXT, _RECORD, "the journal directory, as it was named"),
    (BROKER, TEXT, _RECORD, "the name given with it (`NAME=DIR`), or its last part"),
    ("file", TEXT, _RECORD, "name of the data file, such as `db-3.log`"),
    ("file_id", INT, _RECORD, "number of the data file"),
    ("offset", LONG, _RECORD, "where the record begins in its file, in bytes"),
    ("record_bytes", INT, _RECORD, "size of the record with its header"),
    ("kind", TEXT, _RECORD, "what the record says: `add`, `remove`, `commit`, … (see below)"),
    ("destination_kind", TEXT, _RECORD, "`queue`, `topic`, `temp-queue` or `temp-topic`"),
    ("destination", TEXT, _RECORD, "name of the destination"),
    ("message_id", TEXT, _RECORD, "JMSMessageID, or the broker's own id of a copy: see `copy_of`"),
    ("subscription", TEXT, _RECORD, "`clientId:name` of the durable subscription"),
    ("transaction", TEXT, _RECORD, "`TX:…` or `XID:…` of the transaction it belongs to"),
    ("written_after", TIME, _TIMES, "the record was written at this time or later"),
    ("written_before", TIME, _TIMES, "… and at this time or earlier; null: not known"),
    ("message_bytes", INT, _RECORD, "size of the message in bytes"),
    (
        "message_type",
        TEXT,
        _RECORD,
        "`text`, `bytes`, `map`, `stream`, `object`, `blob` or `message`",
    ),
    ("stored_at", TIME, _RECORD, "when the broker got the message (brokerInTime)"),
    ("producer_id", TEXT, _HEAD, "`connectionId:sessionId:number` of the producer"),
    ("persistent", FLAG, _HEAD, "JMSDeliveryMode is PERSISTENT"),
    ("priority", INT, _HEAD, "JMSPriority, 0 to 9"),
    ("sent_at", TIME, _HEAD, "JMSTimestamp, by the client's clock"),
    ("expires_at", TIME, _HEAD, "JMSExpiration; null: never; the end of 9999: then or later"),
    ("correlation_id", TEXT, _HEAD, "JMSCorrelationID"),
    ("group_id", TEXT, _HEAD, "JMSXGroupID"),
    ("group_sequence", INT, _HEAD, "JMSXGroupSeq; null without a group"),
    ("reply_to", TEXT, _HEAD, "JMSReplyTo, such as `queue://ANSWERS`"),
    ("copy_of", TEXT, _HEAD, "JMSMessageID of a message with an id of the broker's own"),
    ("original_destination", TEXT, _HEAD, "where the message was before it was moved"),
    ("jms_type", TEXT, _TAIL, "JMSType"),
    ("compressed", FLAG, _TAIL, "the body is stored deflated"),
    ("redeliveries", INT, _TAIL, "redelivery counter at the time of the record"),
    ("user_id", TEXT, _TAIL, "JMSXUserID"),
    ("properties", MAP, _TAIL, "the application's properties, values as text"),
    ("dead_letter_cause", TEXT, _TAIL, "why the message is a dead letter"),
    ("retry_of", TEXT, _TAIL, "first JMSMessageID of a dead letter that `dlq retry` sent back"),
    ("ack_type", TEXT, Needs.ACK, "how a remove came about: `standard`, `unmatched`, `poison`, …"),
    ("consumer_id", TEXT, Needs.ACK, "who acknowledged: `connectionId:sessionId:number`"),
    ("ack_cause", TEXT, Needs.ACK, "why the consumer gave the message up"),
    ("selector", TEXT, _RECORD, "what a durable subscription that begins wants of its topic"),
    ("no_local", FLAG, _RECORD, "it does not want what its own connection sends"),
    ("retroactive", FLAG, _RECORD, "it wants what the topic has stored already"),
    ("trace", TEXT, _RECORD, "text of a trace record that is not the flight recorder's"),
    ("recorder", TEXT, _RECORD, "JSON of a flight recorder line"),
    ("stream_state", TEXT, _RECORD, "JSON that streams keep of a group or a declared stream"),
    ("broker_path", TEXTS, _TAIL, "ids of the brokers that the message has left; null: of none"),
    ("body", TEXT, Needs.BODY | _TAIL, "text bodies; map and stream bodies as JSON"),
    ("content", BYTES, Needs.BODY | _TAIL, "bytes and object bodies, inflated"),
)

COLUMNS = {name: Column(name, *kind, needs, meaning) for name, kind, needs, meaning in _ALL}
"""Every column by its name, in order."""

BODY_COLUMNS = ("body", "content")
DEFAULT_COLUMNS = tuple(name for name in COLUMNS if name not in BODY_COLUMNS)


def arrow_schema_of(columns: tuple[str, ...]) -> pa.Schema:
    """Return the Arrow schema of *columns*."""
    return pa.schema([(name, COLUMNS[name].arrow) for name in columns])


def needs_of(columns: tuple[str, ...]) -> Needs:
    """Return everything that has to be decoded for *columns*."""
    needs = Needs.RECORD
    for name in columns:
        needs |= COLUMNS[name].needs
    return needs
