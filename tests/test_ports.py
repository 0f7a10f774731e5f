"""Ports for tests: no two processes are given the same one, and the system gives none of them."""

from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path

from ports import END, FIRST, free_ports


def test_no_port_is_given_twice() -> None:
    with ProcessPoolExecutor(4) as processes:
        given = list(chain.from_iterable(processes.map(free_ports, [3] * 200)))
    assert len(set(given)) == len(given) == 600


def test_the_system_gives_none_of_them_by_itself() -> None:
    lowest, _ = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert FIRST < END < lowest
