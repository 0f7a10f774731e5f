"""The message: its loose OpenWire bytes, and the few facts that routing needs."""

from typing import Final

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId
from lockkeeper.message.layout import Lead

# No originalTransactionId and no group id: so it mostly is, a correlation id there or not.
_NO_GROUP: Final = b"\x00\x00"


class Message:
    """One message as the wire and the journal hold it; everything not listed is in `body`.

    `body` is the loose, uncached frame of store version 11 without its size prefix. `expiration`
    is in ms since the epoch, 0 for never, which negative times in `body` are, too. `flags_at` is
    the offset of `persistent`, which expiration and priority follow. `sequence` is the
    brokerSequenceId that stands in `body`: unique while this broker runs, and what a consumer's
    acknowledgement names. `lead` is shared by all messages that begin with the same bytes.
    """

    __slots__ = (
        "body",
        "destination",
        "expiration",
        "flags_at",
        "lead",
        "persistent",
        "sequence",
        "transaction_id",
    )

    def __init__(
        self, body: bytes, lead: Lead, sequence: int, flags_at: int, expiration: int
    ) -> None:
        self.body = body
        self.lead = lead
        self.flags_at = flags_at
        self.destination: Destination = lead.destination
        self.transaction_id: TransactionId | None = lead.transaction_id
        self.sequence = sequence
        self.persistent = body[flags_at] == 1
        self.expiration = expiration

    @property
    def key(self) -> bytes:
        """KahaDB's key of the message: producer and number, in modified UTF-8.

        That is the JMSMessageID unless the id has a text of its own (ActiveMQ's toProducerKey).
        """
        lead = self.lead
        at = lead.sequence_at
        return b"%b%d" % (lead.producer, int.from_bytes(self.body[at : at + 8], "big", signed=True))

    @property
    def identifier(self) -> bytes:
        """The JMSMessageID in modified UTF-8, which copies of one message share."""
        text = self.lead.text_view
        return self.key if text is None else text

    @property
    def number(self) -> int:
        """The number that the producer gave the message: messageId.producerSequenceId."""
        at = self.lead.sequence_at
        return int.from_bytes(self.body[at : at + 8], "big", signed=True)

    @property
    def priority(self) -> int:
        """The JMSPriority, 0 to 9."""
        return self.body[self.flags_at + 9]

    @property
    def group(self) -> bytes | None:
        """The JMSXGroupID in modified UTF-8, if the message belongs to a group."""
        lead = self.lead
        at = lead.sequence_at + 16
        if self.flags_at == lead.plain_flags_at or self.body[at : at + 2] == _NO_GROUP:
            return None
        return lead.find_group(self.body)[0]

    @property
    def group_sequence(self) -> int:
        """The JMSXGroupSeq; -1 closes the group."""
        return self.lead.find_group(self.body)[1]

    def __repr__(self) -> str:
        """Return the id and the destination, for logs and failed tests."""
        return f"<Message {self.identifier.decode('utf-8', 'replace')} of {self.destination}>"


def head_of(message: Message) -> Message:
    """Return what a message is known by, destination, sequence and key, without the rest of it."""
    lead = message.lead
    at = lead.sequence_at
    head = Message(message.body[: at + 8], lead, message.sequence, at, message.expiration)
    head.destination = message.destination
    return head


class UnreadableMessage(Message):
    """Substitute for a stored message that cannot be read; `defect` says why.

    Its content are the bytes that were found. It counts as expired: so whoever comes to it, on
    whatever way, lets it end, and it becomes a dead letter.
    """

    __slots__ = ("defect",)

    def __init__(self, likeness: Message, defect: str) -> None:
        body, lead = likeness.body, likeness.lead
        super().__init__(body, lead, likeness.sequence, likeness.flags_at, 1)
        self.defect = defect
