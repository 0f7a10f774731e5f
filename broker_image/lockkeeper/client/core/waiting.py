"""Procedures: calls that may have to wait, written once for both faces.

A procedure is a generator. It yields a `Wait` when it cannot go on; whoever drives it waits, in a
thread or in an event loop, until it is woken or the time has come, and sends it the new time.
Closing the generator cancels the call.
"""

from collections.abc import Generator
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

T = TypeVar("T")


class Moment(NamedTuple):
    """A time in seconds, by a clock that never jumps and by the calendar's (since 1970)."""

    now: float
    wall: float


class Waiter(Protocol):
    """Something that waits; `wake` may be called more than once, and from any thread."""

    def wake(self) -> None:
        """Let it look again."""


class WaitLine:
    """All that wait for the same thing."""

    __slots__ = ("waiters",)

    def __init__(self) -> None:
        self.waiters: list[Waiter] = []

    def wake(self) -> None:
        """Let all look again: only who gets it is in no need to wait longer."""
        if self.waiters:
            for waiter in self.waiters:
                waiter.wake()


class Wait(NamedTuple):
    """Waiting for something to happen, or for a moment (None: never)."""

    line: WaitLine
    until: float | None


Procedure: TypeAlias = Generator[Wait, Moment, T]


def earliest(*moments: float | None) -> float | None:
    """Return the first of some moments, of which None never comes."""
    found = [each for each in moments if each is not None]
    return min(found) if found else None
