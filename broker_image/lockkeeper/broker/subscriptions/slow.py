"""Watches consumers where the policy of a destination ends the slow ones.

It looks from time to time, and at nothing in between: messages and acknowledgements cost the
same with it and without.
"""

from collections.abc import Callable

from lockkeeper.broker.policies.slow_consumers import (
    SlowConsumerPolicy,
    SlowConsumerStrategy,
    is_too_slow,
)
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.timers import Timers


class Watched:
    """Result of the last check of a consumer.

    `progress` changes with what counts as a sign of life, `progress_at` is when it was last seen
    to change (ms of `steady`), `checks` counts the checks in a row that found the consumer
    slow.
    """

    __slots__ = ("checks", "progress", "progress_at")

    def __init__(self, now: int) -> None:
        self.progress: tuple[int, ...] = ()
        self.progress_at = now
        self.checks = 0

    def learn(self, progress: tuple[int, ...]) -> bool:
        """Note the figures of a check, and tell whether they changed."""
        changed = self.progress != progress
        self.progress = progress
        return changed


class SlowConsumers:
    """All consumers under watch, by policy; each policy has its own rhythm.

    `abort`, set by the core, ends a consumer against its will; True as its second argument ends
    the connection.
    """

    abort: Callable[[Consumer, bool], None]

    def __init__(self, timers: Timers, steady: Callable[[], int]) -> None:
        """*steady* returns the ms that only pass, by which *timers* go."""
        self._timers = timers
        self._steady = steady
        self._watched: dict[SlowConsumerPolicy, dict[Consumer, Watched]] = {}

    def watch(self, consumer: Consumer, policy: SlowConsumerPolicy) -> None:
        """Watch a consumer for as long as it is there, if the policy asks for it."""
        if policy.strategy is SlowConsumerStrategy.NONE:
            return
        watched = self._watched.get(policy)
        if watched is None:
            watched = self._watched[policy] = {}
            self._check_later(policy)
        watched.setdefault(consumer, Watched(self._steady()))

    def find(self, consumer: Consumer) -> Watched | None:
        """Return what is known of a consumer under watch."""
        return next((one[consumer] for one in self._watched.values() if consumer in one), None)

    def _check_later(self, policy: SlowConsumerPolicy) -> None:
        due = self._steady() + policy.check_period
        self._timers.call_at(due, lambda: self._check_all(policy))

    def _check_all(self, policy: SlowConsumerPolicy) -> None:
        watched = self._watched[policy]
        for consumer, record in list(watched.items()):
            if consumer.closed:
                del watched[consumer]
                continue
            self._check_one(policy, consumer, record)
            if is_too_slow(policy, record.checks):
                del watched[consumer]
                self.abort(consumer, policy.abort_connection)
        if watched:
            self._check_later(policy)
        else:
            del self._watched[policy]

    def _check_one(self, policy: SlowConsumerPolicy, consumer: Consumer, record: Watched) -> None:
        acknowledged = consumer.delivered - len(consumer.dispatched)
        if policy.strategy is SlowConsumerStrategy.ABORT_SLOW:
            # A delivery moves the window, too.
            is_moving = record.learn((consumer.delivered, acknowledged, consumer.extension))
            is_slow = consumer.is_slow() and not is_moving
        else:
            now = self._steady()
            is_idle = policy.ignore_idle_consumers and not consumer.dispatched
            if record.learn((acknowledged, consumer.extension)) or is_idle:
                record.progress_at = now
            is_slow = now - record.progress_at > policy.max_time_since_last_ack
        record.checks = record.checks + 1 if is_slow else 0
