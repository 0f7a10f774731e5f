"""Message headers and properties by name, as a selector sees them."""

from collections.abc import Callable

from lockkeeper.broker.selectors import Lookup, Value
from lockkeeper.message.broker_path import broker_path, names_of
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import Message as Fields
from lockkeeper.message.rewrite import decoded, properties_of

BROKER_PATH = "broker path"
"""What only bridges ask for; the name is none that a selector may use."""

PATH_SEPARATOR = "\n"

_HEADERS: dict[str, Callable[[Fields], Value]] = {
    "JMSDestination": lambda fields: str(fields.destination),
    "JMSReplyTo": lambda fields: str(fields.reply_to) if fields.reply_to else None,
    "JMSType": lambda fields: fields.type,
    "JMSDeliveryMode": lambda fields: "PERSISTENT" if fields.persistent else "NON_PERSISTENT",
    "JMSPriority": lambda fields: fields.priority,
    "JMSMessageID": lambda fields: str(fields.message_id),
    "JMSTimestamp": lambda fields: fields.timestamp,
    "JMSCorrelationID": lambda fields: fields.correlation_id,
    "JMSExpiration": lambda fields: fields.expiration,
    "JMSRedelivered": lambda fields: fields.redelivery_counter > 0,
    "JMSXDeliveryCount": lambda fields: fields.redelivery_counter + 1,
    "JMSXGroupID": lambda fields: fields.group_id,
    "JMSXGroupSeq": lambda fields: fields.group_sequence if fields.group_id else None,
    "JMSXUserID": lambda fields: fields.user_id,
    "JMSXProducerTXID": lambda fields: (
        str(fields.original_transaction_id or fields.transaction_id or "") or None
    ),
    BROKER_PATH: lambda fields: PATH_SEPARATOR.join(names_of(fields.broker_path)) or None,
}


def property_lookup(message: Message) -> Lookup:
    """Return the function a selector asks for names; the message is decoded at its first use."""
    found: list[tuple[Fields, dict[str, Value]]] = []

    def lookup(name: str) -> Value:
        if not found:
            if name == BROKER_PATH:
                return PATH_SEPARATOR.join(broker_path(message.body)) or None
            found.append(_decode(message))
        fields, properties = found[0]
        header = _HEADERS.get(name)
        if header is not None:
            return header(fields)
        return properties.get(name)

    return lookup


def _decode(message: Message) -> tuple[Fields, dict[str, Value]]:
    fields = decoded(message)
    try:
        properties = properties_of(fields)
    except MalformedMessageError:
        # A message whose properties nobody can read matches no selector that asks for one.
        properties = {}
    return fields, {name: _plain(value) for name, value in properties.items()}


def _plain(value: object) -> Value:
    """Return *value* as selectors know values; maps, lists and bytes are nothing to them."""
    if value is None or isinstance(value, bool):
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return None
