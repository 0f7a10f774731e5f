"""Messages of JMS in streams: they stay what they are, in the place that the stream gives them.

Header fields, properties with their types and the body are the producer's, so that JMS consumers
get them back. Readers of streams see texts: a body as UTF-8 or JSON, properties as texts.
"""

import json
from collections.abc import Mapping
from typing import Final

from lockkeeper.message import openwire
from lockkeeper.message.bodies import JavaObject, decode_body
from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.primitives import Value, encode_map
from lockkeeper.message.rewrite import decoded, encoded, properties_of
from lockkeeper.message.text import decode_text

SHARDING_KEY: Final = "__SHARDINGKEY"
"""The property by which RocketMQ's producers choose a partition: JMSXGroupID at JMS."""
BODY: Final = "lockkeeperBody"
"""The property that tells which JMS message a body is of: that of a `text` is in UTF-8."""
TEXT: Final = "text"
_MARK: Final = 1
"""The command id of an original in a stream; other messages of streams have 0."""
_MARKED: Final = _MARK.to_bytes(4, "big")


def placed(
    original: Message,
    properties: Mapping[str, str],
    producer: ProducerId,
    stream: Destination,
    offset: int,
    sequence: int,
) -> Message:
    """Return a message of JMS as that of *stream* at *offset*, with *properties* added.

    Its JMSMessageID stays, and so does where it was sent to, as originalDestination. It lasts
    for as long as the stream keeps it. Raises MalformedMessageError.
    """
    fields = decoded(original)
    fields.command_id, fields.response_required = _MARK, False
    fields.original_destination = fields.original_destination or fields.destination
    fields.destination = stream
    fields.original_transaction_id = fields.transaction_id = None
    fields.producer_id = producer
    text = decode_text(original.identifier)
    fields.message_id = MessageId(producer, offset, sequence, text)
    fields.persistent, fields.expiration = True, 0
    fields.marshalled_properties = encode_map({**properties_of(fields), **properties})
    return encoded(fields, sequence)


def original_of(frame: bytes) -> tuple[openwire.Message, dict[str, Value], str] | None:
    """Return what JMS's producer sent, its properties and JMSMessageID; None for another message.

    Raises MalformedMessageError.
    """
    if not frame.startswith(_MARKED, 1):
        return None
    fields, _ = openwire.decode(frame)
    if not isinstance(fields, openwire.Message):
        raise MalformedMessageError(f"{type(fields).__name__} where a message must be")
    return fields, properties_of(fields), str(fields.message_id)


def plain_body(message_type: int, fields: openwire.Message) -> tuple[bytes, str]:
    """Return the body as readers of streams see it, and what BODY says of it: empty for bytes.

    What cannot be read is bytes.
    """
    try:
        body = decode_body(message_type, fields.content, fields.compressed)
    except MalformedMessageError:
        return fields.content or b"", ""
    if isinstance(body, str):
        return body.encode("utf-8", "replace"), TEXT
    if isinstance(body, JavaObject):
        return bytes(body), "object"
    if isinstance(body, bytes):
        return body, ""
    if body is None:
        return b"", ""
    kind = "map" if isinstance(body, Mapping) else "stream"
    return json.dumps(body, default=_hexadecimal, ensure_ascii=False).encode(), kind


def _hexadecimal(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def text_of(value: Value) -> str:
    """Return a property as a text, as Java's String.valueOf does."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
