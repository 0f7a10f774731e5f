"""Queue browsers: a snapshot of a queue, sent as copies that change nothing."""

from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from lockkeeper.broker.context import LOOK_BYTES, SHARE_BYTES_MAX
from lockkeeper.broker.regions.backlog import Backlog
from lockkeeper.broker.regions.body_cache import BodyCache
from lockkeeper.broker.regions.line import Snapshot
from lockkeeper.broker.regions.statistics import Statistics
from lockkeeper.message.message import head_of
from lockkeeper.store.base import Receipt, Reference

if TYPE_CHECKING:
    from lockkeeper.broker.regions.queue import Queue
    from lockkeeper.broker.subscriptions.consumer import Consumer


class Browse(Backlog):
    """Messages that one browser has not been shown yet, from the time when it came.

    Messages that consumers hold are shown first, as they are the oldest; then what waits. What was
    sent does not come again, so no body is kept for it: the browser goes on however full the memory
    is.
    """

    __slots__ = ("consumer", "ended", "origin", "shown")

    def __init__(self, queue: "Queue", consumer: "Consumer") -> None:
        body_cache = BodyCache(queue.context, queue.destination, queue.policy)
        super().__init__(queue.context, queue.destination, Statistics(), body_cache)
        self.consumer = consumer
        self.ended = False
        held = [each for other in queue.consumers for each in other.held_of(queue)]
        held.sort(key=attrgetter("delivery"))
        self.shown = Snapshot([deque(held), *queue.segments()])

    def takers(self) -> "Sequence[Consumer]":
        """Return the browser itself."""
        return (self.consumer,)

    def depth(self) -> int:
        """Return how many messages it has not been shown."""
        return len(self.shown)

    def dispatch(self) -> None:
        """Show what the browser has room for, then the end."""
        context = self.context
        enough = context.unsent + SHARE_BYTES_MAX
        while self.shown and self.consumer.credit() > 0:
            if context.unsent >= enough:
                context.postpone(self)
                return
            reference = self.shown.popleft()
            context.unsent += reference.size + LOOK_BYTES
            message = self.peek(reference)
            if message is None or self.is_expired(message) or not self.consumer.accepts(message):
                continue
            copy = Reference(message, reference.size)
            copy.redeliveries = reference.redeliveries
            self.consumer.deliver((Reference(head_of(message), reference.size),), (copy,))
        if not self.shown and not self.ended:
            self.ended = True
            _end_when_all_is_shown(self.consumer)

    def consumed(
        self, consumer: "Consumer", references: Sequence[Reference], receipt: Receipt | None
    ) -> None:
        """Only make room: what a browser acknowledges stays in the queue."""
        consumer.shrink(len(references))
        if receipt is not None:
            receipt.settle()
        self.activate()

    def detach(self, consumer: "Consumer") -> None:
        """Let go of everything: the browser has gone."""
        self.shown.close()
        self.shown, self.ended = Snapshot(()), True

    def forget_applied(self, references: Sequence[Reference], at: int) -> None:
        """Only make room: nothing else has ended."""
        self.activate()

    def give_back(self, references: Sequence[Reference]) -> None:
        """Do nothing: the queue never lost them."""

    def poison(self, reference: Reference, cause: str) -> None:
        """Do nothing: a browser cannot end a message."""

    def expire_held(self, reference: Reference) -> None:
        """Do nothing: the queue expires its own messages."""


def begin_browsing(browser: "Consumer") -> None:
    """Show a browser what its queues hold, all of those that its wildcard or list names."""
    for backlog in browser.backlogs:
        backlog.activate()
    _end_when_all_is_shown(browser)


def _end_when_all_is_shown(browser: "Consumer") -> None:
    """Tell a browser of the end once, when nothing is left of any of its queues."""
    browses = [backlog for backlog in browser.backlogs if isinstance(backlog, Browse)]
    if all(browse.ended for browse in browses):
        browser.end()
