"""Refused messages of other brokers: dead letters, where nobody else could do anything about them.

A client is told, and its message is its own matter. A bridge would only bring it again, and again
be refused, and all that waits behind it would wait for ever.
"""

import logging

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.policies.dead_letters import dead_letter, dead_letter_destination
from lockkeeper.message.destination import queue
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt

logger = logging.getLogger(__name__)


def bury_refused(
    broker: Broker,
    connection: Connection,
    message: Message,
    refusal: BrokerError,
    receipt: Receipt | None,
) -> None:
    """Make a dead letter of a message of a bridge that is refused whenever it comes.

    The receipt is settled when that is durable. One that is not persistent ends, unless its
    policy keeps it.
    """
    context, origin = broker.context, message.destination
    if message.persistent and connection.audit.is_duplicate(message):
        if receipt is not None:
            context.settle_behind(receipt)
        return
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
    buried = dead_letter(message, target, str(refusal), context.copy_id(message), expiration)
    context.find_route(target).accept(buried, receipt)
    context.advisories.dead_lettered(origin, policy.advisories, message)
    if message.persistent:
        connection.audit.record(message)
