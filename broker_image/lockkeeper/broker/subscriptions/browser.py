"""Queue browsers: a snapshot of a queue, sent as copies that change nothing."""

from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from lockkeeper.broker.context import LOOK_BYTES, MESSAGE_BYTES, SHARE_BYTES_MAX
from lockkeeper.broker.regions.backlog import Backlog
from lockkeeper.broker.regions.body_cache import BodyCache
from lockkeeper.broker.regions.line import Snapshot
from lockkeeper.broker.regions.statistics import Statistics
from lockkeeper.store.base import Receipt, Reference

if TYPE_CHECKING:
    from lockkeeper.broker.regions.queue import Queue
    from lockkeeper.broker.subscriptions.consumer import Consumer


class Browse(Backlog):
    """Messages that one browser has not been shown yet, from the time when it came.

    Messages that consumers hold are shown first, as they are the oldest; then what waits. `read`
    are the copies that it holds of messages that were only on disk, with what each weighs.
    """

    __slots__ = ("consumer", "ended", "origin", "read", "shown")

    def __init__(self, queue: "Queue", consumer: "Consumer") -> None:
        body_cache = BodyCache(queue.context, queue.destination, queue.policy)
        super().__init__(queue.context, queue.destination, Statistics(), body_cache)
        self.consumer = consumer
        self.ended = False
        self.read: dict[Reference, int] = {}
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
        context, memory = self.context, self.context.memory
        enough = context.unsent + SHARE_BYTES_MAX
        while self.shown and self.consumer.credit() > 0:
            if context.unsent >= enough:
                context.postpone(self)
                return
            if memory.used > memory.limit and not self.may_hold(self.consumer, []):
                return
            reference = self.shown.popleft()
            context.unsent += reference.size + LOOK_BYTES
            message = self.peek(reference)
            if message is None or self.is_expired(message) or not self.consumer.accepts(message):
                continue
            copy = Reference(message, reference.size)
            copy.redeliveries = reference.redeliveries
            if reference.message is None:
                self._charge(copy)
            self.consumer.deliver((copy,))
        if not self.shown and not self.ended:
            self.ended = True
            _end_when_all_is_shown(self.consumer)

    def consumed(
        self, consumer: "Consumer", references: Sequence[Reference], receipt: Receipt | None
    ) -> None:
        """Only make room: what a browser acknowledges stays in the queue."""
        consumer.shrink(len(references))
        self._refund(references)
        if receipt is not None:
            receipt.settle()
        self.activate()

    def _charge(self, copy: Reference) -> None:
        """Count a body that nobody else has in memory."""
        self.read[copy] = size = MESSAGE_BYTES + len(copy.loaded.body)
        self.context.memory.used += size

    def _refund(self, references: Sequence[Reference]) -> None:
        """Give back the memory of copies that it holds no more."""
        self.context.memory.used -= sum(self.read.pop(copy, 0) for copy in references)

    def detach(self, consumer: "Consumer") -> None:
        """Let go of everything: the browser has gone."""
        self.shown.close()
        self.shown, self.ended = Snapshot(()), True
        self._refund([*self.read])

    def forget_applied(self, references: Sequence[Reference]) -> None:
        """Only make room: nothing else has ended."""
        self._refund(references)
        self.activate()

    def give_back(self, references: Sequence[Reference]) -> None:
        """Do nothing: the queue never lost them."""

    def poison(self, reference: Reference, cause: str) -> None:
        """Do nothing: a browser cannot end a message."""

    def expire(self, reference: Reference) -> None:
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
