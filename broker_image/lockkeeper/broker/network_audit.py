"""Knows what other brokers have sent already, for as many producers as were active last.

A bridge that lost its connection sends again what was not answered. Such a message has the same
id and goes to the same destination. One of a queue has left as many brokers, too: with each broker
that a message leaves its brokerPath grows, so one that comes back on its way is no duplicate. One
of a topic never comes back, but may come on two ways.

What may not be stored under the id of its message, as a job, a dead letter or what has been here
before, gets one that tells all this; it is known by that alone, after a restart as well. A job of a
topic's message delivers under that id: so it is known to brokers that have a job of their own.
"""

from hashlib import sha256
from typing import Final, TypeAlias

from lockkeeper.broker.producer_audit import ProducerAudit
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.message.broker_path import broker_path
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.text import decode_text, encode_text
from lockkeeper.store.producers import network_stream

ANY_BROKER: Final = "ID"
Key: TypeAlias = tuple[bytes, int]
"""A stream of numbers, and a number in it."""


class NetworkAudit:
    """The messages of bridges; remembered with those of failover's clients, in one place.

    A bridge sends those again, too, that are not persistent. Each bridge asks by an audit of its
    own, so that `duplicates` counts those of them that this one brought again.
    """

    def __init__(self, audit: ProducerAudit, broker_id: str) -> None:
        self._audit = audit
        self._broker_id = broker_id
        self._own = _prefix(broker_id)
        self.duplicates = 0

    def key_of(self, message: Message) -> Key:
        """Return what a message is known by."""
        destination = message.destination
        # Nobody sends to jobs: each has the id that it was given here.
        if destination == JOBS or (destination.is_topic and _is_by_job(message)):
            return stored_key(message)
        # A bridge gives an id to what is persistent and has been here, also where it had one.
        if message.persistent and destination.is_queue and self.is_own(message):
            return stored_key(message)
        return _way_of(message)

    def is_own(self, message: Message) -> bool:
        """Tell whether a message has an id that `own_id` gave it, here or before it came."""
        return message.lead.producer.startswith(self._own)

    def stored_id(self, message: Message, sequence: int) -> MessageId:
        """Return the id of what is stored of a message elsewhere than it goes to.

        It is shown as that of the message, and is the same whenever that comes. Messages for
        several destinations may have one id, and would be one in the place where they are stored.
        """
        return _id_by(ANY_BROKER, message, sequence)

    def own_id(self, message: Message, sequence: int) -> MessageId:
        """Return an id like `stored_id` that no other broker gives.

        Others refuse the same message, and their dead letters may come here, or meet elsewhere.
        """
        return _id_by(self._broker_id, message, sequence)

    def note(self, key: Key) -> None:
        """Note a message that was taken, by its key."""
        self._audit.note(*key)

    def knows(self, key: Key) -> bool:
        """Tell whether a message with this key has come before, as far as is known."""
        is_known = self._audit.holds(*key)
        self.duplicates += is_known
        return is_known

    def record(self, message: Message) -> None:
        """Note a message that was taken."""
        self.note(self.key_of(message))

    def is_duplicate(self, message: Message) -> bool:
        """Tell whether a message has come before, as far as is known."""
        return self.knows(self.key_of(message))


def stored_key(stored: Message) -> Key:
    """Return what a message is known by that got its id here; the journal's reader notes it."""
    return stored.lead.producer[:-1], stored.number


def _way_of(message: Message) -> Key:
    """Return what a message is known by that has the id that it was sent with."""
    destination = message.destination
    hops = len(broker_path(message.body)) if destination.is_queue else 0
    stream = network_stream(message.lead.producer[:-1], hops, destination.wire)
    return stream, message.number


def _id_by(maker: str, message: Message, sequence: int) -> MessageId:
    stream, number = _way_of(message)
    return MessageId(_producer_by(maker, stream), number, sequence, decode_text(message.identifier))


def _producer_by(maker: str, stream: bytes) -> ProducerId:
    return ProducerId(f"{maker}:network-{sha256(stream).hexdigest()}", 1, 1)


def _prefix(maker: str) -> bytes:
    """Return how the producers of all ids begin that are by *maker*."""
    return encode_text(f"{maker}:network-")


_BY_ANY_BROKER: Final = _prefix(ANY_BROKER)


def _is_by_job(message: Message) -> bool:
    """Tell whether a topic's message is what a job has delivered, one that a bridge had brought.

    Its id is made of that of the message, which it shows, and of the topic: a copy in another topic
    is a message by itself.
    """
    producer = message.lead.producer
    if not producer.startswith(_BY_ANY_BROKER):
        return False
    sender, _, _ = message.identifier.rpartition(b":")
    stream = network_stream(sender, 0, message.destination.wire)
    return producer[:-1] == str(_producer_by(ANY_BROKER, stream)).encode()
