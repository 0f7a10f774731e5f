"""From bytes to messages, quickly: a producer's next message begins like its last one.

A reader remembers the bytes from producerId up to the sequence number of the last message it
met. While the next message begins with the same bytes, one comparison tells its destination,
its transaction and where every field that routing needs lies (openwire.md section 8).
"""

from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import TransactionId
from lockkeeper.message.layout import (
    BLOB_MESSAGE,
    BROKER_IN_TIME_FROM_END,
    PRODUCER_ID_AT,
    read_lead,
    skip_nested,
    skip_string,
)
from lockkeeper.message.message import Message

# No originalTransactionId, no group id, group sequence 0, no correlation id.
_PLAIN = bytes(7)
_NEVER_LEARNT = b"\xff\xff"


class MessageReader:
    """Reads messages of one producer after another; cheap while they alternate seldom."""

    __slots__ = (
        "destination",
        "prefix",
        "producer",
        "sequence_offset",
        "text_view",
        "transaction_id",
    )

    def __init__(self) -> None:
        self.prefix = _NEVER_LEARNT
        self.sequence_offset = 0
        self.producer = b""
        self.text_view: bytes | None = None
        self.destination: Destination | None = None
        self.transaction_id: TransactionId | None = None

    def receive(self, data: bytes, start: int, end: int, sequence: int, in_time: bytes) -> Message:
        """Return the message at data[start:end], stamped with what a broker adds.

        *sequence* becomes its brokerSequenceId, *in_time* (8 bytes, ms since the epoch) its
        brokerInTime. Raises MalformedMessageError.
        """
        if not data.startswith(self.prefix, start + PRODUCER_ID_AT):
            self._learn(data, start, end)
        at = start + self.sequence_offset
        stamp = sequence.to_bytes(8, "big")
        if data[start] == BLOB_MESSAGE:
            body = b"".join((data[start : at + 8], stamp, data[at + 16 : end]))
        else:
            in_time_at = end - BROKER_IN_TIME_FROM_END
            body = b"".join(
                (
                    data[start : at + 8],
                    stamp,
                    data[at + 16 : in_time_at],
                    in_time,
                    data[in_time_at + 8 : end],
                )
            )
        return self._message(body, sequence)

    def restore(self, data: bytes, start: int, end: int, sequence: int) -> Message:
        """Return the message that the journal holds at data[start:end].

        It gets a new brokerSequenceId, because those of earlier brokers need not be unique.
        Raises MalformedMessageError.
        """
        if not data.startswith(self.prefix, start + PRODUCER_ID_AT):
            self._learn(data, start, end)
        at = start + self.sequence_offset
        body = b"".join((data[start : at + 8], sequence.to_bytes(8, "big"), data[at + 16 : end]))
        return self._message(body, sequence)

    def _message(self, body: bytes, sequence: int) -> Message:
        at = self.sequence_offset
        flags = at + 16
        if body[flags : flags + 7] == _PLAIN:
            flags += 7
        else:
            flags = _skip_to_persistent(body, flags)
        if flags + 10 > len(body):
            raise MalformedMessageError("the message ends within its header")
        if self.text_view is None:
            key = b"%b%d" % (self.producer, int.from_bytes(body[at : at + 8], "big"))
        else:
            key = self.text_view
        assert self.destination is not None
        return Message(
            body,
            self.destination,
            key,
            sequence,
            body[flags] == 1,
            int.from_bytes(body[flags + 1 : flags + 9], "big"),
            body[flags + 9],
            self.transaction_id,
        )

    def _learn(self, data: bytes, start: int, end: int) -> None:
        lead = read_lead(data, start, end)
        self.prefix = data[start + PRODUCER_ID_AT : lead.sequence_at]
        self.sequence_offset = lead.sequence_at - start
        self.producer = lead.producer
        self.text_view = lead.text_view
        self.destination = lead.destination
        self.transaction_id = lead.transaction_id


def _skip_to_persistent(body: bytes, position: int) -> int:
    try:
        position = skip_nested(body, position)
        position = skip_string(body, position)
        return skip_string(body, position + 4)
    except IndexError:
        raise MalformedMessageError("the message ends within its header") from None
