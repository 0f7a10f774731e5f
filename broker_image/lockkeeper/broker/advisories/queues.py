"""Queues whose policy has something told of their messages; others are plain ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lockkeeper.broker.context import Context
from lockkeeper.broker.policies.advisories import AdvisoryPolicy
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.message.destination import Destination
from lockkeeper.store.base import Receipt, Reference

if TYPE_CHECKING:
    from lockkeeper.broker.subscriptions.consumer import Consumer


class AdvisingQueue(Queue):
    """A queue that tells of its messages; see `AdvisoryPolicy`."""

    __slots__ = ()

    def admit(self, reference: Reference) -> None:
        """Make a message visible, and tell of it."""
        super().admit(reference)
        policy, is_wanted = self.policy.advisories, bool(self.consumers)
        if policy.is_about_arrival:
            self.context.advisories.arrived(self.destination, policy, reference.loaded, is_wanted)

    def consumed(
        self, consumer: "Consumer", references: Sequence[Reference], receipt: Receipt | None
    ) -> None:
        """Forget acknowledged messages, and tell of them."""
        super().consumed(consumer, references, receipt)
        self.tell_consumed(references)

    def forget_applied(self, references: Sequence[Reference]) -> None:
        """Let go of messages whose removal a committed transaction has stored; tell of them."""
        super().forget_applied(references)
        self.tell_consumed(references)

    def dispatch(self) -> None:
        """Send what consumers have room for, and tell of those that messages wait for."""
        super().dispatch()
        if self.policy.advisories.advisory_for_slow_consumers and self.depth():
            for consumer in self.consumers:
                self.context.advisories.slow(consumer, self.destination)


def adopt_advisories(queue: Queue, policy: AdvisoryPolicy) -> None:
    """Have a queue that is there tell of its messages, or tell no more.

    Both kinds are laid out alike, so that one can become the other; special queues stay as
    they are.
    """
    if type(queue) in (Queue, AdvisingQueue):
        queue.__class__ = AdvisingQueue if policy.is_about_queue else Queue


def make_queue(context: Context, destination: Destination) -> Queue:
    """Return a new queue, of the kind that its policy needs."""
    policy = context.policies.find(destination).advisories
    return (
        AdvisingQueue(context, destination)
        if policy.is_about_queue
        else Queue(context, destination)
    )
