"""Things to do later: the core's own clockwork, driven by `Broker.tick`.

Every time here is in ms of one clock, whichever its owner goes by.
"""

from collections.abc import Callable
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Final

from lockkeeper.broker.containment import Containment, retry_delay

# So many are done in a run at most.
AT_ONCE_MAX: Final = 512
# So many cancelled timers are carried along at most before the heap is swept.
_CANCELLED_MAX: Final = 1000
NEVER: Final = 1 << 63


class Timer:
    """Something to be done at `due`, unless it is cancelled before.

    `failures` counts how often in a row it could not be done.
    """

    __slots__ = ("_timers", "action", "due", "failures")

    def __init__(self, timers: "Timers", due: int, action: Callable[[], None]) -> None:
        self._timers = timers
        self.due = due
        self.action: Callable[[], None] | None = action
        self.failures = 0

    def cancel(self) -> None:
        """Never do it; done or cancelled already, nothing happens."""
        if self.action is not None:
            self.action = None
            self._timers.note_cancelled()

    def is_of(self, timers: "Timers") -> bool:
        """Tell whether the timer goes by the clock of *timers*."""
        return self._timers is timers


class Timers:
    """All timers of a broker that go by the same clock.

    What fails is done again later, and keeps nothing else from being done. Before `earliest`
    there is nothing to do.
    """

    def __init__(self, containment: Containment) -> None:
        self._containment = containment
        self.earliest = NEVER
        # By time; what is due at the same time by when it was asked for.
        self._heap: list[tuple[int, int, Timer]] = []
        self._count = 0
        self._cancelled = 0

    def __len__(self) -> int:
        """Return how many timers are kept, those cancelled but not yet swept included."""
        return len(self._heap)

    def call_at(self, due: int, action: Callable[[], None]) -> Timer:
        """Have *action* called by the first `run` at or after *due*."""
        timer = Timer(self, due, action)
        self._push(timer)
        return timer

    def _push(self, timer: Timer) -> None:
        self._count += 1
        heappush(self._heap, (timer.due, self._count, timer))
        self.earliest = self._heap[0][0]

    def next_due(self) -> int | None:
        """Return when the next timer is due, if there is one."""
        heap = self._heap
        while heap and heap[0][2].action is None:
            heappop(heap)
            self._cancelled -= 1
        return heap[0][0] if heap else None

    def run(self, now: int, spent: Callable[[], bool] = lambda: False) -> None:
        """Do what is due at *now*, until enough is *spent*; the rest is done by a later run.

        So is what this run's things ask for.
        """
        due: list[tuple[int, int, Timer]] = []
        while self._heap and self._heap[0][0] <= now and len(due) < AT_ONCE_MAX:
            due.append(heappop(self._heap))
        done = 0
        try:
            for _, _, timer in due:
                if spent():
                    break
                done += 1
                action, timer.action = timer.action, None
                if action is None:
                    self._cancelled -= 1
                    continue
                try:
                    action()
                except Exception as error:
                    self._fail(timer, action, now, error)
        finally:
            for entry in due[done:]:
                heappush(self._heap, entry)
            self.earliest = self._heap[0][0] if self._heap else NEVER

    def _fail(self, timer: Timer, action: Callable[[], None], now: int, error: Exception) -> None:
        """Have an action called again later; the more often it failed, the later."""
        self._containment.note_error("timer", _name_of(action), error)
        timer.failures += 1
        timer.due, timer.action = now + retry_delay(timer.failures), action
        self._push(timer)

    def note_cancelled(self) -> None:
        """Count a timer that is not wanted any more, and sweep when there are many."""
        self._cancelled += 1
        if self._cancelled > _CANCELLED_MAX and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].action is not None]
            heapify(self._heap)
            self._cancelled = 0


def _name_of(action: object) -> str:
    """Return what an action is called in logs."""
    while isinstance(action, partial):
        action = action.func
    return str(getattr(action, "__qualname__", type(action).__name__))
