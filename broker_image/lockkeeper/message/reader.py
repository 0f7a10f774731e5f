"""From bytes to messages, quickly: a producer's next message begins like its last one.

A reader remembers the bytes from producerId up to the sequence number of the last message it
met. While the next message begins with the same bytes, one comparison tells its destination,
its transaction and where every field that routing needs lies (openwire.md section 8).
"""

from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.layout import (
    BLOB_MESSAGE,
    BROKER_IN_TIME_FROM_END,
    PLAIN,
    PRODUCER_ID_AT,
    Lead,
    read_lead,
)
from lockkeeper.message.message import Message

_NEVER_LEARNT = b"\xff\xff"
_NEVER = bytes(8)


class MessageReader:
    """Reads messages of one producer after another; cheap while they alternate seldom."""

    __slots__ = ("_lead", "_prefix", "_sequence_at")

    def __init__(self) -> None:
        self._prefix = _NEVER_LEARNT
        self._sequence_at = 0
        self._lead: Lead | None = None

    def receive(self, data: bytes, start: int, end: int, sequence: int, in_time: bytes) -> Message:
        """Return the message at data[start:end], stamped with what a broker adds.

        *sequence* becomes its brokerSequenceId, *in_time* (8 bytes, ms since the epoch) its
        brokerInTime. Raises MalformedMessageError.
        """
        if not data.startswith(self._prefix, start + PRODUCER_ID_AT):
            self._learn(data, start, end)
        lead, at = self._lead, start + self._sequence_at
        assert lead is not None
        flags = at + 23
        if data[at + 16 : flags] != PLAIN:
            flags = lead.find_persistent(data, start)
        in_time_at = end - BROKER_IN_TIME_FROM_END
        if data[start] == BLOB_MESSAGE or flags + 10 > in_time_at:
            return self.restore(data, start, end, sequence)
        body = b"".join(
            (
                data[start : at + 8],
                sequence.to_bytes(8, "big"),
                data[at + 16 : in_time_at],
                in_time,
                data[in_time_at + 8 : end],
            )
        )
        expiration = data[flags + 1 : flags + 9]
        return Message(
            body,
            lead,
            sequence,
            flags - start,
            0 if expiration == _NEVER else int.from_bytes(expiration, "big"),
        )

    def restore(self, data: bytes, start: int, end: int, sequence: int) -> Message:
        """Return the message at data[start:end], as the journal holds it, with nothing added.

        Only its brokerSequenceId is new, because those of earlier brokers need not be unique.
        Raises MalformedMessageError.
        """
        if not data.startswith(self._prefix, start + PRODUCER_ID_AT):
            self._learn(data, start, end)
        lead, at = self._lead, start + self._sequence_at
        assert lead is not None
        flags = lead.find_persistent(data, start)
        if flags + 10 > end:
            raise MalformedMessageError("the message ends within its header")
        body = b"".join((data[start : at + 8], sequence.to_bytes(8, "big"), data[at + 16 : end]))
        expiration = int.from_bytes(data[flags + 1 : flags + 9], "big")
        return Message(body, lead, sequence, flags - start, expiration)

    def _learn(self, data: bytes, start: int, end: int) -> None:
        lead = read_lead(data, start, end)
        self._lead = lead
        self._sequence_at = lead.sequence_at
        self._prefix = data[start + PRODUCER_ID_AT : start + lead.sequence_at]
