"""Virtual time, and the processes that live in it: each thread of a process is a greenlet.

One real thread runs everything. A greenlet gives way when it would wait: for time, for a lock,
for bytes. It also comes by here at every system call, which is where a process can be stopped or
killed in the midst of its work. What is due at the same moment is done in an order that the seed
decides.
"""

import asyncio
import hashlib
import random
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from greenlet import getcurrent, greenlet

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
MICROSECOND = 1_000
# Nobody's clock begins at zero: the machine has been up for a while.
BOOTED_BEFORE = 1_000 * SECOND
BEGAN_AT = 1_760_000_000 * SECOND


class StalledError(Exception):
    """Nothing is left to happen, or too much happens without time going on."""


class Process:
    """A process of the operating system: alive or not, perhaps stopped, with a wall clock."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.is_alive = True
        self.stopped_until = 0
        self.wall_offset = 0
        # Somebody else may lock what it has locked, and it ends once it sees that.
        self.has_lost_locks = False
        self.locals: dict[str, Any] = {}
        self.at_end: list[Callable[[], None]] = []
        # Counts down with each system call; what is planned happens at zero.
        self.calls_left: int | None = None
        self.plan: Callable[[Process], None] | None = None


class Task(greenlet):
    """One thread of a process. `turn` counts its waits, so that no wake-up is for another one."""

    def __init__(self, process: Process, work: Callable[[], None], hub: greenlet) -> None:
        super().__init__(work, hub)
        self.process = process
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: object = None
        self.turn = 0
        self.is_waiting = False


_HUBS: list["Hub"] = []


def the_hub() -> "Hub":
    """Return the hub of this world: a real process has one."""
    return _HUBS[-1]


class Hub:
    """The world's clock and its agenda."""

    def __init__(self, seed: int) -> None:
        self.now = 0
        self.chance = random.Random(seed)
        self.current: Task | None = None
        self.problems: list[str] = []
        self.trace = hashlib.blake2b(digest_size=8)
        self.processes: list[Process] = []
        self.outside = self.start("outside")
        _HUBS.append(self)
        self._agenda: list[tuple[int, float, int, Callable[[], None]]] = []
        self._count = 0
        self._greenlet = getcurrent()
        # What was killed is kept: a greenlet that is collected would run its clean-up.
        self._tasks: list[Task] = []

    # Time

    def call_at(self, when: int, action: Callable[[], None]) -> None:
        """Do something at *when* (ns)."""
        self._count += 1
        heappush(self._agenda, (max(when, self.now), self.chance.random(), self._count, action))

    def call_later(self, delay: int, action: Callable[[], None]) -> None:
        """Do something *delay* ns from now."""
        self.call_at(self.now + delay, action)

    def run(self, is_over: Callable[[], bool], until: int) -> bool:
        """Let time go on until *is_over*; False when it is not by *until*."""
        idle = 0
        while not is_over():
            if not self._agenda or self._agenda[0][0] > until:
                self.now = max(self.now, until)
                return is_over()
            when, _, _, action = heappop(self._agenda)
            idle = idle + 1 if when == self.now else 0
            if idle > 1_000_000:
                raise StalledError("time does not go on")
            self.now = when
            action()
        return True

    # Processes

    def start(self, name: str) -> Process:
        """Begin a process without any thread yet."""
        process = Process(name, len(self.processes) + 1)
        self.processes.append(process)
        return process

    def kill(self, process: Process) -> None:
        """End a process at once: SIGKILL. Its own threads never go on."""
        if not process.is_alive:
            return
        process.is_alive = False
        self.note(f"kill {process.name}")
        for each in process.at_end:
            each()
        if self.current is not None and self.current.process is process:
            self._give_way()

    def stop(self, process: Process, duration: int) -> None:
        """Stop a process for *duration* ns: SIGSTOP and SIGCONT."""
        process.stopped_until = max(process.stopped_until, self.now + duration)
        self.note(f"stop {process.name} {duration}")
        if self.current is not None and self.current.process is process:
            self.sleep(duration)

    def spawn(self, process: Process, work: Callable[[], None]) -> Task:
        """Begin a thread."""
        task = Task(process, self._guarded(process, work), self._greenlet)
        self._tasks.append(task)
        self.call_at(self.now, lambda: self._resume(task, 0, True))
        task.is_waiting = True
        return task

    def _guarded(self, process: Process, work: Callable[[], None]) -> Callable[..., None]:
        def run(_: object) -> None:
            try:
                work()
            except Exception as error:
                self.problem(f"a thread of {process.name} ended by {error!r}", error)

        return run

    def process(self) -> Process | None:
        """Return the process that runs now, None between them."""
        return None if self.current is None else self.current.process

    # Waiting

    def park(self, timeout: int | None = None) -> bool:
        """Wait to be woken; False when *timeout* ns pass before."""
        task = self.current
        assert task is not None, "only a simulated thread can wait"
        task.turn += 1
        task.is_waiting = True
        if timeout is not None:
            turn = task.turn
            self.call_later(max(0, timeout), lambda: self._resume(task, turn, False))
        return bool(self._give_way())

    def unpark(self, task: Task) -> None:
        """Wake a thread that waits."""
        if task.is_waiting:
            turn = task.turn
            self.call_at(self.now, lambda: self._resume(task, turn, True))

    def sleep(self, duration: int) -> None:
        """Wait *duration* ns whatever happens."""
        end = self.now + duration
        while self.now < end:
            self.park(end - self.now)

    def _give_way(self) -> object:
        self.current = None
        return self._greenlet.switch()

    def _resume(self, task: Task, turn: int, woken: bool) -> None:
        process = task.process
        if not task.is_waiting or task.turn != turn or not process.is_alive or task.dead:
            return
        if process.stopped_until > self.now:
            self.call_at(process.stopped_until, lambda: self._resume(task, turn, woken))
            return
        task.is_waiting = False
        self.current = task
        self.note(process.name)
        asyncio._set_running_loop(task.loop)
        try:
            task.switch(woken)
        finally:
            asyncio._set_running_loop(None)
            self.current = None

    # System calls

    def system_call(self, name: str) -> None:
        """Come by: this is where a process may be stopped or killed."""
        task = self.current
        if task is None:
            return
        process = task.process
        self.note(name)
        if process.calls_left is not None:
            process.calls_left -= 1
            if process.calls_left <= 0 and process.plan is not None:
                plan, process.plan, process.calls_left = process.plan, None, None
                plan(process)

    # What is found

    def note(self, text: str) -> None:
        """Let what happens count for the digest, by which two runs are compared."""
        self.trace.update(f"{self.now} {text}\n".encode())

    def problem(self, text: str, error: BaseException | None = None) -> None:
        """Note something that must not be."""
        if error is not None:
            import traceback

            lines = traceback.format_exception(error)
            text = f"{text}\n{''.join(lines)[-3000:]}"
        self.problems.append(f"[{self.now / SECOND:.3f}] {text}")
