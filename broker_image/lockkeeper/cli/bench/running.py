"""The course of a bench: connect, send for so long, wait for what is under way, end."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TypeAlias

from lockkeeper.cli.bench.figures import Figures
from lockkeeper.cli.bench.load import Load
from lockkeeper.cli.bench.processes import Order, Processes, processes_of

LOOK_SECONDS = 0.1
TELL_SECONDS = 1.0
QUIET_SECONDS = 5.0
"""How long messages are waited for when none comes."""

Tell: TypeAlias = Callable[[float, float, Figures], None]
"""Called with the seconds since the beginning, those since the last call, and their figures."""


@dataclass
class Outcome:
    """All figures of a bench, and those of each second."""

    began: int
    """Nanoseconds since the epoch, when producers began to send."""
    figures: Figures = field(default_factory=Figures)
    by_second: list[tuple[float, Figures]] = field(default_factory=list)
    """Seconds since the beginning, and what was done since the line before."""

    def seconds_until(self, moment: int) -> float:
        """Return the seconds from the beginning to *moment*, more than 0."""
        return max(1e-6, (moment - self.began) / 1e9)


def run_load(load: Load, count: int, tell: Tell) -> Outcome:
    """Put *load* on a broker from *count* processes; *tell* is called once a second.

    Ctrl-C ends the sending, a second one the waiting for what is under way. Raises CommandError.
    """
    with processes_of(load, count) as processes:
        processes.ask(Order.CONNECT)
        with _counting_interrupts() as interrupts:
            course = _Course(load, processes, tell)
            course.ask_all(Order.BEGIN)
            while not course.is_done and len(interrupts) < 2:
                time.sleep(LOOK_SECONDS)
                course.ask_all(Order.LOOK)
                if interrupts or course.is_time_over:
                    course.end_producers()
            course.ask_all(Order.END)
    return course.outcome


class _Course:
    """What came of a bench until now, and whether it is at its end."""

    def __init__(self, load: Load, processes: Processes, tell: Tell) -> None:
        self.outcome = Outcome(time.time_ns())
        self._load = load
        self._processes = processes
        self._tell = tell
        self._began = self._last_told = self._last_came = time.monotonic()
        self._recent = Figures()
        self._is_sent = self._is_ending = False

    @property
    def is_time_over(self) -> bool:
        """Tell whether the time of the load is over."""
        seconds = self._load.seconds
        return seconds is not None and time.monotonic() - self._began >= seconds

    @property
    def is_done(self) -> bool:
        """Tell whether all is sent and received, or nothing more comes."""
        if not (self._is_sent or self._is_ending):
            return False
        if time.monotonic() - self._last_came >= QUIET_SECONDS:
            return True
        figures, load = self.outcome.figures, self._load
        if load.producers:
            return self._is_sent and figures.received >= load.expected(figures.sent)
        return self._is_ending or (load.messages is not None and figures.received >= load.messages)

    def ask_all(self, order: Order) -> None:
        """Give *order*, and add what is reported."""
        report = self._processes.ask(order)
        figures, now = report.figures, time.monotonic()
        self._is_sent = report.is_sent
        self.outcome.figures.merge(figures)
        self._recent.merge(figures)
        if figures.sent or figures.received or figures.left_behind:
            self._last_came = now
        if now - self._last_told >= TELL_SECONDS:
            self._tell(now - self._began, now - self._last_told, self._recent)
            self.outcome.by_second.append((now - self._began, self._recent))
            self._recent, self._last_told = Figures(), now

    def end_producers(self) -> None:
        """Tell producers once to end."""
        if not self._is_ending:
            self._is_ending = True
            self.ask_all(Order.END_PRODUCERS)


@contextmanager
def _counting_interrupts() -> Iterator[list[int]]:
    """Give a list that grows with each Ctrl-C, which interrupts nothing else meanwhile."""
    interrupts: list[int] = []

    def note_interrupt(number: int, _frame: FrameType | None) -> None:
        interrupts.append(number)

    before = signal.signal(signal.SIGINT, note_interrupt)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
