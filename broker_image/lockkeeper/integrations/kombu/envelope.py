"""Envelopes: kombu's messages as OpenWire messages, and back.

The body goes as it is: a text as a TextMessage, bytes as a BytesMessage. What kombu adds to it is
JSON in the property `kombu`. A message without that property, such as one of a Java application,
has its properties as headers.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kombu.utils import json

from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.message.bodies import Body
from lockkeeper.message.primitives import Value

ENVELOPE, CONTENT_TYPE = "kombu", "content_type"
SCHEDULED = "AMQ_SCHEDULED_"
DELAY = f"{SCHEDULED}DELAY"
PERSISTENT = 2
PRIORITY_MAX = 9
REDELIVERED = "redelivered"
_NOT_SENT = ("delivery_info", "delivery_tag", "body_encoding")


class UnreadableError(ValueError):
    """A message is none of kombu's, nor of any application that kombu could understand."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """Everything that is sent; `time_to_live` in seconds, None for ever."""

    body: str | bytes
    properties: dict[str, Value]
    persistent: bool
    priority: int
    time_to_live: float | None
    correlation_id: str | None
    type: str | None


@dataclass(frozen=True, slots=True)
class Opened:
    """A received message, in kombu's terms."""

    body: str | bytes
    content_type: str
    content_encoding: str
    headers: dict[str, Any]
    properties: dict[str, Any]
    exchange: str
    routing_key: str
    redelivered: bool


def close_envelope(
    message: Mapping[str, Any],
    exchange: str,
    routing_key: str,
    *,
    is_scheduled: bool,
) -> Envelope:
    """Return what is sent for a message that `Channel.prepare_message` has made.

    With *is_scheduled* a task's `eta` is told to the broker's scheduler, where there is one.
    """
    properties = dict(message["properties"])
    headers = message["headers"] or {}
    inside = {
        "content_type": message["content-type"],
        "content_encoding": message["content-encoding"],
        "headers": headers,
        "properties": {name: each for name, each in properties.items() if name not in _NOT_SENT},
        "exchange": exchange,
        "routing_key": routing_key,
    }
    carried: dict[str, Value] = {ENVELOPE: json.dumps(inside)}
    if message["content-type"]:
        carried[CONTENT_TYPE] = str(message["content-type"])
    if is_scheduled and (delay := _delay(headers.get("eta"))):
        carried[DELAY] = delay
    expiration = properties.get("expiration")
    task = headers.get("task")
    correlation_id = properties.get("correlation_id")
    return Envelope(
        _body_of(message["body"], message["content-encoding"], headers),
        carried,
        properties.get("delivery_mode", PERSISTENT) == PERSISTENT,
        min(max(int(properties.get("priority") or 0), 0), PRIORITY_MAX),
        # AMQP has ms, as a text.
        None if expiration in (None, "") else max(0.001, float(str(expiration)) / 1000),
        None if correlation_id is None else str(correlation_id),
        None if task is None else str(task),
    )


def open_envelope(received: ReceivedMessage) -> Opened:
    """Return what a received message says. Raises UnreadableError."""
    try:
        return _opened(received)
    except Exception as error:
        # Kombu's JSON makes objects of what it reads, and these raise what they like.
        raise UnreadableError(f"nobody can read it: {error!r}") from error


def _opened(received: ReceivedMessage) -> Opened:
    text = received.properties.get(ENVELOPE)
    destination = received.destination
    name = "" if destination is None else destination.name
    if not isinstance(text, str):
        return _from_elsewhere(received, name)
    inside = json.loads(text)
    return Opened(
        _as_sent(received.body),
        inside["content_type"],
        inside["content_encoding"],
        _mapping(inside, "headers"),
        _mapping(inside, "properties"),
        inside["exchange"],
        inside["routing_key"],
        received.redelivered or bool(inside.get(REDELIVERED)),
    )


def _mapping(inside: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = inside[name] or {}
    if not isinstance(found, dict):
        raise TypeError(f"{name} is a {type(found).__name__}")
    return found


def with_redelivered(properties: Mapping[str, Value]) -> dict[str, Value]:
    """Return the properties of a message that can be read, to send it again without a delay."""
    found = {name: each for name, each in properties.items() if not name.startswith(SCHEDULED)}
    text = found.get(ENVELOPE)
    if isinstance(text, str):
        found[ENVELOPE] = json.dumps({**json.loads(text), REDELIVERED: True})
    return found


def seconds_left(received: ReceivedMessage) -> float | None:
    """Return how long a message may live on, None for ever."""
    if not received.expiration:
        return None
    return max(0.001, received.expiration / 1000 - time.time())


def _body_of(
    body: str | bytes | bytearray | memoryview, encoding: str | None, headers: Mapping[str, Any]
) -> str | bytes:
    """Return a body to be sent; texts that kombu has encoded as the texts that they are."""
    if isinstance(body, str):
        return body
    raw = bytes(body)
    if str(encoding).lower() != "utf-8" or "compression" in headers:
        return raw
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw


def _from_elsewhere(received: ReceivedMessage, queue: str) -> Opened:
    body = _as_sent(received.body)
    is_text = isinstance(body, str)
    kind = received.properties.get(CONTENT_TYPE)
    properties: dict[str, Any] = {"priority": received.priority}
    if received.correlation_id:
        properties["correlation_id"] = received.correlation_id
    if received.reply_to is not None:
        properties["reply_to"] = received.reply_to.name
    return Opened(
        body,
        kind if isinstance(kind, str) else ("text/plain" if is_text else "application/data"),
        "utf-8" if is_text else "binary",
        dict(received.properties),
        properties,
        "",
        queue,
        received.redelivered,
    )


def _as_sent(body: Body) -> str | bytes:
    """Return a body that kombu can read; maps and lists of Java applications as JSON."""
    if body is None:
        return ""
    if isinstance(body, str | bytes):
        return body
    text: str = json.dumps(body)
    return text


def _delay(eta: object) -> int:
    """Return in how many ms a task is due; 0 when it has no such time, or it is past."""
    if isinstance(eta, str):
        try:
            eta = datetime.fromisoformat(eta)
        except ValueError:
            return 0
    if not isinstance(eta, datetime):
        return 0
    due = eta if eta.tzinfo else eta.replace(tzinfo=UTC)
    return max(0, round((due.timestamp() - time.time()) * 1000))
