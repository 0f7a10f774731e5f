"""Descriptors that only a kernel has: eventfd, timerfd, epoll, on the hub's time."""

import ctypes as real_ctypes
import select as real_select
from collections.abc import Callable
from types import ModuleType
from typing import Any

from simulation.hub import Hub
from simulation.shim import Shim

FIRST = 1_000_000
"""Numbers from here on are ours; the system's own are small."""


class Waitable:
    """Something that turns readable, and tells who watches it."""

    def __init__(self) -> None:
        self.watchers: list[Callable[[], None]] = []

    def readable(self) -> bool:
        raise NotImplementedError

    def changed(self) -> None:
        for each in list(self.watchers):
            each()


class EventDescriptor(Waitable):
    def __init__(self, value: int) -> None:
        super().__init__()
        self.value = value

    def readable(self) -> bool:
        return self.value > 0


class TimerDescriptor(Waitable):
    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self._hub = hub
        self._setting = 0
        self.has_rung = False

    def set(self, delay: int) -> None:
        self._setting += 1
        self.has_rung = False
        mine = self._setting

        def ring() -> None:
            if mine == self._setting:
                self.has_rung = True
                self.changed()

        if delay:
            self._hub.call_later(delay, ring)

    def readable(self) -> bool:
        return self.has_rung


class PollDescriptor(Waitable):
    def __init__(self) -> None:
        super().__init__()
        self.members: dict[int, Waitable] = {}

    def readable(self) -> bool:
        return any(each.readable() for each in self.members.values())


class Kernel:
    """The table of descriptors of the whole world; numbers are never used twice."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.table: dict[int, Waitable] = {}
        self._last = FIRST

    def enter(self, entry: Waitable) -> int:
        self._last += 1
        self.table[self._last] = entry
        return self._last

    # What `os` does with them

    def eventfd(self, value: int, flags: int = 0) -> int:
        return self.enter(EventDescriptor(value))

    def eventfd_read(self, number: int) -> int:
        entry = self.table[number]
        assert isinstance(entry, EventDescriptor)
        if not entry.value:
            raise BlockingIOError(11, "nothing there")
        value, entry.value = entry.value, 0
        return value

    def eventfd_write(self, number: int, value: int) -> None:
        entry = self.table[number]
        assert isinstance(entry, EventDescriptor)
        entry.value += value
        entry.changed()

    def read(self, number: int, size: int) -> bytes:
        entry = self.table[number]
        assert isinstance(entry, TimerDescriptor)
        if not entry.has_rung:
            raise BlockingIOError(11, "nothing there")
        entry.has_rung = False
        return bytes(size)

    def close(self, number: int) -> None:
        del self.table[number]

    # What the C library does

    def make_ctypes(self) -> ModuleType:
        kernel = self

        class Library:
            def __init__(self, *_: object, **__: object) -> None:
                pass

            def timerfd_create(self, clock: int, flags: int) -> int:
                return kernel.enter(TimerDescriptor(kernel.hub))

            def timerfd_settime(self, number: int, flags: int, when: Any, _: object) -> int:
                entry = kernel.table[number]
                assert isinstance(entry, TimerDescriptor)
                entry.set(when[2] * 1_000_000_000 + when[3])
                return 0

        return Shim(real_ctypes, CDLL=Library)

    def make_select(self, select: Callable[..., Any]) -> ModuleType:
        kernel = self

        class Poll:
            def __init__(self) -> None:
                self._entry = PollDescriptor()
                self._number = kernel.enter(self._entry)

            def register(self, number: int, events: int = 0) -> None:
                member = kernel.table[number]
                self._entry.members[number] = member
                member.watchers.append(self._entry.changed)

            def fileno(self) -> int:
                return self._number

            def close(self) -> None:
                kernel.close(self._number)

        class WaitingPoll:
            def __init__(self) -> None:
                self._members: dict[int, Waitable] = {}

            def register(self, number: int, events: int = 0) -> None:
                self._members[number] = kernel.table[number]

            def poll(self) -> list[tuple[int, int]]:
                hub, task = kernel.hub, kernel.hub.current
                assert task is not None, "only a simulated thread can wait"

                def wake() -> None:
                    hub.unpark(task)

                for each in self._members.values():
                    each.watchers.append(wake)
                while not any(each.readable() for each in self._members.values()):
                    hub.park()
                for each in self._members.values():
                    each.watchers.remove(wake)
                return [
                    (number, real_select.POLLIN)
                    for number, each in self._members.items()
                    if each.readable()
                ]

        return Shim(real_select, epoll=Poll, poll=WaitingPoll, select=select)
