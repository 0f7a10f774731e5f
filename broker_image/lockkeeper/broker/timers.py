"""Things to do later: the core's own clockwork, driven by `Broker.tick`.

Every time here is in ms of one clock, whichever its owner goes by.
"""

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import Final, TypeAlias

from lockkeeper.broker.containment import Containment, retry_delay

# So many are done in a run at most.
AT_ONCE_MAX: Final = 512
# So many cancelled timers are carried along at most before they are swept out.
_CANCELLED_MAX: Final = 1000
# So many are looked at after so many more cancellations while they are swept out: that is done
# before there are as many cancelled ones again.
_SWEPT_AT_ONCE: Final = 256
_SWEEP_EVERY: Final = 64
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


# By time; what is due at the same time by when it was asked for.
_Heap: TypeAlias = list[tuple[int, int, Timer]]


class Timers:
    """All timers of a broker that go by the same clock.

    What fails is done again later, and keeps nothing else from being done. Before `earliest`
    there is nothing to do.

    When more than half are cancelled, they are swept out as further ones are cancelled, some at a
    time: there may be very many. What is unswept shrinks from its end, where a heap may, and what
    is wanted of it goes over into the other heap.
    """

    def __init__(self, containment: Containment) -> None:
        self._containment = containment
        self.earliest = NEVER
        self._heap: _Heap = []
        self._unswept: _Heap = []
        self._count = 0
        self._cancelled = 0
        self._since_swept = 0

    def __len__(self) -> int:
        """Return how many timers are kept, those cancelled but not yet swept out included."""
        return len(self._heap) + len(self._unswept)

    def call_at(self, due: int, action: Callable[[], None]) -> Timer:
        """Have *action* called by the first `run` at or after *due*."""
        timer = Timer(self, due, action)
        self._push(timer)
        return timer

    def _push(self, timer: Timer) -> None:
        self._count += 1
        due = timer.due
        heappush(self._heap, (due, self._count, timer))
        if due < self.earliest:
            self.earliest = due

    def _foremost(self) -> _Heap:
        """Return the heap that begins with the timer that is due first; empty if there is none."""
        heap, unswept = self._heap, self._unswept
        return unswept if unswept and (not heap or unswept[0] < heap[0]) else heap

    def next_due(self) -> int | None:
        """Return when the next timer is due, if there is one.

        Behind very many that are cancelled, it is when one of those would have been.
        """
        heap = self._foremost()
        for _ in range(AT_ONCE_MAX):
            if not heap or heap[0][2].action is not None:
                break
            heappop(heap)
            self._cancelled -= 1
            heap = self._foremost()
        self.earliest = heap[0][0] if heap else NEVER
        return heap[0][0] if heap else None

    def run(self, now: int, spent: Callable[[], bool] = lambda: False) -> None:
        """Do what is due at *now*, until enough is *spent*; the rest is done by a later run.

        So is what this run's things ask for.
        """
        due: _Heap = []
        heap = self._foremost()
        while heap and heap[0][0] <= now and len(due) < AT_ONCE_MAX:
            due.append(heappop(heap))
            if self._unswept:
                heap = self._foremost()
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
            while done < len(due):
                heappush(self._heap, due[done])
                done += 1
            heap = self._foremost()
            self.earliest = heap[0][0] if heap else NEVER

    def _fail(self, timer: Timer, action: Callable[[], None], now: int, error: Exception) -> None:
        """Have an action called again later; the more often it failed, the later."""
        self._containment.note_error("timer", _name_of(action), error)
        timer.failures += 1
        timer.due, timer.action = now + retry_delay(timer.failures), action
        self._push(timer)

    def note_cancelled(self) -> None:
        """Count a timer that is not wanted any more, and sweep when there are many."""
        self._cancelled += 1
        if self._unswept:
            self._since_swept += 1
            if self._since_swept == _SWEEP_EVERY:
                self._sweep()
        elif self._cancelled > _CANCELLED_MAX and self._cancelled * 2 > len(self._heap):
            self._heap, self._unswept = [], self._heap
            self._sweep()

    def _sweep(self) -> None:
        """Let go of the cancelled ones among the next few, and have the others in the heap."""
        looked_at = self._unswept[-_SWEPT_AT_ONCE:]
        del self._unswept[-_SWEPT_AT_ONCE:]
        wanted = [entry for entry in looked_at if entry[2].action is not None]
        for entry in wanted:
            heappush(self._heap, entry)
        self._cancelled -= len(looked_at) - len(wanted)
        self._since_swept = 0


def _name_of(action: object) -> str:
    """Return what an action is called in logs."""
    while isinstance(action, partial):
        action = action.func
    return str(getattr(action, "__qualname__", type(action).__name__))
