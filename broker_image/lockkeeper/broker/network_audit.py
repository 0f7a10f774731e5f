"""Knows what other brokers have sent already, for as many producers as were active last.

A bridge that lost its connection sends again what was not answered. Such a message has the same
id, goes to the same destination and has left as many brokers: with each broker that a message
leaves its brokerPath grows, so one that comes back on its way is no duplicate.
"""

from lockkeeper.broker.producer_audit import ProducerAudit
from lockkeeper.message.broker_path import broker_path
from lockkeeper.message.message import Message
from lockkeeper.store.producers import network_stream


class NetworkAudit:
    """The messages of bridges; remembered with those of failover's clients, in one place."""

    def __init__(self, audit: ProducerAudit) -> None:
        self._audit = audit

    def record(self, message: Message) -> None:
        """Note a message that was taken."""
        self._audit.note(_stream_of(message), message.number)

    def is_duplicate(self, message: Message) -> bool:
        """Tell whether a message has come before, as far as is known."""
        return self._audit.holds(_stream_of(message), message.number)


def _stream_of(message: Message) -> bytes:
    """Return what the numbers of messages like this one are counted by."""
    hops = len(broker_path(message.body))
    return network_stream(message.lead.producer[:-1], hops, message.destination.wire)
