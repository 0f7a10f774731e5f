"""Eviction: the message that goes when too many wait (ActiveMQ's messageEvictionStrategy)."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import nsmallest
from typing import TYPE_CHECKING

from lockkeeper.broker.message_properties import property_lookup
from lockkeeper.message.message import Message
from lockkeeper.store.base import Reference

if TYPE_CHECKING:
    from lockkeeper.broker.regions.priority_queue import PriorityQueue


class MessageEvictionStrategy(Enum):
    """Order in which waiting messages are discarded."""

    OLDEST_MESSAGE = "OldestMessage"
    OLDEST_MESSAGE_WITH_LOWEST_PRIORITY = "OldestMessageWithLowestPriority"
    UNIQUE_PROPERTY_MESSAGE = "UniquePropertyMessage"


@dataclass(frozen=True, slots=True)
class MessageEvictionPolicy:
    """ActiveMQ's strategies; `property_name` is for the unique property."""

    strategy: MessageEvictionStrategy = MessageEvictionStrategy.OLDEST_MESSAGE
    property_name: str = ""


def evict(
    policy: MessageEvictionPolicy,
    ready: "deque[Reference] | PriorityQueue",
    limit: int,
    message_of: Callable[[Reference], Message],
) -> list[Reference]:
    """Remove messages from *ready*, which has more, until *limit* are left; returns them.

    *message_of* returns the body of a message, read from the disk if need be.
    """
    evicted = []
    if policy.strategy is MessageEvictionStrategy.UNIQUE_PROPERTY_MESSAGE:
        evicted = _superseded(policy.property_name, ready, message_of)
    elif policy.strategy is MessageEvictionStrategy.OLDEST_MESSAGE_WITH_LOWEST_PRIORITY:
        # Of equals it finds the oldest first.
        evicted = nsmallest(
            len(ready) - limit, ready, key=lambda reference: message_of(reference).priority
        )
    elif not isinstance(ready, deque):
        evicted = nsmallest(
            len(ready) - limit, ready, key=lambda reference: message_of(reference).sequence
        )
    _remove(evicted, ready)
    while len(ready) > limit:
        evicted.append(ready.popleft())
    return evicted


def _remove(evicted: Sequence[Reference], ready: "deque[Reference] | PriorityQueue") -> None:
    if evicted:
        gone = {id(reference) for reference in evicted}
        kept = [reference for reference in ready if id(reference) not in gone]
        ready.clear()
        ready.extend(kept)


def _superseded(
    name: str, ready: Iterable[Reference], message_of: Callable[[Reference], Message]
) -> list[Reference]:
    """Return all but the newest message of each value of a property.

    Messages without the property go too, as in ActiveMQ, unless none has it.
    """
    newest: dict[object, Reference] = {}
    for reference in ready:
        value = property_lookup(message_of(reference))(name)
        if value is not None:
            newest[value] = reference
    if not newest:
        return []
    kept = {id(reference) for reference in newest.values()}
    return [reference for reference in ready if id(reference) not in kept]
