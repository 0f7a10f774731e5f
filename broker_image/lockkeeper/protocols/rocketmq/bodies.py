"""Bodies in JSON: what clients tell of themselves and ask for, and what they are told.

Java's clients write and read maps whose keys are objects, which is more than JSON has: those are
written by `object_map`. What clients send is read leniently, and limited.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from lockkeeper.protocols.rocketmq.errors import ProtocolError

NAME_CHARACTERS_MAX: Final = 255
JSON_BYTES_MAX: Final = 4 << 20
"""What is read at once, while all others wait: that of 65,536 queues with short names."""
MEMBERSHIPS_MAX: Final = 1_000
SUBSCRIPTIONS_MAX: Final = 10_000
QUEUES_MAX: Final = 65_536
EXPRESSION_CHARACTERS_MAX: Final = 64 << 10


class QueueName(NamedTuple):
    """A queue of a topic, as clients name it."""

    topic: str
    broker: str
    queue: int

    def told(self) -> dict[str, Any]:
        """Return what JSON has for it."""
        return {"brokerName": self.broker, "queueId": self.queue, "topic": self.topic}


class Subscription(NamedTuple):
    """A subscription of a consumer: an expression of the type TAG or SQL92."""

    topic: str
    expression: str = "*"
    kind: str = "TAG"
    version: int = 0
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Membership:
    """A consumer's part in a group, in RocketMQ's words for how it consumes."""

    group: str
    kind: str
    model: str
    begins: str
    subscriptions: tuple[Subscription, ...]

    @property
    def is_push(self) -> bool:
        """Tell whether the client pushes to its listener."""
        return self.kind == "CONSUME_PASSIVELY"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Facts that a client tells of itself every 30 s."""

    client_id: str
    producer_groups: tuple[str, ...]
    memberships: tuple[Membership, ...]


class LockRequest(NamedTuple):
    """Queues that a member of a group wants to hold, or gives back."""

    group: str
    client_id: str
    queues: tuple[QueueName, ...]


def encode_json(told: Any) -> bytes:
    """Return JSON as clients are sent it."""
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def object_map(entries: Iterable[tuple[Mapping[str, Any], Any]]) -> bytes:
    """Return a map whose keys are objects, as fastjson has them."""
    return b"{%b}" % b",".join(
        b"%b:%b" % (encode_json(key), encode_json(value)) for key, value in entries
    )


def with_object_map(
    name: str, entries: Iterable[tuple[Mapping[str, Any], Any]], others: Mapping[str, Any]
) -> bytes:
    """Return an object with such a map called *name*, and the *others*."""
    rest = b"".join(
        b"," + encode_json(key) + b":" + encode_json(value) for key, value in others.items()
    )
    return b"{%b:%b%b}" % (encode_json(name), object_map(entries), rest)


def read_object(body: bytes) -> dict[str, Any]:
    """Return the object that a body holds. Raises ProtocolError."""
    if len(body) > JSON_BYTES_MAX:
        raise ProtocolError(f"a body of {len(body)} bytes of JSON; it has up to {JSON_BYTES_MAX}")
    try:
        told = json.loads(body)
    except (ValueError, RecursionError) as wrong:
        raise ProtocolError(f"a body that is no JSON: {wrong}") from wrong
    if not isinstance(told, dict):
        raise ProtocolError("a body that is no JSON object")
    return told


def read_heartbeat(body: bytes) -> Heartbeat:
    """Return what a heartbeat tells. Raises ProtocolError."""
    told = read_object(body)
    producers = _objects(told, "producerDataSet", MEMBERSHIPS_MAX)
    consumers = _objects(told, "consumerDataSet", MEMBERSHIPS_MAX)
    return Heartbeat(
        _name(told, "clientID"),
        tuple(_name(each, "groupName") for each in producers),
        tuple(map(_read_membership, consumers)),
    )


def _read_membership(told: dict[str, Any]) -> Membership:
    subscriptions = _objects(told, "subscriptionDataSet", SUBSCRIPTIONS_MAX)
    return Membership(
        _name(told, "groupName"),
        _word(told, "consumeType", "CONSUME_PASSIVELY"),
        _word(told, "messageModel", "CLUSTERING"),
        _word(told, "consumeFromWhere", "CONSUME_FROM_LAST_OFFSET"),
        tuple(map(_read_subscription, subscriptions)),
    )


def read_subscription(told: object) -> Subscription:
    """Return the subscription that a part of a body tells. Raises ProtocolError."""
    if not isinstance(told, dict):
        raise ProtocolError("a subscription that is no JSON object")
    return _read_subscription(told)


def _read_subscription(told: dict[str, Any]) -> Subscription:
    expression = told.get("subString")
    if not isinstance(expression, str):
        expression = "*"
    if len(expression) > EXPRESSION_CHARACTERS_MAX:
        raise ProtocolError(
            f"a subscription of {len(expression)} characters; it has up to "
            f"{EXPRESSION_CHARACTERS_MAX}"
        )
    tags = told.get("tagsSet")
    return Subscription(
        _name(told, "topic"),
        expression,
        _word(told, "expressionType", "TAG"),
        _whole(told, "subVersion"),
        tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
    )


def read_lock_request(body: bytes) -> LockRequest:
    """Return the queues that a member wants to lock or unlock. Raises ProtocolError."""
    told = read_object(body)
    queues = _objects(told, "mqSet", QUEUES_MAX)
    return LockRequest(
        _name(told, "consumerGroup"),
        _name(told, "clientId"),
        tuple(
            QueueName(_name(each, "topic"), _word(each, "brokerName", ""), _whole(each, "queueId"))
            for each in queues
        ),
    )


def _objects(told: dict[str, Any], name: str, most: int) -> list[dict[str, Any]]:
    value = told.get(name, [])
    if not isinstance(value, list) or len(value) > most:
        raise ProtocolError(f"{name} is no list of up to {most} objects")
    if not all(isinstance(each, dict) for each in value):
        raise ProtocolError(f"{name} holds something that is no object")
    return value


def _name(told: dict[str, Any], name: str) -> str:
    value = told.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= NAME_CHARACTERS_MAX:
        raise ProtocolError(f"{name} is no text of 1 to {NAME_CHARACTERS_MAX} characters")
    return value


def _word(told: dict[str, Any], name: str, otherwise: str) -> str:
    value = told.get(name)
    if isinstance(value, str) and len(value) <= NAME_CHARACTERS_MAX:
        return value
    return otherwise


def _whole(told: dict[str, Any], name: str) -> int:
    value = told.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 63:
        raise ProtocolError(f"{name} is no number of 64 bits")
    return value
