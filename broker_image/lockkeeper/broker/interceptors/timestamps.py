"""The broker's clock instead of the producer's (ActiveMQ's timeStampingBrokerPlugin)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockkeeper.message.message import Message
from lockkeeper.message.rewrite import decoded, encoded
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
        fields = decoded(message)
        if fields.timestamp <= 0 or fields.broker_path:
            return message
        settings, now = self._settings, self._context.now
        time_to_live = settings.zero_expiration_override
        if fields.expiration > 0:
            time_to_live = fields.expiration - fields.timestamp
        if settings.ttl_ceiling and time_to_live > 0:
            time_to_live = min(time_to_live, settings.ttl_ceiling)
        expiration = now + time_to_live
        if settings.future_only and expiration <= fields.expiration:
            return message
        fields.timestamp = now
        if time_to_live > 0:
            fields.expiration = expiration
        return encoded(fields, message.sequence)
