"""Figures with their bars, and brokers that aims are tried on."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import others
from loads import Socket, Wire
from others import OURS, Measured

from lockkeeper.message.destination import Destination, queue

SECONDS_MAX = 600
WAITING = queue("AIM")


@dataclass(frozen=True)
class Settings:
    """The directory of all files, and how many there are to be of what is counted."""

    directory: Path
    count: int


@dataclass(frozen=True)
class Figure:
    """What was measured, and the bar: at most, or at least so much; None: there is none."""

    name: str
    value: float
    unit: str
    most: float | None = None
    least: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the bar is met, if there is one."""
        above = self.most is not None and self.value > self.most
        below = self.least is not None and self.value < self.least
        return not (above or below)

    def __str__(self) -> str:
        text = f"{self.name}: {self.value:,.3g} {self.unit}".replace(" ratio", "")
        if self.value >= 1000:
            text = f"{self.name}: {self.value:,.0f} {self.unit}"
        if self.most is None and self.least is None:
            return text
        bar, word = (self.most, "at most") if self.most is not None else (self.least, "at least")
        assert bar is not None
        verdict = "met" if self.is_met else f"MISSED, {self.value / bar:.2f} of it"
        return f"{text} (aim: {word} {bar:,g}; {verdict})"


def wire(broker: Measured, name: str, destination: Destination = WAITING) -> Wire:
    """Return a connection with one producer or consumer."""
    return Wire(Socket(broker.running.port, SECONDS_MAX), f"ID:aim-{name}", destination)


@contextmanager
def broker(
    directory: Path,
    kind: str = OURS,
    listener: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
) -> Iterator[Measured]:
    """Run a broker with its journal below *directory*."""
    started = others.start(kind, directory, listener=listener, spec=spec)
    try:
        yield started
    finally:
        started.running.stop()


def memory(process_id: int, name: str = "VmRSS") -> int:
    """Return the bytes that a process has in memory, or had at most (VmHWM)."""
    status = Path(f"/proc/{process_id}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024
