"""Diagnostics of a consumer: the reasons why it is sent no more."""

from typing import TYPE_CHECKING

from lockkeeper.broker.context import DELIVERY_BITS
from lockkeeper.broker.diagnostics.reason import Reason, counted, facts_of, name_of

if TYPE_CHECKING:
    from lockkeeper.broker.subscriptions.consumer import Consumer


def why_no_room(consumer: "Consumer") -> Reason | None:
    """Return why a consumer has no room, None when it has."""
    if consumer.credit() > 0:
        return None
    name, facts = name_of(consumer), facts_of(consumer)
    if consumer.connection.congested:
        return Reason(
            "congested",
            f"{name} does not read what it was sent: its connection is congested",
            "look at the client: it hangs, or its network does",
            facts,
        )
    if not consumer.prefetch:
        return Reason(
            "no-pull",
            f"{name} has a prefetch of 0 and is not asking for a message",
            "it gets the next one when it calls receive",
            facts,
        )
    held = len(consumer.dispatched)
    oldest = min(each.delivery for each in consumer.dispatched.values())
    return Reason(
        "window-full",
        f"{name} has not acknowledged {counted(held, 'message')}, "
        f"and its window is {consumer.prefetch:,}",
        "it has to acknowledge, or needs a larger prefetch",
        {
            **facts,
            "unacknowledged": held,
            "prefetch": consumer.prefetch,
            "since": oldest >> DELIVERY_BITS,
        },
    )
