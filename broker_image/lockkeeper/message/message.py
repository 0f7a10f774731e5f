"""The message: its loose OpenWire bytes, and the few facts that routing needs."""

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId
from lockkeeper.message.layout import Lead


class Message:
    """One message as the wire and the journal hold it; everything not listed is in `body`.

    `body` is the loose, uncached frame of store version 11 without its size prefix. `expiration`
    is in ms since the epoch, 0 for never. `sequence` is the brokerSequenceId that stands in
    `body`: unique while this broker runs, and what a consumer's acknowledgement names. `lead` is
    shared by all messages that begin with the same bytes.
    """

    __slots__ = (
        "body",
        "destination",
        "expiration",
        "lead",
        "persistent",
        "sequence",
        "transaction_id",
    )

    def __init__(
        self, body: bytes, lead: Lead, sequence: int, persistent: bool, expiration: int
    ) -> None:
        self.body = body
        self.lead = lead
        self.destination: Destination = lead.destination
        self.transaction_id: TransactionId | None = lead.transaction_id
        self.sequence = sequence
        self.persistent = persistent
        self.expiration = expiration

    @property
    def key(self) -> bytes:
        """The JMSMessageID in modified UTF-8, which KahaDB calls the producer key."""
        lead = self.lead
        if lead.text_view is not None:
            return lead.text_view
        at = lead.sequence_at
        return b"%b%d" % (lead.producer, int.from_bytes(self.body[at : at + 8], "big", signed=True))

    @property
    def priority(self) -> int:
        """The JMSPriority, 0 to 9."""
        return self.body[self.lead.find_persistent(self.body) + 9]

    def __repr__(self) -> str:
        """Return the id and the destination, for logs and failed tests."""
        return f"<Message {self.key.decode('utf-8', 'replace')} of {self.destination}>"
