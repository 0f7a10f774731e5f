"""Knows a failover's resent messages: which numbers of which producers are stored already."""

from lockkeeper.message.ids import MessageId
from lockkeeper.message.message import Message
from lockkeeper.store.producers import Producers


class ProducerAudit:
    """Numbers of messages handed to the store, for the producers that were active last.

    Those that are not persistent are not handed to it, and never known.
    """

    def __init__(self) -> None:
        self._producers = Producers()

    def restore(self, producers: Producers) -> None:
        """Take over what the store found."""
        self._producers = producers

    def record(self, message: Message) -> None:
        """Note a message that has been handed to the store."""
        if message.persistent:
            self._producers.note_number(message.lead.producer[:-1], message.number)

    def note(self, stream: bytes, number: int) -> None:
        """Note a number of what is not one producer's alone; see `NetworkAudit`."""
        self._producers.note_number(stream, number)

    def holds(self, stream: bytes, number: int) -> bool:
        """Tell whether `note` was told of a number, as far as is known."""
        return self._producers.holds(stream, number)

    def is_duplicate(self, message: Message) -> bool:
        """Tell whether a message came again after a failover (openwire.md section 7.10)."""
        return message.persistent and self._producers.holds(
            message.lead.producer[:-1], message.number
        )

    def stored_id(self, _message: Message, _sequence: int) -> MessageId | None:
        """Return None: what is stored of a client's message elsewhere keeps its id."""
        return None
