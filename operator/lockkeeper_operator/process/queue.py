"""Work queue: each key once at a time, however often it is called for."""

import asyncio
import heapq
import random
from typing import Generic, TypeVar

KeyType = TypeVar("KeyType")
BACKOFF_SECONDS_MIN = 0.25
BACKOFF_SECONDS_MAX = 30.0
PASSED_OVER_MAX = 64
"""Times that are kept although they do not count any more, besides as many as do."""


class WorkQueue(Generic[KeyType]):
    """Keys to be worked on, in the order in which they fell due.

    A key that is added while it waits changes nothing; one that is added while it is worked on
    comes again afterwards. So whoever works sees what is so now, not each step on the way. A key
    that falls due wakes one of those who wait, and a timer none but for that.
    """

    def __init__(self) -> None:
        self._ready: asyncio.Queue[KeyType] = asyncio.Queue()
        self._waiting: dict[KeyType, float] = {}
        self._working: set[KeyType] = set()
        self._again: dict[KeyType, float] = {}
        self._later: list[tuple[float, int, KeyType]] = []
        self._due: dict[KeyType, float] = {}
        self._failures: dict[KeyType, int] = {}
        self._count = 0
        self._alarm: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return how many keys are due."""
        return len(self._waiting)

    def add(self, key: KeyType, after: float = 0.0) -> None:
        """Call for *key*, at once or after so many seconds, whichever call is the earliest."""
        now = asyncio.get_running_loop().time()
        if after <= 0:
            self._due.pop(key, None)
            self._add_now(key, now)
            return
        due = now + after
        if key in self._waiting or self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        self._count += 1
        heapq.heappush(self._later, (due, self._count, key))
        if len(self._later) > PASSED_OVER_MAX + 2 * len(self._due):
            self._pass_over()
        self._set_alarm()

    def retry(self, key: KeyType, at_least: float = 0.0) -> float:
        """Call for *key* again after a failure; returns the seconds until then."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        growing = min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_MIN * 2.0 ** min(failures - 1, 16))
        delay = max(at_least, growing) * random.uniform(0.7, 1.3)
        self.add(key, delay)
        return delay

    def succeeded(self, key: KeyType) -> None:
        """Forget the failures of *key*."""
        self._failures.pop(key, None)

    async def take(self) -> tuple[KeyType, float]:
        """Return the next key and since when it is due; `done` must follow."""
        key = await self._ready.get()
        wanted = self._waiting.pop(key)
        self._working.add(key)
        return key, wanted

    def done(self, key: KeyType) -> None:
        """Say that the work on *key* is over."""
        self._working.discard(key)
        wanted = self._again.pop(key, None)
        if wanted is not None:
            self._add_now(key, wanted)

    def _add_now(self, key: KeyType, since: float) -> None:
        if key in self._working:
            self._again.setdefault(key, since)
        elif key not in self._waiting:
            self._waiting[key] = since
            self._ready.put_nowait(key)

    def _set_alarm(self) -> None:
        """Have one timer for all keys: it rings when the next of them falls due."""
        if not self._later:
            return
        due = self._later[0][0]
        if self._alarm is not None:
            if self._alarm.when() <= due:
                return
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_at(due, self._ring)

    def _pass_over(self) -> None:
        """Forget times that do not count any more, as their keys fell due before."""
        self._later = [each for each in self._later if self._due.get(each[2]) == each[0]]
        heapq.heapify(self._later)

    def _ring(self) -> None:
        self._alarm = None
        now = asyncio.get_running_loop().time()
        while self._later and self._later[0][0] <= now:
            due, _, key = heapq.heappop(self._later)
            if self._due.get(key) == due:
                del self._due[key]
                self._add_now(key, due)
        self._set_alarm()
