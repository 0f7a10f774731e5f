"""Copies of messages for other destinations, made from their bytes without decoding them."""

from typing import Final

from lockkeeper.message.destination import Destination
from lockkeeper.message.layout import PRODUCER_ID_AT, Lead, locate_destinations, read_lead
from lockkeeper.message.message import Message

BEGINNING_BYTES_KEPT: Final = 4 << 10
"""A longer one is worked out for each message: there are many copiers, and clients choose ids."""


class MessageCopier:
    """Makes copies of messages for *place*; cheap while they begin alike.

    *destination* and *original* become the JMSDestination and the originalDestination of a copy;
    None leaves what the message has. So a copy may be in another place than it says.
    """

    __slots__ = ("_copy_lead", "_destination", "_lead", "_original", "_place", "_prefix", "_shift")

    def __init__(
        self,
        place: Destination,
        destination: Destination | None = None,
        original: Destination | None = None,
    ) -> None:
        self._place = place
        self._destination = destination
        self._original = original
        self._lead: Lead | None = None
        self._copy_lead: Lead | None = None
        self._prefix = b""
        self._shift = 0

    def copy(self, message: Message, sequence: int) -> Message:
        """Return a copy of *message* with the brokerSequenceId *sequence*."""
        lead = message.lead
        if lead is not self._lead:
            self._learn(message)
        copy_lead = self._copy_lead
        assert copy_lead is not None
        body, at = message.body, lead.sequence_at
        made = Message(
            b"".join(
                (
                    body[:PRODUCER_ID_AT],
                    self._prefix,
                    body[at : at + 8],
                    sequence.to_bytes(8, "big"),
                    body[at + 16 :],
                )
            ),
            copy_lead,
            sequence,
            message.flags_at + self._shift,
            message.expiration,
        )
        made.destination = self._place
        if len(self._prefix) > BEGINNING_BYTES_KEPT:
            self._lead = self._copy_lead = None
            self._prefix = b""
        return made

    def _learn(self, message: Message) -> None:
        """Work out how copies begin of all messages that begin like this one."""
        body, at = message.body, message.lead.sequence_at
        where, original_where = locate_destinations(body)
        destination, original = body[where], body[original_where]
        if self._destination is not None:
            destination = self._destination.wire
        if self._original is not None:
            original = self._original.wire
        prefix = b"".join(
            (
                body[PRODUCER_ID_AT : where.start],
                destination,
                body[where.stop : original_where.start],
                original,
                body[original_where.stop : at],
            )
        )
        begun = b"".join((body[:PRODUCER_ID_AT], prefix, body[at:]))
        self._copy_lead = read_lead(begun, 0, len(begun))
        self._shift = self._copy_lead.sequence_at - at
        self._prefix = prefix
        self._lead = message.lead
