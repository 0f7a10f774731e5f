"""The gate of a queue: shut while it is paused, and until enough consumers are there."""

from collections.abc import Sequence
from typing import Protocol

from lockkeeper.broker.context import Context
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.timers import Timer


class Gated(Protocol):
    """A queue, as its gate knows it."""

    policy: DestinationPolicy

    @property
    def context(self) -> Context:
        """The services of the core."""

    @property
    def consumers(self) -> Sequence[object]:
        """Consumers that take messages."""

    def activate(self) -> None:
        """Have the queue dispatch at the end of this tick."""


class DispatchGate:
    """Permission of a queue to dispatch: `is_open`; the other fields say why not.

    `paused_since` and `starts_at` are in ms since the epoch, None when not paused, or when
    dispatch does not wait to start.
    """

    __slots__ = ("_queue", "_timer", "is_open", "paused_since", "starts_at")

    def __init__(self, queue: Gated) -> None:
        self._queue = queue
        self._timer: Timer | None = None
        self.is_open = True
        self.paused_since: int | None = None
        self.starts_at: int | None = None

    def pause(self) -> None:
        """Keep everything that waits, until `resume`; what consumers hold is theirs."""
        if self.paused_since is None:
            self.paused_since = self._queue.context.now
        self.is_open = False

    def resume(self) -> None:
        """Dispatch again."""
        self.paused_since = None
        self._update()

    def joined(self) -> None:
        """Note that a consumer came: the first one may have to wait, the last one ends that."""
        policy, context = self._queue.policy.dispatch, self._queue.context
        count, wanted = len(self._queue.consumers), policy.consumers_before_dispatch_starts
        if 0 < wanted <= count:
            if self.starts_at is not None:
                self._start()
        elif count == 1 and policy.start_delay():
            self.starts_at = context.now + policy.start_delay()
            due = context.steady + policy.start_delay()
            self._timer = context.timers.call_at(due, self._start)
            self.is_open = False

    def left(self) -> None:
        """Note that a consumer went: when nobody is left, the next one is a first one again."""
        if not self._queue.consumers:
            self._start()

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.starts_at = None
        self._update()

    def _update(self) -> None:
        self.is_open = self.paused_since is None and self.starts_at is None
        self._queue.activate()
