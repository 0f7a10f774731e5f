"""Things to do later: the core's own clockwork, driven by `Broker.tick`."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush

# So many cancelled timers are carried along at most before the heap is swept.
_CANCELLED_MAX = 1000


class Timer:
    """Something to be done at `due` (ms since the epoch), unless it is cancelled before."""

    __slots__ = ("_timers", "action", "due", "number")

    def __init__(self, timers: "Timers", due: int, number: int, action: Callable[[], None]) -> None:
        self._timers = timers
        self.due = due
        self.number = number
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Never do it; done or cancelled already, nothing happens."""
        if self.action is not None:
            self.action = None
            self._timers.note_cancelled()

    def __lt__(self, other: "Timer") -> bool:
        """Order by time, and what is due at the same time by when it was asked for."""
        return (self.due, self.number) < (other.due, other.number)


class Timers:
    """All timers of a broker."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._count = 0
        self._cancelled = 0

    def __len__(self) -> int:
        """Return how many timers are kept, those cancelled but not yet swept included."""
        return len(self._heap)

    def call_at(self, due: int, action: Callable[[], None]) -> Timer:
        """Have *action* called by the first `run` at or after *due* (ms since the epoch)."""
        self._count += 1
        timer = Timer(self, due, self._count, action)
        heappush(self._heap, timer)
        return timer

    def next_due(self) -> int | None:
        """Return when the next timer is due, if there is one."""
        heap = self._heap
        while heap and heap[0].action is None:
            heappop(heap)
            self._cancelled -= 1
        return heap[0].due if heap else None

    def run(self, now: int) -> None:
        """Do everything that is due at *now*; what that asks for is done by a later run."""
        due: list[Timer] = []
        while self._heap and self._heap[0].due <= now:
            due.append(heappop(self._heap))
        for timer in due:
            action, timer.action = timer.action, None
            if action is None:
                self._cancelled -= 1
            else:
                action()

    def note_cancelled(self) -> None:
        """Count a timer that is not wanted any more, and sweep when there are many."""
        self._cancelled += 1
        if self._cancelled > _CANCELLED_MAX and self._cancelled * 2 > len(self._heap):
            self._heap = [timer for timer in self._heap if timer.action is not None]
            heapify(self._heap)
            self._cancelled = 0
