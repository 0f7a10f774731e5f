"""`time` and `datetime` for simulated processes: each has a wall clock that may be wrong."""

import datetime as real_datetime
import time as real
from types import ModuleType
from typing import Self

from simulation.hub import BEGAN_AT, BOOTED_BEFORE, SECOND, Hub
from simulation.shim import Shim


def make_time(hub: Hub) -> ModuleType:
    """Return the module."""

    def wall() -> int:
        process = hub.process()
        return BEGAN_AT + hub.now + (process.wall_offset if process is not None else 0)

    def steady() -> int:
        return BOOTED_BEFORE + hub.now

    def clock_gettime_ns(clock: int) -> int:
        return wall() if clock == real.CLOCK_REALTIME else steady()

    return Shim(
        real,
        time_ns=wall,
        time=lambda: wall() / SECOND,
        monotonic_ns=steady,
        monotonic=lambda: steady() / SECOND,
        perf_counter_ns=steady,
        perf_counter=lambda: steady() / SECOND,
        # Work takes no time here: only waiting does.
        thread_time_ns=lambda: 0,
        thread_time=lambda: 0.0,
        process_time_ns=lambda: 0,
        process_time=lambda: 0.0,
        clock_gettime_ns=clock_gettime_ns,
        clock_gettime=lambda clock: clock_gettime_ns(clock) / SECOND,
        sleep=lambda seconds: hub.sleep(int(seconds * SECOND)),
    )


def make_datetime_class(hub: Hub) -> type:
    """Return `datetime.datetime` with its own `now`."""
    time = make_time(hub)

    class Datetime(real_datetime.datetime):
        @classmethod
        def now(cls, tz: real_datetime.tzinfo | None = None) -> Self:
            return cls.fromtimestamp(time.time(), tz)

    return Datetime
