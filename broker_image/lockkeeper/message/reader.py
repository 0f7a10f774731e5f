"""From bytes to messages, quickly: a producer's next message begins like its last one.

A reader remembers the bytes from producerId up to the sequence number of the last message it
met. While the next message begins with the same bytes, one comparison tells its destination,
its transaction and where every field that routing needs lies (openwire.md section 8).
"""

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct
from typing import Final

from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.layout import (
    BLOB_MESSAGE,
    BROKER_IN_TIME_FROM_END,
    BROKER_OUT_TIME_AT,
    MESSAGE_TYPES,
    PLAIN,
    PRODUCER_ID_AT,
    Lead,
    read_lead,
)
from lockkeeper.message.message import Message
from lockkeeper.message.stamps import arrived
from lockkeeper.message.wholeness import NOTHING_MORE, check_whole

VIEWED_BYTES: Final = 16 << 10
"""Of a message so large a view is copied, instead of a part that was copied before."""

_ONLY_CONTENT: Final = 1
_NOT_OUT_YET: Final = bytes(BROKER_IN_TIME_FROM_END - 8)
# What follows the content of a plain message that has not met a broker yet.
_FRESH = NOTHING_MORE + bytes(BROKER_IN_TIME_FROM_END)
_FRESH_BYTES = len(_FRESH)
_ENDLESS: Final = 1 << 62
_SIZE = Struct(">I")
# brokerInTime is at a fixed place in all others.
_STAMPED_TYPES = MESSAGE_TYPES - {BLOB_MESSAGE}


@lru_cache(maxsize=256)
def _opening(size: int) -> Struct:
    """Return what a message begins with, from its producerId up to its content.

    That is: *size* bytes up to the sequence number, two numbers, what is plain mostly, persistent,
    expiration, priority, the flag of replyTo, timestamp, the flags of type and content together,
    and the content's length: where a message has content but neither replyTo nor type.
    """
    return Struct(f">{size}s16x{len(PLAIN)}sxqxB8xHI")


class MessageReader:
    """Reads messages of one producer after another; cheap while they alternate seldom."""

    __slots__ = ("_around", "_lead", "_opening", "_prefix", "_sequence_at")

    def __init__(self) -> None:
        self._prefix = b""
        self._sequence_at = 0
        self._lead: Lead | None = None
        self._opening = _opening(0)
        # So long is a plain message without its content; none is, before the first.
        self._around = _ENDLESS

    def receive_run(
        self,
        data: bytes,
        position: int,
        last: int,
        size_max: int,
        sequences: Iterator[int],
        in_time: bytes,
    ) -> tuple[list[Message], int]:
        """Return the messages of the frames from *position* on that begin like the last one.

        The second value is where these frames end: *position* itself when `receive` has to read
        the first one. No frame begins after *last*, or has more than *size_max* bytes. What is
        stamped is told by `receive`.
        """
        messages: list[Message] = []
        lead = self._lead
        if lead is None:
            return messages, position
        around, prefix, at = self._around, self._prefix, self._sequence_at
        read_opening, length = self._opening.unpack_from, len(data)
        while position <= last:
            (size,) = _SIZE.unpack_from(data, position)
            start = position + 4
            end, room = start + size, size - around
            if room < 0 or size > size_max or end > length or data[start] not in _STAMPED_TYPES:
                break
            if data[end - _FRESH_BYTES : end] != _FRESH:
                break
            found, plain, expiration, reply, fields, content = read_opening(
                data, start + PRODUCER_ID_AT
            )
            if content != room or found != prefix or plain != PLAIN or reply or expiration < 0:
                break
            if fields != _ONLY_CONTENT:
                break
            sequence = next(sequences)
            whole = data if size < VIEWED_BYTES else memoryview(data)
            body = b"".join(
                (
                    data[start : start + at + 8],
                    sequence.to_bytes(8, "big"),
                    whole[start + at + 16 : end - BROKER_IN_TIME_FROM_END],
                    in_time,
                    _NOT_OUT_YET,
                )
            )
            messages.append(Message(body, lead, sequence, lead.plain_flags_at, expiration))
            position = end
        return messages, position

    def receive(self, data: bytes, start: int, end: int, sequence: int, in_time: bytes) -> Message:
        """Return the message at data[start:end], stamped with what a broker adds.

        *sequence* becomes its brokerSequenceId, *in_time* (8 bytes, ms since the epoch) its
        brokerInTime. Raises MalformedMessageError.
        """
        if data[start] == BLOB_MESSAGE:
            # Encoded anew: a text that was encoded in an odd way has another length now.
            restored = self.restore(data, start, end, sequence).body
            body = arrived(restored, int.from_bytes(in_time, "big"))
            return self.trust(body, 0, len(body), sequence)
        message = self._read(data, start, end, sequence, in_time)
        check_whole(data, start, end, message.lead, start + message.flags_at)
        return message

    def restore(self, data: bytes, start: int, end: int, sequence: int) -> Message:
        """Return the message at data[start:end], as the journal holds it, with nothing added.

        Only its brokerSequenceId is new, because those of earlier brokers need not be unique.
        Raises MalformedMessageError.
        """
        message = self.trust(data, start, end, sequence)
        check_whole(data, start, end, message.lead, start + message.flags_at)
        return message

    def trust(self, data: bytes, start: int, end: int, sequence: int) -> Message:
        """Return the message at data[start:end], which the caller knows to be whole.

        Raises MalformedMessageError when it ends within its header all the same.
        """
        return self._read(data, start, end, sequence, b"")

    def _read(self, data: bytes, start: int, end: int, sequence: int, in_time: bytes) -> Message:
        """Return the message at data[start:end], with another brokerInTime if one is given."""
        lead = self._lead
        if lead is None or not data.startswith(self._prefix, start + PRODUCER_ID_AT):
            lead = self._learn(data, start, end)
        at = start + self._sequence_at
        flags = lead.find_persistent(data, start)
        if flags + 10 > end:
            raise MalformedMessageError("the message ends within its header")
        front, number = data[start : at + 8], sequence.to_bytes(8, "big")
        whole = data if end - start < VIEWED_BYTES else memoryview(data)
        if in_time:
            middle = whole[at + 16 : end - BROKER_IN_TIME_FROM_END]
            body = b"".join((front, number, middle, in_time, data[end + BROKER_OUT_TIME_AT : end]))
        else:
            body = b"".join((front, number, whole[at + 16 : end]))
        # Clients whose time to live is the longest that there is overflow into negative times.
        expiration = max(0, int.from_bytes(data[flags + 1 : flags + 9], "big", signed=True))
        return Message(body, lead, sequence, flags - start, expiration)

    def _learn(self, data: bytes, start: int, end: int) -> Lead:
        lead = read_lead(data, start, end)
        self._lead = lead
        self._sequence_at = lead.sequence_at
        self._prefix = data[start + PRODUCER_ID_AT : start + lead.sequence_at]
        self._opening = _opening(len(self._prefix))
        self._around = PRODUCER_ID_AT + self._opening.size + _FRESH_BYTES
        return lead
