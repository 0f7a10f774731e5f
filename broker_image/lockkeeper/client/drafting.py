"""Drafts: what an application wants to send, as OpenWire carries it."""

import time
from collections.abc import Callable, Collection, Mapping
from copy import copy
from typing import TypeAlias, TypedDict

from lockkeeper.client.blobs import Blob
from lockkeeper.client.core.encoding import COMPRESSED_TAIL, PLAIN_TAIL, Headers, blob_tail
from lockkeeper.client.core.producer import Draft, ProducerCore
from lockkeeper.client.errors import IllegalStateError
from lockkeeper.client.links.runner import Runner
from lockkeeper.client.messages import DestinationName, ReceivedMessage, destination_of
from lockkeeper.client.tracing import traced
from lockkeeper.message.bodies import Body, JavaObject, MessageType, encode_body
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import ProducerId
from lockkeeper.message.openwire import Message
from lockkeeper.message.primitives import Value, encode_map

PRIORITY_DEFAULT = 4
PRIORITY_MAX = 9
Parts: TypeAlias = tuple[
    Runner, ProducerCore, Callable[[ProducerCore], None], Destination | None, bool, int,
    float | None, bool,
]  # fmt: skip
"""Arguments of `Drafting`."""

WINDOW_MESSAGES = 100
"""So many messages of `send_many` are on the way at once."""


class SendOptions(TypedDict, total=False):
    """Arguments of `Producer.send` beyond body and properties."""

    destination: DestinationName | None
    persistent: bool | None
    priority: int | None
    time_to_live: float | None
    correlation_id: str | None
    reply_to: DestinationName | None
    type: str | None
    group_id: str | None
    group_sequence: int


class Drafting:
    """A producer of either face, as far as nothing waits: its settings and drafts, and its end.

    `persistent`, `priority` (0 to 9) and `time_to_live` (seconds, None for ever) hold for every
    message that does not say otherwise, and may be changed.
    """

    def __init__(
        self,
        runner: Runner,
        core: ProducerCore,
        leave: Callable[[ProducerCore], None],
        destination: Destination | None,
        persistent: bool,
        priority: int,
        time_to_live: float | None,
        compress: bool,
    ) -> None:
        """*leave* takes it out of its session."""
        self.core = core
        self._runner = runner
        self._leave = leave
        self.destination = destination
        self.persistent = persistent
        self.priority = priority
        self.time_to_live = time_to_live
        self.compress = compress

    @property
    def identifier(self) -> ProducerId:
        """The id; the JMSMessageID of message n is `identifier:n`."""
        return self.core.identifier

    def parts(self) -> "Parts":
        """Return what a producer of either face is made of, to make that of the other."""
        return (
            self._runner, self.core, self._leave, self.destination, self.persistent,
            self.priority, self.time_to_live, self.compress,
        )  # fmt: skip

    def close_at_once(self) -> None:
        """Tell the broker that the producer is no more; for any thread."""
        with self._runner.lock:
            self._leave(self.core)
            self._runner.flush(False)

    def draft(
        self,
        body: Body | Blob,
        properties: "Mapping[str, Value] | bytes | None",
        destination: DestinationName | None = None,
        persistent: bool | None = None,
        priority: int | None = None,
        time_to_live: float | None = None,
        correlation_id: str | None = None,
        reply_to: DestinationName | None = None,
        type: str | None = None,
        group_id: str | None = None,
        group_sequence: int = 0,
    ) -> Draft:
        """Return the draft of a message. Raises ValueError for what OpenWire cannot carry."""
        kind, content, tail = _carried(body, self.compress)
        target = self._target(destination)
        seconds = self.time_to_live if time_to_live is None else time_to_live
        timestamp = int(time.time() * 1000)
        headers = None
        if correlation_id or reply_to or type or group_id or group_sequence:
            headers = Headers(
                correlation_id,
                None if reply_to is None else destination_of(reply_to),
                type,
                group_id,
                group_sequence,
            )
        marshalled = properties if isinstance(properties, bytes) else marshal(properties)
        return Draft(
            kind,
            target,
            self.persistent if persistent is None else persistent,
            check_priority(self.priority if priority is None else priority),
            timestamp + max(1, int(seconds * 1000)) if seconds else 0,
            timestamp,
            content,
            marshalled,
            headers,
            tail,
        )

    def forwarded(
        self,
        received: ReceivedMessage,
        destination: DestinationName | None,
        without: Collection[str],
        extra: Mapping[str, Value] | None = None,
    ) -> Message:
        """Return a received message to be sent on, without an expiry; see `Producer.forward`."""
        message = copy(received.fields)
        message.destination = self._target(destination)
        kept = {name: each for name, each in received.properties.items() if name not in without}
        kept.update(extra or {})
        message.marshalled_properties = encode_map(kept) if kept else None
        message.original_destination = message.original_transaction_id = None
        message.transaction_id = message.broker_path = message.target_consumer_id = None
        message.redelivery_counter = message.expiration = 0
        message.priority = check_priority(received.priority)
        message.timestamp = int(time.time() * 1000)
        return message

    def _target(self, destination: DestinationName | None) -> Destination:
        target = self.destination if destination is None else destination_of(destination)
        if target is None:
            raise IllegalStateError("the producer has no destination, so each message needs one")
        return target


def marshal(properties: Mapping[str, Value] | None) -> bytes | None:
    """Return properties as OpenWire carries them, with the trace context that is current."""
    carried = traced(properties)
    return encode_map(carried) if carried else None


def check_priority(priority: int) -> int:
    """Return *priority*; ValueError when it is not 0 to 9."""
    if not 0 <= priority <= PRIORITY_MAX:
        raise ValueError(f"a priority is 0 to {PRIORITY_MAX}, not {priority}")
    return priority


def _carried(body: Body | Blob, compress: bool) -> tuple[MessageType, bytes | None, bytes]:
    """Return what carries a body: the type, the content and the end of a message."""
    if isinstance(body, Blob):
        return (
            MessageType.BLOB,
            None,
            blob_tail(body.url, body.mime_type, body.deleted_by_broker),
        )
    kind = _kind_of(body)
    if compress and body is not None:
        return kind, encode_body(kind, body, True), COMPRESSED_TAIL
    return kind, encode_body(kind, body), PLAIN_TAIL


def _kind_of(body: Body) -> MessageType:
    if isinstance(body, bytes):
        return MessageType.OBJECT if isinstance(body, JavaObject) else MessageType.BYTES
    if isinstance(body, str):
        return MessageType.TEXT
    if body is None:
        return MessageType.MESSAGE
    if isinstance(body, Mapping):
        return MessageType.MAP
    if isinstance(body, list):
        return MessageType.STREAM
    raise ValueError(
        "a message body is a str, bytes, a mapping, a list, a Blob or None, "
        f"not {type(body).__name__}"
    )
