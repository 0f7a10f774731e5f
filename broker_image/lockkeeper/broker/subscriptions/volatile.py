"""Subscriptions that end with their consumer, and lose messages when policy says so."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from lockkeeper.broker.context import Context
from lockkeeper.broker.policies.message_eviction import evict
from lockkeeper.broker.policies.pending_message_limit import UNLIMITED, pending_message_limit
from lockkeeper.broker.regions.line import Line
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.subscriptions.topic import Source, TopicSubscription
from lockkeeper.store.base import Reference

_NEVER: Final = 1 << 62


class VolatileSubscription(TopicSubscription):
    """A consumer's own subscription.

    No more than `pending_limit` messages wait, unless it is UNLIMITED; `discarded` counts those
    that had to go for it. None of what waits expires before `_next_expiry`, so that one need not
    look for expired messages before.
    """

    __slots__ = ("_end", "_next_expiry", "discarded", "pending_limit")

    def __init__(
        self,
        context: Context,
        source: Source,
        consumer: Consumer,
        end: "Callable[[VolatileSubscription], None]",
    ) -> None:
        """*end* has the topic forget the subscription."""
        super().__init__(context, source, consumer)
        self._end = end
        self.discarded = 0
        self._next_expiry = _NEVER
        self.pending_limit = pending_message_limit(
            self.policy.pending_message_limit, consumer.prefetch, consumer.request.pending_limit
        )

    def pack(self) -> None:
        """Pack a long backlog; where what is too much is discarded, there is none."""
        if self.may_be_long:
            super().pack()

    def hold_back(self, references: Sequence[Reference]) -> None:
        """Let messages wait, or discard what is too much once the consumer's window is full."""
        if self.pending_limit == UNLIMITED:
            self.activate()
            return
        self._expect_expiry(references)
        self.dispatch()
        assert not isinstance(self.ready, Line)
        if len(self.ready) > self._room():
            if self._next_expiry < self.context.now:
                self._end_expired()
            policy = self.policy.message_eviction
            self._discard_all(evict(policy, self.ready, self._room(), self.body_of))

    @property
    def may_be_long(self) -> bool:
        """True if any number of messages may wait."""
        return self.pending_limit == UNLIMITED

    def _room(self) -> int:
        """Return how many messages may wait: those that the consumer has room for do for a turn."""
        assert self.consumer is not None
        return self.pending_limit + max(0, self.consumer.credit())

    def _expect_expiry(self, references: Iterable[Reference]) -> None:
        for reference in references:
            expiration = self.body_of(reference).expiration
            if 0 < expiration < self._next_expiry:
                self._next_expiry = expiration

    def _end_expired(self) -> None:
        """End what has expired: that goes first."""
        waiting = list(self.ready)
        self.ready.clear()
        for reference in waiting:
            if self.is_expired(self.body_of(reference)):
                self.expire(reference)
            else:
                self.ready.append(reference)
        self._next_expiry = _NEVER
        self._expect_expiry(self.ready)

    def _discard_all(self, references: Sequence[Reference]) -> None:
        """Drop messages that the consumer was too slow for."""
        self.discarded += len(references)
        self.statistics.discarded += len(references)
        self.statistics.dequeued += len(references)
        if self.policy.advisories.advisory_for_discarding_messages and self.consumer is not None:
            messages = [self.body_of(reference) for reference in references]
            self.context.advisories.discarded(
                self.consumer, self.destination, messages, self.discarded
            )
        self._drop(references)

    def _bury(self, reference: Reference, cause: str, expired: bool) -> None:
        """End a message, and leave no dead letter: ActiveMQ keeps only those of the durable."""
        if expired:
            message, policy = self.body_of(reference), self.policy.advisories
            self.context.advisories.expired(self.destination, policy, message)
        self.statistics.dequeued += 1
        self._drop((reference,))

    def detach(self, consumer: Consumer) -> None:
        """End with the consumer."""
        self._end(self)

    def give_back(self, references: Sequence[Reference]) -> None:
        """Forget what the consumer held: it is gone, and the subscription with it."""
        self.body_cache.let_go(references)
        self._drop(references)
