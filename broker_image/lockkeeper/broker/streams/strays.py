"""Strays: messages in a segment's queue that are none of its stream.

Somebody sent them there at ActiveMQ, to which it is a queue as any other, or moved them. The stream
has no offset for them, and its retention would end them with the segment. So a start moves them
to the dead letters, where somebody finds them, and tells of it.
"""

import logging
from typing import Final

from lockkeeper.broker.context import Context
from lockkeeper.broker.policies.dead_letters import dead_letter, dead_letter_destination
from lockkeeper.broker.regions.arrival import Arrival
from lockkeeper.message.destination import Destination, queue
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import LocalTransactionId
from lockkeeper.store.base import Add, Operation, Reference, Remove

logger = logging.getLogger(__name__)

AT_ONCE: Final = 256
"""So many are read at once."""
_PRODUCER: Final = "ID:lockkeeper-stream-strays"


def move_strays(context: Context, strays: dict[Destination, list[Reference]]) -> None:
    """Move messages without a place in their stream to the dead letters; blocks.

    Each is in the journal in one place or the other, whatever crashes. Raises StoreError.
    """
    count = 0
    for origin, found in strays.items():
        logger.warning(
            "%s: %d messages that are none of its stream; they go to the dead letters",
            origin,
            len(found),
        )
        for at in range(0, len(found), AT_ONCE):
            references = found[at : at + AT_ONCE]
            context.store.load(references, context.next_sequence(len(references)))
            for stray in references:
                count += 1
                try:
                    _move(context, origin, stray, LocalTransactionId(_PRODUCER, count))
                except MalformedMessageError as error:
                    context.containment.note_error("message", origin, error)


def _move(
    context: Context, origin: Destination, stray: Reference, transaction: LocalTransactionId
) -> None:
    policy, message = context.policies.find(origin).dead_letters, stray.loaded
    # Nobody asked for it to be discarded here.
    target = dead_letter_destination(policy, origin, message, expired=False) or queue(policy.queue)
    expiration = context.now + policy.expiration if policy.expiration else 0
    cause = f"it was sent to {origin.name}, the queue of a stream's segment, and is none of it"
    buried = dead_letter(message, target, cause, context.copy_id(message), expiration)
    route = context.find_route(target)
    moved = [Reference(buried, len(buried.body))]
    stored = route.stored_later(moved)
    added = [Add(route.destination, stored)] if stored else []
    operations: list[Operation] = [*added, Remove(origin, [stray])]
    arrival = Arrival(context, route, moved)
    context.store.commit(transaction, operations, arrival)
    arrival.begin()
