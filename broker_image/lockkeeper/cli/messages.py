"""Received messages for people and for scripts."""

import base64
import json
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import typer

from lockkeeper.client import ReceivedMessage
from lockkeeper.message.bodies import Body
from lockkeeper.message.destination import Destination

BYTES_SHOWN_MAX = 32


def message_object(message: ReceivedMessage) -> dict[str, Any]:
    """Return a message as JSON has it; times in ms since 1970, absent fields left out.

    A body of bytes is base64, and `bodyEncoding` says so. Raises MalformedMessageError.
    """
    body = message.body
    fields: dict[str, Any] = {
        "messageId": message.message_id,
        "destination": _name(message.destination),
        "originalDestination": _name(message.original_destination),
        "type": message.message_type.name.lower(),
        "timestamp": message.timestamp or None,
        "expiration": message.expiration or None,
        "priority": message.priority,
        "persistent": message.persistent,
        "deliveryCount": message.delivery_count,
        "correlationId": message.correlation_id,
        "replyTo": _name(message.reply_to),
        "jmsType": message.type,
        "groupId": message.group_id,
        "groupSequence": message.group_sequence or None,
        "userId": message.user_id,
        "properties": dict(message.properties) or None,
        "bodyEncoding": "base64" if isinstance(body, bytes) else None,
    }
    found = {name: value for name, value in fields.items() if value is not None}
    return found | {"body": body}


def message_json(message: ReceivedMessage, indent: int | None = None) -> str:
    """Return a message as JSON, in one line unless it is to be indented."""
    return json.dumps(message_object(message), default=_plain, ensure_ascii=False, indent=indent)


def header_line(message: ReceivedMessage) -> str:
    """Return when a message was sent, its id, and whatever is unusual about it, in a line."""
    parts = [time_text(message.timestamp), message.message_id]
    if message.delivery_count > 1:
        parts.append(f"delivery {message.delivery_count}")
    if message.priority != 4:
        parts.append(f"priority {message.priority}")
    for title, value in (
        ("type", message.type),
        ("correlation", message.correlation_id),
        ("reply to", message.reply_to),
        ("group", message.group_id),
        ("sent to", message.original_destination),
    ):
        parts += [f"{title} {value}"] if value else []
    if message.expiration:
        parts.append(f"expires {time_text(message.expiration)}")
    return "  ".join([*parts, properties_text(message)]).rstrip()


def properties_text(message: ReceivedMessage) -> str:
    """Return the properties as `name=value name=value`; texts with spaces in quotes."""
    return " ".join(
        f"{name}={_value_text(value)}" for name, value in sorted(message.properties.items())
    )


def body_text(body: Body) -> str:
    """Return a body for people: text as it is, bytes by their first, values as JSON."""
    if body is None:
        return "(no body)"
    if isinstance(body, str):
        return body
    if isinstance(body, bytes):
        if (text := _as_text(body)) is not None:
            return text
        more = " …" if len(body) > BYTES_SHOWN_MAX else ""
        return f"({len(body):,} bytes: {body[:BYTES_SHOWN_MAX].hex(' ')}{more})"
    return json.dumps(body, default=_plain, ensure_ascii=False)


def write_body(body: Body, raw: bool) -> None:
    """Write a body to standard output, whole; a *raw* one without a line end after it."""
    if isinstance(body, bytes):
        data = body
    elif isinstance(body, str):
        data = body.encode("utf-8", "surrogatepass")
    else:
        data = b"" if body is None else json.dumps(body, default=_plain).encode()
    sys.stdout.flush()
    sys.stdout.buffer.write(data if raw else data + b"\n")
    sys.stdout.buffer.flush()


def time_text(milliseconds: int) -> str:
    """Return a time for people, in the local zone."""
    if not milliseconds:
        return "-"
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"
    return moment.isoformat(" ", "milliseconds")


def printable(text: str) -> str:
    """Return *text* without characters that would steer a terminal."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else "�" for character in text
    )


def echo_message(message: ReceivedMessage) -> None:
    """Print a message for people: its header line, dim on a terminal, and its body below."""
    typer.secho(printable(header_line(message)), dim=True)
    print(printable(body_text(message.body)), flush=True)


def _as_text(data: bytes) -> str | None:
    """Return *data* as the text that it seems to be, else None."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text == printable(text) else None


def _value_text(value: object) -> str:
    if isinstance(value, str) and value and not any(map(str.isspace, value)):
        return value
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: object) -> object:
    """Return what JSON has instead of a value it does not know."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def _name(destination: Destination | None) -> str | None:
    return None if destination is None else str(destination)
