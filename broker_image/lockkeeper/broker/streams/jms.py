"""Messages of streams as those of JMS: what becomes of headers, properties and bodies.

The table is in docs/streams.md. Properties stay what they are, those that become headers, too.
"""

from lockkeeper.broker.context import Context
from lockkeeper.broker.streams.drafts import (
    KEYS,
    TAGS,
    UNIQUE_KEY,
    Draft,
    StreamRecord,
    read_draft,
)
from lockkeeper.broker.streams.originals import BODY, SHARDING_KEY, TEXT, original_of
from lockkeeper.message.bodies import MessageType, encode_body
from lockkeeper.message.destination import Destination, topic
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import ActiveMQBytesMessage, ActiveMQTextMessage
from lockkeeper.message.openwire import Message as Fields
from lockkeeper.message.primitives import Long, Value, encode_map
from lockkeeper.message.rewrite import encoded

STREAM, PARTITION, OFFSET = "lockkeeperStream", "lockkeeperPartition", "lockkeeperOffset"
"""Properties that tell JMS consumers where a message was read."""


def as_message(
    context: Context, record: StreamRecord, stream: str, partition: int, destination: Destination
) -> Message:
    """Return a message of a stream as a new one for a queue or topic.

    Raises MalformedMessageError for one that cannot be read.
    """
    sequence = context.next_sequence()
    place: dict[str, Value] = {
        STREAM: stream,
        PARTITION: partition,
        OFFSET: Long(record.offset),
    }
    original = original_of(record.frame)
    if original is not None:
        fields, properties, name = original
    else:
        draft = read_draft(record.frame)
        fields, properties = _fields(draft), dict[str, Value](draft.properties)
        name = f"ID:{draft.properties.get(UNIQUE_KEY) or _place(record, stream, partition)}"
    fields.message_id = context.copy_ids.next_named(name, sequence)
    fields.producer_id = fields.message_id.producer_id
    fields.destination, fields.original_destination = destination, topic(stream)
    fields.marshalled_properties = encode_map({**properties, **place})
    fields.broker_in_time = fields.arrival = context.now
    return encoded(fields, sequence)


def _place(record: StreamRecord, stream: str, partition: int) -> str:
    return f"{stream}:{partition}:{record.offset}"


def _fields(draft: Draft) -> Fields:
    """Return the headers and the body that a draft has at JMS."""
    properties = draft.properties
    fields = _with_body(draft)
    fields.persistent = True
    fields.timestamp = draft.born_at
    fields.type = properties.get(TAGS)
    fields.correlation_id = properties.get(KEYS)
    fields.group_id = properties.get(SHARDING_KEY)
    return fields


def _with_body(draft: Draft) -> Fields:
    """Return a text message of a draft that says so and is one, else a bytes message."""
    if draft.properties.get(BODY) == TEXT:
        try:
            text = draft.body.decode()
        except UnicodeDecodeError:
            return ActiveMQBytesMessage(content=draft.body)
        return ActiveMQTextMessage(content=encode_body(MessageType.TEXT, text))
    return ActiveMQBytesMessage(content=draft.body)
