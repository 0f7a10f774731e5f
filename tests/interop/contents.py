"""What a broker serves, whichever it is: queues in order, subscriptions, prepared transactions."""

from collections.abc import Iterable
from typing import NamedTuple

import wire

from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import XATransactionId
from lockkeeper.message.openwire import DELIVERED_NOTHING, Message, RemoveInfo

QUIET_SECONDS = 0.7


class Subscriber(NamedTuple):
    """A durable subscription, as its subscriber asks for it."""

    client_id: str
    name: str
    topic: str
    selector: str | None = None
    no_local: bool = False


def queue_contents(port: int, name: str) -> list[Message]:
    """Return what a queue holds, in its order."""
    with wire.Wire(port) as connection:
        return connection.browse(queue(name))


def subscription_contents(port: int, subscriber: Subscriber) -> list[Message]:
    """Return what a durable subscription holds, in its order; it keeps all of it."""
    found: list[Message] = []
    with wire.Wire(port, subscriber.client_id) as connection:
        consumer = connection.consumer(
            topic(subscriber.topic),
            subscription_name=subscriber.name,
            selector=subscriber.selector,
            no_local=subscriber.no_local,
        )
        while (dispatch := connection.next_dispatch(QUIET_SECONDS)) is not None:
            assert dispatch.message is not None
            assert not dispatch.redelivery_counter, f"{dispatch.message.message_id} came before"
            found.append(dispatch.message)
        leave = RemoveInfo(object_id=consumer, last_delivered_sequence=DELIVERED_NOTHING)
        connection.request(leave)
        connection.leave()
    return found


def everything_queued(port: int) -> set[tuple[str, str]]:
    """Return queue and id of every message in any queue, as a consumer of all queues gets them."""
    found = set()
    with wire.Wire(port) as connection:
        connection.consumer(queue(">"))
        while (dispatch := connection.next_dispatch(QUIET_SECONDS)) is not None:
            assert dispatch.message is not None and dispatch.destination is not None
            found.add((dispatch.destination.name, str(dispatch.message.message_id)))
    return found


def in_doubt(port: int) -> list[XATransactionId]:
    """Return the prepared transactions."""
    with wire.Wire(port) as connection:
        return connection.in_doubt()


def ids(messages: Iterable[Message]) -> list[str]:
    """Return the ids of messages."""
    return [str(message.message_id) for message in messages]
