"""Ports that nobody listens on, for what tests and the bench start.

None of them is one that the system gives away by itself: while a broker starts, its port would now
and then become that of somebody else, who had asked for any port or dialled somewhere. Processes of
tests share one counter, so that none is given to two of them at a time.
"""

import fcntl
import os
import socket
import tempfile
from pathlib import Path

FIRST, END = 10_000, 29_000
"""Below what Linux gives away (32,768), and below the node ports of Kubernetes."""
COUNTER = Path(tempfile.gettempdir()) / f"lockkeeper-test-ports-{os.getuid()}"


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """Return ports next to each other that nobody listens on."""
    while True:
        ports = _next(count)
        if all(map(is_free, ports)):
            return list(ports)


def is_free(port: int) -> bool:
    """Tell whether a port of 127.0.0.1 can be bound."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _next(count: int) -> range:
    """Return ports that nobody was given, as long as not all were."""
    with COUNTER.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        first = int(file.read() or FIRST)
        if first + count > END:
            first = FIRST
        file.truncate(0)
        file.write(str(first + count))
    return range(first, first + count)
