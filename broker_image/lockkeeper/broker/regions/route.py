"""Interface of queues and topics for a producer."""

from collections.abc import Sequence
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

    def accept_run(self, messages: Sequence[Message], receipts: Sequence[Receipt | None]) -> None:
        """Do what `accept` does for several messages, in order; each has its receipt."""

    def admit(self, reference: Reference) -> None:
        """Make a message visible whose storing (if any) is already in order."""

    def admit_run(self, references: Sequence[Reference]) -> None:
        """Do what `admit` does for several, in order; what fails is contained, and done later."""

    def stores(self, reference: Reference) -> bool:
        """Tell whether the message must go to the store, and count who holds it there."""

    def stored_later(self, references: Sequence[Reference]) -> Sequence[Reference]:
        """Return those that `stores` tells of, of messages to be made visible when durable."""

    def stores_never(self, references: Sequence[Reference]) -> None:
        """Know that the store refused messages that were to be made visible later."""

    def memory_full(self) -> bool:
        """Tell whether the destination's own memory limit is reached."""
