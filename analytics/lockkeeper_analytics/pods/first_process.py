"""The first process of a container: passes signals on, and buries orphans.

Java does neither: Python workers of Spark that outlive their parent would stay as zombies.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
KILLED = 128
"""Added to a signal's number in exit codes, as shells do."""


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run *command* to its end, and return its exit code; raises OSError if it cannot start."""
    waiting: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if child is None:
            waiting.append(number)
        else:
            os.kill(child.pid, number)

    before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    try:
        child = subprocess.Popen(list(command), env=dict(environment))
        for number in waiting:
            os.kill(child.pid, number)
        return _end_of(child.pid)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_of(pid: int) -> int:
    """Wait for *pid*, and for every orphan that ends meanwhile."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else KILLED - code
