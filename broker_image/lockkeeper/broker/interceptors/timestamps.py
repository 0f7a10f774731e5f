"""The broker's clock instead of the producer's (ActiveMQ's timeStampingBrokerPlugin)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockkeeper.message.broker_path import broker_path
from lockkeeper.message.message import Message
from lockkeeper.message.patching import ends_at, patched, timestamp_of
from lockkeeper.store.base import Receipt

if TYPE_CHECKING:
    from lockkeeper.broker.connections import Connection
    from lockkeeper.broker.context import Context


@dataclass(frozen=True, slots=True)
class TimestampSettings:
    """ActiveMQ's attributes: times to live in ms, 0 for none.

    `zero_expiration_override` is for messages without an expiry, `ttl_ceiling` the longest that
    any may have; with `future_only` no expiry is moved to an earlier time.
    """

    zero_expiration_override: int = 0
    ttl_ceiling: int = 0
    future_only: bool = False


class Timestamping:
    """Sets a message's timestamp to the broker's time, and its expiry with it."""

    def __init__(self, context: "Context", settings: TimestampSettings) -> None:
        self._context = context
        self._settings = settings

    def intercept(
        self, connection: "Connection", message: Message, receipt: Receipt | None
    ) -> Message:
        """See `Interceptor.intercept`; messages without a timestamp stay as they are."""
        timestamp = timestamp_of(message)
        if timestamp <= 0 or broker_path(message.body):
            return message
        settings, now = self._settings, self._context.now
        time_to_live = settings.zero_expiration_override
        if message.expiration > 0:
            time_to_live = message.expiration - timestamp
        if settings.ttl_ceiling and time_to_live > 0:
            time_to_live = min(time_to_live, settings.ttl_ceiling)
        expiration = ends_at(now, time_to_live)
        if settings.future_only and expiration <= message.expiration:
            return message
        return patched(
            message,
            message.sequence,
            timestamp=now,
            expiration=expiration if time_to_live > 0 else None,
        )

    def passes(self, messages: Sequence[Message]) -> bool:
        """See `Interceptor.passes`: each gets a time of its own."""
        return False
