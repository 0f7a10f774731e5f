"""The payload of an event: a message in what JSON knows."""

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from lockkeeper.client import ReceivedMessage


def payload_of(message: ReceivedMessage) -> dict[str, Any]:
    """Return a message as Airflow stores it. Raises MalformedMessageError.

    `body` is a string, list or object; bytes are base64, floats that JSON has not are strings.
    """
    return {
        "message_id": message.message_id,
        "correlation_id": message.correlation_id,
        "type": message.type,
        "destination": None if message.destination is None else str(message.destination),
        "delivery_count": message.delivery_count,
        "message_type": message.message_type.name.lower(),
        "properties": _plain(message.properties),
        "body": _plain(message.body),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value
