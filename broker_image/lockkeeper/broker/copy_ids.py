"""Ids for copies of messages: a copy that may meet its twin must be known by itself.

KahaDB's records, ActiveMQ's audits and Java's clients tell messages apart by producer and number,
and show the text of an id where it has one (textView). So a copy gets a producer and a number of
the broker's own, and its text stays the JMSMessageID of the message it is a copy of.
"""

from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.text import decode_text
from lockkeeper.store.producers import Producers


class CopyIds:
    """The ids of one broker's copies; the numbers go on where an earlier broker left off."""

    def __init__(self, broker_id: str) -> None:
        self._producer = ProducerId(f"{broker_id}-copies", 1, 1)
        self._count = 0

    def resume(self, producers: Producers) -> None:
        """Use no number that the store has seen."""
        self._count = max(self._count, producers.last(str(self._producer).encode()) or 0)

    def next_for(self, message: Message, sequence: int) -> MessageId:
        """Return the id of a copy of *message*, with the brokerSequenceId *sequence*."""
        return self.next_named(decode_text(message.identifier), sequence)

    def next_named(self, text: str, sequence: int) -> MessageId:
        """Return an id that is shown as *text*, with the brokerSequenceId *sequence*."""
        self._count += 1
        return MessageId(self._producer, self._count, sequence, text)
