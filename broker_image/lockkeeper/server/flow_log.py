"""Tells the log of sends that wait for room, and when they no longer do."""

import logging

from lockkeeper.broker.core import Broker
from lockkeeper.broker.flow.control import Blocked, Key
from lockkeeper.broker.flow.space import Limit, described, holders

logger = logging.getLogger(__name__)


class FlowLog:
    """Looks at the waiting sends of one broker from time to time."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._told: dict[Key, int] = {}

    def log_waiting_sends(self, now: int, steady: int) -> None:
        """Log sends that began to wait, or that have waited for another interval; see `Context`."""
        broker = self._broker
        if not broker.flow.lines and not self._told:
            return
        waiting = {(each.destination, each.is_persistent): each for each in broker.flow.blocked()}
        for key, blocked in waiting.items():
            policy = broker.policies.find(blocked.destination).flow
            interval = policy.blocked_producer_warning_interval
            if interval and steady - self._told.get(key, steady - interval) >= interval:
                self._told[key] = steady
                self._log_blocked(blocked, now)
        for key in self._told.keys() - waiting.keys():
            del self._told[key]
            logger.info("sends to %s no longer wait for room", key[0])

    def _log_blocked(self, blocked: Blocked, now: int) -> None:
        if blocked.limit is Limit.STORE_USAGE:
            holding = "`lockkeeper why file` tells what keeps the journal's files"
        else:
            shares = (
                f"{each.destination} {each.memory_bytes}" for each in holders(self._broker.registry)
            )
            holding = "bytes in memory: " + ", ".join(shares)
        logger.warning(
            "%d sends to %s have waited for %d ms: %s; %s",
            blocked.sends,
            blocked.destination,
            max(0, now - blocked.since),
            described(self._broker.store, blocked.limit),
            holding,
        )
