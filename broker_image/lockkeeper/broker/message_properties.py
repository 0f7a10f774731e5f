"""Message headers and properties by name, as a selector sees them."""

from collections.abc import Callable

from lockkeeper.broker.selectors import Lookup, Value
from lockkeeper.message.broker_path import broker_path
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import Message as Fields
from lockkeeper.message.patching import properties_in
from lockkeeper.message.rewrite import decoded

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
}


def property_lookup(message: Message) -> Lookup:
    """Return the function a selector asks for names.

    Only headers need the whole message decoded, and only its first one does it.
    """
    fields: Fields | None = None
    properties: dict[str, Value] | None = None

    def lookup(name: str) -> Value:
        nonlocal fields, properties
        if name == BROKER_PATH:
            return PATH_SEPARATOR.join(broker_path(message.body)) or None
        header = _HEADERS.get(name)
        if header is None:
            if properties is None:
                properties = _properties(message)
            return properties.get(name)
        if fields is None:
            fields = decoded(message)
        return header(fields)

    return lookup


def _properties(message: Message) -> dict[str, Value]:
    try:
        properties = properties_in(message)
    except MalformedMessageError:
        # A message whose properties nobody can read matches no selector that asks for one.
        return {}
    return {name: _plain(value) for name, value in properties.items()}


def _plain(value: object) -> Value:
    """Return *value* as selectors know values; maps, lists and bytes are nothing to them."""
    if value is None or isinstance(value, bool):
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return None
