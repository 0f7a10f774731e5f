"""The interface of interceptors, and the order in which a broker asks them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from lockkeeper.broker.interceptors.timestamps import Timestamping
from lockkeeper.broker.interceptors.user_ids import UserIdStamping
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt

if TYPE_CHECKING:
    from lockkeeper.broker.connections import Connection
    from lockkeeper.broker.context import Context
    from lockkeeper.broker.settings import BrokerSettings


class Interceptor(Protocol):
    """Sees every message that a client sends."""

    def intercept(
        self, connection: "Connection", message: Message, receipt: Receipt | None
    ) -> Message | None:
        """Return the message to go on with, None when it is dealt with and *receipt* settled.

        Raises BrokerError to refuse it.
        """

    def passes(self, messages: Sequence[Message]) -> bool:
        """Tell whether messages that begin alike would all go on as they are."""


def interceptors(
    context: "Context",
    settings: "BrokerSettings",
    scheduler: Interceptor | None,
    statistics: Interceptor,
) -> tuple[Interceptor, ...]:
    """Return what the settings ask for, in order.

    A question for figures is answered before anybody works on it. Times come next: whatever reads
    a message later must see the broker's clock. The user's name follows, so that a scheduled
    message carries it too. The scheduler comes last, because what it takes is sent again when it
    is due.
    """
    found: list[Interceptor] = []
    if settings.statistics_queries:
        found.append(statistics)
    if settings.timestamps is not None:
        found.append(Timestamping(context, settings.timestamps))
    if settings.populate_jmsx_user_id:
        found.append(UserIdStamping(context))
    if settings.scheduler.enabled and scheduler is not None:
        found.append(scheduler)
    return tuple(found)
