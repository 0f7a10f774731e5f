"""Descriptors and clocks of simulated processes."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation.clocks import make_time
from simulation.hub import SECOND, Hub
from simulation.kernel import Kernel


def test_a_thread_that_polls_waits_until_its_descriptor_is_readable() -> None:
    hub = Hub(0)
    kernel = Kernel(hub)
    select = kernel.make_select(lambda *_: None)
    number = kernel.eventfd(0)
    found: list[tuple[int, list[tuple[int, int]]]] = []

    def wait() -> None:
        poll = select.poll()
        poll.register(number, select.POLLIN)
        ready = poll.poll()
        found.append((hub.now, ready))

    hub.spawn(hub.start("broker"), wait)
    hub.call_at(SECOND, lambda: kernel.eventfd_write(number, 1))
    hub.run(lambda: bool(found), 2 * SECOND)
    assert found == [(SECOND, [(number, select.POLLIN)])]


def test_no_real_clock_is_left_to_a_process() -> None:
    kinds = {"time", "monotonic", "perf_counter", "thread_time", "process_time", "clock_gettime"}
    clocks = {name for name in dir(time) if name.removesuffix("_ns") in kinds}
    assert len(clocks) == 2 * len(kinds)
    assert clocks - vars(make_time(Hub(0))).keys() == set()
