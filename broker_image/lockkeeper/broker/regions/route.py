"""Interface of queues and topics for a producer."""

from typing import Protocol

from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt, Reference


class Route(Protocol):
    """A queue or a topic, seen from a producer."""

    destination: Destination
    is_gone: bool

    def accept(self, message: Message, receipt: Receipt | None) -> None:
        """Take a message; the receipt is settled when it is as durable as it asks to be."""

    def admit(self, reference: Reference) -> None:
        """Make a message visible whose storing (if any) is already in order."""

    def readmit(self, reference: Reference) -> None:
        """Do again what `admit` does, where that failed on its way."""

    def stores(self, reference: Reference) -> bool:
        """Tell whether the message must go to the store, and count who holds it there."""

    def stores_later(self, reference: Reference) -> bool:
        """Do what `stores` does for a message that is made visible when it is durable."""

    def stores_never(self, reference: Reference) -> None:
        """Know that the store refused a message that was to be made visible later."""

    def memory_full(self) -> bool:
        """Tell whether the destination's own memory limit is reached."""
