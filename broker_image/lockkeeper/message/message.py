"""The message: its loose OpenWire bytes, and the few facts that routing needs."""

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId


class Message:
    """One message as the wire and the journal hold it; everything not listed is in `body`.

    `body` is the loose, uncached frame of store version 11 without its size prefix. `key` is
    the JMSMessageID in modified UTF-8, which KahaDB calls the producer key. `expiration` is in
    ms since the epoch, 0 for never. `sequence` is the brokerSequenceId that stands in `body`:
    unique while this broker runs, and what a consumer's acknowledgement names.
    """

    __slots__ = (
        "body",
        "destination",
        "expiration",
        "key",
        "persistent",
        "priority",
        "sequence",
        "transaction_id",
    )

    def __init__(
        self,
        body: bytes,
        destination: Destination,
        key: bytes,
        sequence: int,
        persistent: bool,
        expiration: int,
        priority: int,
        transaction_id: TransactionId | None,
    ) -> None:
        self.body = body
        self.destination = destination
        self.key = key
        self.sequence = sequence
        self.persistent = persistent
        self.expiration = expiration
        self.priority = priority
        self.transaction_id = transaction_id

    def __repr__(self) -> str:
        """Return the id and the destination, for logs and failed tests."""
        return f"<Message {self.key.decode('utf-8', 'replace')} of {self.destination}>"
