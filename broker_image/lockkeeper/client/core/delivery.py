"""Deliveries: dispatched messages, of which only so much is read as is needed.

Frames of versions 10 to 12 stay the bytes they are: their ids are found by the bytes they begin
with, which are mostly those of the message before (openwire.md sections 6 and 8).
"""

from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.layout import (
    MESSAGE_TYPES,
    PRODUCER_ID_AT,
    Lead,
    read_lead,
    skip_nested,
    skip_octets,
    skip_string,
)
from lockkeeper.message.openwire import Codec, ConsumerId, Message, MessageDispatch
from lockkeeper.message.openwire.wiretypes import BadValueError
from lockkeeper.message.primitives import decode_map

DISPATCH = 21
SPLICED_VERSION_MIN = 10
KNOWN_MAX = 8
"""So many producers and consumers are told by their first bytes."""
_IDS = Struct(">qq")
_FLAGS = Struct(">?qB")
_AFTER_COMMAND = 6
_FLAGS_BYTES = 10
_REDELIVERY_DELAY = "redeliveryDelay"
"""A property with the delay in ms, which the broker's redelivery leaves in a message."""


class Delivery:
    """A message that was dispatched to a consumer; without one, the end of a pull or a browse.

    `arrival` numbers the deliveries of a consumer; `generation` is that of their link. One that
    `is_repeated` was acknowledged before; one that `is_reported` has opened the window already.
    """

    __slots__ = (
        "arrival",
        "broker_sequence",
        "codec",
        "consumer_id",
        "destination",
        "expiration",
        "flags_at",
        "frame",
        "generation",
        "is_repeated",
        "is_reported",
        "lead",
        "message_at",
        "message_read",
        "priority",
        "producer_sequence",
        "redelivery_counter",
    )

    def __init__(self, consumer_id: ConsumerId, destination: Destination | None) -> None:
        self.consumer_id = consumer_id
        self.destination = destination
        self.arrival = self.generation = 0
        self.frame = b""
        self.message_at = self.flags_at = 0
        self.redelivery_counter = 0
        self.message_read: Message | None = None
        self.is_repeated = self.is_reported = False

    codec: Codec
    lead: "Prefix"
    producer_sequence: int
    broker_sequence: int
    expiration: int
    priority: int

    @property
    def has_message(self) -> bool:
        """Tell whether it is a message at all."""
        return bool(self.message_at) or self.message_read is not None

    @property
    def message(self) -> Message:
        """The whole message. Raises MalformedMessageError."""
        if self.message_read is None:
            found, _ = self.codec.decode(self.frame, self.message_at)
            assert isinstance(found, Message)
            self.message_read = found
        return self.message_read

    @property
    def message_id(self) -> MessageId:
        """The id, as the broker knows it."""
        if self.message_read is not None:
            assert self.message_read.message_id is not None
            return self.message_read.message_id
        lead = self.lead
        return MessageId(
            lead.producer_id, self.producer_sequence, self.broker_sequence, lead.text_view
        )

    @property
    def key(self) -> tuple[object, int, object]:
        """Key by which a message is known when a broker sends it to a destination again."""
        if self.message_at:
            return self.lead.identity, self.producer_sequence, self.destination
        return str(self.message_id), 0, self.destination

    @property
    def id_wire(self) -> bytes:
        """The bytes of the id as a nested object; for deliveries of versions 10 to 12."""
        return self.lead.id_head + _IDS.pack(self.producer_sequence, self.broker_sequence)

    @property
    def is_redelivered_by_policy(self) -> bool:
        """Tell whether the broker redelivers it by a policy of its own, which counts for itself.

        ActiveMQ's client hands such messages out whatever its own limit is, too.
        """
        try:
            marshalled = self.message.marshalled_properties
            properties = decode_map(marshalled)[0] if marshalled else None
        except MalformedMessageError:
            return False
        return _REDELIVERY_DELAY in (properties or {})

    def content(self) -> tuple[bytes | None, bool]:
        """Return the body's bytes, and whether they are compressed; MalformedMessageError."""
        if not self.message_at or self.message_read is not None:
            return self.message.content, self.message.compressed
        frame = self.frame
        try:
            at = skip_string(frame, skip_nested(frame, self.flags_at + _FLAGS_BYTES) + 8)
            end = skip_octets(frame, at)
            after = skip_octets(frame, end)
            if frame[after] or frame[after + 1]:
                return self.message.content, self.message.compressed
            found = frame[at + 5 : end] if frame[at] else None
            return found, frame[after + 2] == 1
        except (IndexError, UnicodeDecodeError) as error:
            raise MalformedMessageError(f"the message ends within its header: {error}") from error


class Prefix(NamedTuple):
    """Beginning of all messages of one producer to one destination, and what it says."""

    start: bytes
    lead: Lead
    destination: Destination
    producer_id: ProducerId | None
    text_view: str | None
    id_head: bytes
    identity: object


class _Opening(NamedTuple):
    """What dispatches to one consumer begin with, up to the message."""

    start: bytes
    consumer_id: ConsumerId
    destination: Destination | None
    size: int


class DispatchReader:
    """Reads the dispatches of one link."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._is_spliced = codec.version >= SPLICED_VERSION_MIN
        self._openings: list[_Opening] = []
        self._prefixes: list[Prefix] = []

    def read(self, frame: bytes) -> Delivery:
        """Return what a frame of type 21 delivers. Raises MalformedMessageError."""
        if not self._is_spliced:
            return self._read_whole(frame)
        opening = self._opening_of(frame)
        at = opening.size
        delivery = Delivery(opening.consumer_id, opening.destination)
        try:
            is_message = frame[at] != 0
            if not is_message:
                return delivery
            start = at + 1
            prefix = self._prefix_of(frame, start)
            ids_at = start + PRODUCER_ID_AT + len(prefix.start)
            delivery.producer_sequence, delivery.broker_sequence = _IDS.unpack_from(frame, ids_at)
            flags = prefix.lead.find_persistent(frame, start)
            _, delivery.expiration, delivery.priority = _FLAGS.unpack_from(frame, flags)
        except (IndexError, StructError) as error:
            raise MalformedMessageError(f"a dispatch is cut short: {error}") from error
        delivery.codec = self._codec
        delivery.lead = prefix
        delivery.frame = frame
        delivery.message_at = start
        delivery.flags_at = flags
        delivery.redelivery_counter = int.from_bytes(frame[-4:], "big", signed=True)
        if delivery.destination is None:
            delivery.destination = prefix.destination
        return delivery

    def _opening_of(self, frame: bytes) -> _Opening:
        for opening in self._openings:
            if frame.startswith(opening.start, _AFTER_COMMAND):
                return opening
        found = self._read_opening(frame)
        self._openings = [found, *self._openings[: KNOWN_MAX - 1]]
        return found

    def _read_opening(self, frame: bytes) -> _Opening:
        decode = self._codec.decode
        try:
            if not frame[_AFTER_COMMAND]:
                raise MalformedMessageError("a dispatch names no consumer")
            consumer_id, at = decode(frame, _AFTER_COMMAND + 1)
            destination = None
            if frame[at]:
                destination, at = decode(frame, at + 1)
            else:
                at += 1
        except (IndexError, BadValueError) as error:
            raise MalformedMessageError(f"a dispatch is cut short: {error}") from error
        if not isinstance(consumer_id, ConsumerId):
            raise MalformedMessageError("a dispatch names no consumer")
        if destination is not None and not isinstance(destination, Destination):
            raise MalformedMessageError("a dispatch names no destination")
        return _Opening(frame[_AFTER_COMMAND:at], consumer_id, destination, at)

    def _prefix_of(self, frame: bytes, start: int) -> Prefix:
        for prefix in self._prefixes:
            if frame.startswith(prefix.start, start + PRODUCER_ID_AT):
                return prefix
        if frame[start] not in MESSAGE_TYPES:
            raise MalformedMessageError(f"a dispatch of type {frame[start]}, which is no message")
        lead = read_lead(frame, start, len(frame))
        message, _ = self._codec.decode(frame, start)
        assert isinstance(message, Message) and message.message_id is not None
        ids = message.message_id
        destination = message.destination
        assert destination is not None
        head = self._codec.encode(MessageId(ids.producer_id, 0, 0, ids.text_view))
        found = Prefix(
            frame[start + PRODUCER_ID_AT : start + lead.sequence_at],
            lead,
            destination,
            ids.producer_id,
            ids.text_view,
            b"\x01" + head[:-16],
            ids.text_view or ids.producer_id,
        )
        self._prefixes = [found, *self._prefixes[: KNOWN_MAX - 1]]
        return found

    def _read_whole(self, frame: bytes) -> Delivery:
        """Read a dispatch of versions 1 to 9, whose messages are laid out in other ways."""
        found, _ = self._codec.decode(frame)
        assert isinstance(found, MessageDispatch)
        if not isinstance(found.consumer_id, ConsumerId):
            raise MalformedMessageError("a dispatch names no consumer")
        message = found.message
        delivery = Delivery(found.consumer_id, found.destination)
        if message is None:
            return delivery
        if message.message_id is None:
            raise MalformedMessageError("a message without its id")
        delivery.codec = self._codec
        delivery.message_read = message
        delivery.producer_sequence = message.message_id.producer_sequence
        delivery.broker_sequence = message.message_id.broker_sequence
        delivery.expiration, delivery.priority = message.expiration, message.priority
        delivery.redelivery_counter = found.redelivery_counter
        delivery.destination = found.destination or message.destination
        return delivery
