"""Changes of users and permissions, applied to connections that are open."""

from collections.abc import Callable

from lockkeeper.broker.access.permissions import Right
from lockkeeper.broker.access.rights import Rights
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import AccessDeniedError
from lockkeeper.broker.outputs import ConsumerClosed, Disconnect
from lockkeeper.broker.subscription_manager import DELIVERED_UNKNOWN

Renew = Callable[[Rights], Rights | None]
"""Returns the rights that a user has now, None for one who may not connect any more."""


def renew_rights(broker: Broker, renew: Renew) -> None:
    """Give every connection the rights of now, and end what they do not allow any more.

    A user who is gone is disconnected. A consumer is told why and closed: what it held goes to
    others. A producer meets its limits with the next message.
    """
    for connection in list(broker.connections.values()):
        if connection.rights is None:
            continue
        user = connection.rights.user
        rights = renew(connection.rights)
        if rights is None:
            broker.end(connection, AccessDeniedError(f"User {user} may not connect any more"))
            continue
        connection.rights = rights
        connection.last_destination = None
        _close_forbidden(broker, connection, rights)


def _close_forbidden(broker: Broker, connection: Connection, rights: Rights) -> None:
    for consumer in list(connection.consumers.values()):
        try:
            rights.require(Right.READ, consumer.destination)
        except AccessDeniedError as error:
            connection.put(Disconnect(error))
            connection.put(ConsumerClosed(consumer.tag))
            broker.subscriptions.unsubscribe(consumer, DELIVERED_UNKNOWN)
