"""`threading` and `queue` for simulated threads: the same names, on the hub's time."""

import itertools
import threading as real
from collections import deque
from collections.abc import Callable, Iterable
from math import ceil
from types import ModuleType
from typing import Any

from simulation.hub import SECOND, Task, the_hub
from simulation.shim import Shim

_NAMES = itertools.count(1)


def nanoseconds(seconds: float | None) -> int | None:
    """Return *seconds* in ns."""
    return None if seconds is None else max(0, ceil(seconds * SECOND))


class Line:
    """Threads that wait for something, first come first served."""

    def __init__(self) -> None:
        self.tasks: deque[Task] = deque()

    def wait(self, timeout: int | None) -> bool:
        task = the_hub().current
        assert task is not None
        self.tasks.append(task)
        woken = the_hub().park(timeout)
        if not woken and task in self.tasks:
            self.tasks.remove(task)
        return woken

    def wake(self, count: int) -> None:
        for _ in range(min(count, len(self.tasks))):
            the_hub().unpark(self.tasks.popleft())


class Until:
    """A time to wait for: None never comes."""

    def __init__(self, seconds: float | None) -> None:
        wait = nanoseconds(seconds)
        self._end = None if wait is None else the_hub().now + wait

    @property
    def left(self) -> int | None:
        return None if self._end is None else self._end - the_hub().now

    @property
    def is_over(self) -> bool:
        return self._end is not None and the_hub().now >= self._end


class Lock:
    """A lock that anybody may release, and that its owner cannot take again."""

    def __init__(self) -> None:
        self._is_taken = False
        self._line = Line()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        until = Until(None if timeout < 0 else timeout)
        while self._is_taken:
            if not blocking or until.is_over:
                return False
            self._line.wait(until.left)
        self._is_taken = True
        return True

    def release(self) -> None:
        assert self._is_taken
        self._is_taken = False
        self._line.wake(1)

    def locked(self) -> bool:
        return self._is_taken

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class RLock:
    """A lock that its owner may take again."""

    def __init__(self) -> None:
        self._owner: object = None
        self._depth = 0
        self._line = Line()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me = the_hub().current or the_hub()
        until = Until(None if timeout < 0 else timeout)
        while self._owner is not None and self._owner is not me:
            if not blocking or until.is_over:
                return False
            self._line.wait(until.left)
        self._owner = me
        self._depth += 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._line.wake(1)

    def locked(self) -> bool:
        return self._owner is not None

    def let_go(self) -> int:
        depth, self._depth, self._owner = self._depth, 0, None
        self._line.wake(1)
        return depth

    def take_back(self, depth: int) -> None:
        self.acquire()
        self._depth = depth

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Condition:
    def __init__(self, lock: RLock | None = None) -> None:
        self._lock = lock or RLock()
        self.acquire, self.release = self._lock.acquire, self._lock.release
        self._line = Line()

    def wait(self, timeout: float | None = None) -> bool:
        depth = self._lock.let_go()
        woken = self._line.wait(nanoseconds(timeout))
        self._lock.take_back(depth)
        return woken

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        until = Until(timeout)
        while not (result := predicate()) and not until.is_over:
            left = until.left
            self.wait(None if left is None else left / SECOND)
        return result

    def notify(self, count: int = 1) -> None:
        self._line.wake(count)

    def notify_all(self) -> None:
        self._line.wake(len(self._line.tasks))

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Event:
    def __init__(self) -> None:
        self._is_set = False
        self._line = Line()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._line.wake(len(self._line.tasks))

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        until = Until(timeout)
        while not self._is_set and not until.is_over:
            self._line.wait(until.left)
        return self._is_set


class Thread:
    def __init__(
        self,
        group: None = None,
        target: Callable[..., Any] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self.name = name or f"thread-{next(_NAMES)}"
        self.daemon = daemon
        self._target, self._args, self._kwargs = target, tuple(args), kwargs or {}
        self._ended = Event()
        self._task: Task | None = None

    def run(self) -> None:
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

    def start(self) -> None:
        hub = the_hub()
        self._task = hub.spawn(hub.process() or hub.outside, self._work)

    def _work(self) -> None:
        task = the_hub().current
        assert task is not None
        task.thread = self
        try:
            self.run()
        finally:
            self._ended.set()

    def join(self, timeout: float | None = None) -> None:
        self._ended.wait(timeout)

    def is_alive(self) -> bool:
        return self._task is not None and not self._ended.is_set()


class MainThread:
    name = "MainThread"


_MAIN = MainThread()


def current_thread() -> object:
    task = the_hub().current
    return _MAIN if task is None or task.thread is None else task.thread


class SimpleQueue:
    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._line = Line()

    def put(self, item: object, block: bool = True, timeout: float | None = None) -> None:
        self._items.append(item)
        self._line.wake(1)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        while not self._items:
            self._line.wait(nanoseconds(timeout))
        return self._items.popleft()

    def empty(self) -> bool:
        return not self._items


def make_threading() -> ModuleType:
    """Return the module `threading`."""
    return Shim(
        real,
        Thread=Thread,
        Lock=Lock,
        RLock=RLock,
        Condition=Condition,
        Event=Event,
        current_thread=current_thread,
        get_native_id=lambda: 0,
    )
