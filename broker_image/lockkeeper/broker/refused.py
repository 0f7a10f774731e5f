"""Refused messages of other brokers: dead letters, where nobody else could do anything about them.

A client is told, and its message is its own matter. A bridge would only bring it again, and again
be refused, and all that waits behind it would wait for ever.
"""

import logging

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.network_audit import Key, NetworkAudit, stored_key
from lockkeeper.broker.policies.dead_letters import dead_letter, dead_letter_destination
from lockkeeper.message.destination import queue
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt

logger = logging.getLogger(__name__)


def bury_refused(
    broker: Broker,
    audit: NetworkAudit,
    connection: Connection,
    message: Message,
    refusal: BrokerError,
    receipt: Receipt | None,
) -> None:
    """Make a dead letter of a message of a bridge that is refused whenever it comes.

    It waits for room like anything else that the bridge brings, and the receipt is settled when it
    is durable. One that is not persistent ends, unless its policy keeps it.
    """
    context, origin = broker.context, message.destination
    logger.warning("a message for %s from %s is refused: %s", origin, connection.address, refusal)
    policy = context.policies.find(origin)
    target = dead_letter_destination(policy.dead_letters, origin, message, expired=False)
    if target is None and message.persistent:
        # Nobody asked for it to be discarded here.
        target = queue(policy.dead_letters.queue)
    if target is None:
        if receipt is not None:
            receipt.settle()
        return
    lifetime = policy.dead_letters.expiration
    expiration = context.now + lifetime if lifetime else 0
    letter_id = audit.own_id(message, context.next_sequence())
    letter = dead_letter(message, target, str(refusal), letter_id, expiration)
    burial = _Burial(broker, audit, audit.key_of(message), stored_key(letter))
    if burial.is_known():
        if receipt is not None:
            context.settle_behind(receipt)
        return
    context.advisories.dead_lettered(origin, policy.advisories, message)
    burial.take(connection, letter, receipt)


class _Burial:
    """The end of a refused message, of which no more is kept than what it is known by.

    That is *key*; its dead letter is known by *letter_key*, after a restart by that alone.
    """

    def __init__(self, broker: Broker, audit: NetworkAudit, key: Key, letter_key: Key) -> None:
        self._broker = broker
        self._audit = audit
        self._key = key
        self._letter_key = letter_key

    def is_known(self) -> bool:
        """Tell whether the message was taken before, or buried."""
        return self._audit.knows(self._key) or self._audit.knows(self._letter_key)

    def take(
        self,
        connection: Connection,
        letter: Message,
        receipt: Receipt | None,
        is_admitted: bool = False,
    ) -> None:
        """Take the dead letter; one that *is admitted* has waited for room already."""
        context, flow = self._broker.context, self._broker.flow
        region = context.find_route(letter.destination)
        if not is_admitted and not flow.admits(connection, letter, receipt, (region,), self.take):
            return
        if is_admitted and self.is_known():
            if receipt is not None:
                context.settle_behind(receipt)
            return
        region.accept(letter, receipt)
        self._audit.note(self._key)
