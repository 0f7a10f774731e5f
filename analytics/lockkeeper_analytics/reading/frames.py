"""Facts of a message, read from its loose bytes with as little decoding as possible.

A producer's messages begin alike: while the bytes up to the sequence number are those of a recent
message, one `struct` call reads what follows them. What has rare fields is decoded in full by the
OpenWire codec. openwire.md sections 6 and 8.
"""

from struct import Struct
from typing import NamedTuple

from lockkeeper.message import openwire
from lockkeeper.message.broker_path import names_of
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.layout import (
    BLOB_MESSAGE,
    BROKER_IN_TIME_FROM_END,
    PRODUCER_ID_AT,
    read_destination,
    read_lead,
    read_producer,
    skip_nested,
    skip_octets,
    skip_string,
)
from lockkeeper.message.primitives import Value, decode_map
from lockkeeper.message.text import decode_text
from lockkeeper_analytics.reading.arrays import text_in

# originalTransactionId, group id, group sequence, correlation id: 7 zeros when there are none;
# then persistent, expiration, priority, the flag of replyTo, timestamp.
_PLAIN_HEAD = Struct(">7s?qb?q")
_NOTHING = bytes(7)
# No dataStructure, no targetConsumerId; compressed, redelivery counter; no broker path;
# arrival; no user id; two flags; no cluster; brokerInTime, brokerOutTime, group flag.
_PLAIN_TAIL = Struct(">2s?i?8s?2s?17s")
_NO_TWO = bytes(2)
LEADS_MAX = 16
"""So many different beginnings are remembered: producers times destinations, at a time."""

CAUSE_PROPERTY = "dlqDeliveryFailureCause"
RETRY_PROPERTY = "lockkeeper_retry_of"


class Head(NamedTuple):
    """The facts in front of a message's body; times are ms since the epoch, 0 for none."""

    producer: str | None
    original_destination: str | None
    persistent: bool
    expiration: int
    priority: int
    timestamp: int
    group_id: str | None = None
    group_sequence: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    copy_of: str | None = None


class Tail(NamedTuple):
    """The facts from a message's type on; `content` only where the body was asked for."""

    jms_type: str | None
    content: bytes | None
    properties: bytes | None
    compressed: bool
    redeliveries: int
    user_id: str | None
    broker_path: list[str] | None = None


def stored_time(data: bytes, start: int, end: int) -> int:
    """Return the brokerInTime of the message at data[start:end], in ms, 0 for none."""
    if data[start] == BLOB_MESSAGE:
        return decode_message(data, start, end).broker_in_time
    at = end - BROKER_IN_TIME_FROM_END
    return int.from_bytes(data[at : at + 8], "big", signed=True)


def decode_message(data: bytes, start: int, end: int) -> openwire.Message:
    """Return every field of the message at data[start:end]; raises MalformedMessageError."""
    structure, _ = openwire.decode(data[start:end])
    if not isinstance(structure, openwire.Message):
        raise MalformedMessageError(f"{type(structure).__name__} where a message must be")
    return structure


def decode_info(frame: bytes) -> openwire.SubscriptionInfo:
    """Return the subscription that *frame* holds; raises MalformedMessageError."""
    structure, _ = openwire.decode(frame)
    if not isinstance(structure, openwire.SubscriptionInfo):
        raise MalformedMessageError(f"{type(structure).__name__} where a subscription must be")
    return structure


class _Lead(NamedTuple):
    """What messages with the same bytes from producerId to the sequence number share."""

    prefix: bytes
    flags_offset: int
    producer: str | None
    original_destination: str | None
    copy_of: str | None


class FrameReader:
    """Reads messages one after another; cheap while a few producers and destinations alternate."""

    def __init__(self) -> None:
        self._leads: list[_Lead] = []
        self._last: tuple[bytes, int, openwire.Message] | None = None

    def head(self, data: bytes, start: int, end: int) -> tuple[Head, int]:
        """Return the head of the message at data[start:end] and where its tail begins.

        The place is 0 when that is not known. Raises MalformedMessageError.
        """
        lead = self._lead(data, start, end)
        at = start + lead.flags_offset
        if at + _PLAIN_HEAD.size <= end:
            plain, persistent, expiration, priority, reply, sent = _PLAIN_HEAD.unpack_from(data, at)
            if plain == _NOTHING and not reply:
                known = (lead.producer, lead.original_destination)
                times = (persistent, expiration, priority, sent)
                head = Head(*known, *times, copy_of=lead.copy_of)
                return head, at + _PLAIN_HEAD.size
        try:
            return _laid_out_head(data, at, end, lead)
        except (IndexError, UnicodeDecodeError, MalformedMessageError):
            # It takes more than that, or tells what is wrong.
            return _full_head(self._decoded(data, start, end)), 0

    def tail(self, data: bytes, frame: tuple[int, int], position: int, with_content: bool) -> Tail:
        """Return the tail of the message at data[start:end], *frame* being (start, end).

        *position* is where `head` said it begins. Raises MalformedMessageError.
        """
        start, end = frame
        plain = _plain_tail(data, position, end, with_content) if position else None
        if plain is not None:
            return plain
        fields = self._decoded(data, start, end)
        return Tail(
            fields.type,
            fields.content if with_content else None,
            fields.marshalled_properties,
            fields.compressed,
            fields.redelivery_counter,
            fields.user_id,
            list(names_of(fields.broker_path)) or None,
        )

    def _lead(self, data: bytes, start: int, end: int) -> _Lead:
        """Return the lead of the message: that of one of the last messages, or a new one."""
        leads = self._leads
        at = start + PRODUCER_ID_AT
        for index, lead in enumerate(leads):
            if data.startswith(lead.prefix, at):
                if index:
                    leads.insert(0, leads.pop(index))
                return lead
        lead = _read_lead(data, start, end)
        if lead.copy_of is None:
            leads.insert(0, lead)
            del leads[LEADS_MAX:]
        return lead

    def _decoded(self, data: bytes, start: int, end: int) -> openwire.Message:
        """Return all fields of the message, once for its lead, its head and its tail."""
        if self._last is None or self._last[0] is not data or self._last[1] != start:
            self._last = data, start, decode_message(data, start, end)
        return self._last[2]


def _read_lead(data: bytes, start: int, end: int) -> _Lead:
    lead = read_lead(data, start, end)
    at = start + PRODUCER_ID_AT
    prefix = data[at : start + lead.sequence_at]
    sender, at = read_producer(data, at)
    original, _ = read_destination(data, skip_nested(data, skip_nested(data, at)))
    copy_of = None if lead.text_view is None else decode_text(lead.text_view)
    # A bridge sends what it forwards as its own; the id of a message stays that of its producer.
    # An id with a text of its own is the broker's, of a copy.
    producer = lead.producer if copy_of is None else sender or lead.producer
    named = text_in(producer[:-1]) or None
    return _Lead(prefix, lead.sequence_at + 16, named, str(original) if original else None, copy_of)


def _laid_out_head(data: bytes, at: int, end: int, lead: _Lead) -> tuple[Head, int]:
    """Return the head whose fields behind its id begin at *at*, and where its tail begins.

    Raises IndexError, UnicodeDecodeError, MalformedMessageError.
    """
    group_at = skip_nested(data, at)
    sequence_at = skip_string(data, group_at)
    correlation_at = sequence_at + 4
    flags = skip_string(data, correlation_at)
    reply_to, timestamp_at = read_destination(data, flags + 10)
    tail_at = timestamp_at + 8
    if tail_at > end:
        raise IndexError("the message ends within its header")
    group_id = _text_at(data, group_at, sequence_at)
    sequence = int.from_bytes(data[sequence_at:correlation_at], "big", signed=True)
    head = Head(
        lead.producer,
        lead.original_destination,
        data[flags] != 0,
        int.from_bytes(data[flags + 1 : flags + 9], "big", signed=True),
        int.from_bytes(data[flags + 9 : flags + 10], "big", signed=True),
        int.from_bytes(data[timestamp_at:tail_at], "big", signed=True),
        group_id,
        None if group_id is None else sequence,
        _text_at(data, correlation_at, flags),
        str(reply_to) if reply_to else None,
        lead.copy_of,
    )
    return head, tail_at


def _text_at(data: bytes, start: int, end: int) -> str | None:
    """Return the text at data[start:end], None where its flag says that there is none."""
    return decode_text(data[start + 3 : end]) if data[start] else None


def _full_head(fields: openwire.Message) -> Head:
    producer, identifier = fields.producer_id, fields.message_id
    # A bridge sends what it forwards as its own; the id of a message stays that of its producer.
    # An id with a text of its own is the broker's, of a copy.
    if identifier is not None and (producer is None or identifier.text_view is None):
        producer = identifier.producer_id
    grouped = fields.group_id is not None
    return Head(
        str(producer) if producer else None,
        str(fields.original_destination) if fields.original_destination else None,
        fields.persistent,
        fields.expiration,
        fields.priority,
        fields.timestamp,
        fields.group_id,
        fields.group_sequence if grouped else None,
        fields.correlation_id,
        str(fields.reply_to) if fields.reply_to else None,
        None if identifier is None else identifier.text_view,
    )


def _plain_tail(data: bytes, position: int, end: int, with_content: bool) -> Tail | None:
    """Return the tail at *position*, or None unless everything rare is absent."""
    try:
        type_end = skip_string(data, position)
        jms_type = _text_at(data, position, type_end)
        content_end = skip_octets(data, type_end)
        at = skip_octets(data, content_end)
    except (IndexError, UnicodeDecodeError):
        return None
    if at + _PLAIN_TAIL.size != end:
        return None
    absent, compressed, redeliveries, path, _arrival, user, _flags, cluster, _times = (
        _PLAIN_TAIL.unpack_from(data, at)
    )
    if absent != _NO_TWO or path or user or cluster:
        return None
    return Tail(
        jms_type,
        data[type_end + 5 : content_end] if with_content and data[type_end] else None,
        data[content_end + 5 : at] if data[content_end] else None,
        compressed,
        redeliveries,
        None,
    )


def properties_in(octets: bytes | None) -> dict[str, Value]:
    """Return the properties in a message's marshalled *octets*; raises MalformedMessageError."""
    return (decode_map(octets)[0] if octets else None) or {}


def cause_in(octets: bytes | None) -> str | None:
    """Return why a message became a dead letter, when its marshalled properties say so."""
    return _text_in(octets, CAUSE_PROPERTY)


def retry_in(octets: bytes | None) -> str | None:
    """Return the first id of a message that was sent back, when its properties say so."""
    return _text_in(octets, RETRY_PROPERTY)


def _text_in(octets: bytes | None, name: str) -> str | None:
    if octets is None or name.encode() not in octets:
        return None
    value = properties_in(octets).get(name)
    return None if value is None else str(value)
