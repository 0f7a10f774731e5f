"""How often a broker syncs: strace counts it, in runs whose other figures are not used.

strace stops a process at its syncs only, which take long anyway, and hardly slows it down.
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

CALLS = "fsync,fdatasync,sync_file_range,msync,io_submit"
# "12345 1700000000.123456 fdatasync(7) = 0"; what is submitted may be something else than a sync.
LINE = re.compile(r"^\d+ +(?P<time>\d+\.\d+) (?P<call>\w+)\((?P<rest>.*)$")
SYNC = re.compile(r"IOCB_CMD_FD?SYNC")
RESUMED = "<... "


def missing() -> str | None:
    """Return why syncs cannot be counted on this machine, or None."""
    return None if shutil.which("strace") else "strace is not installed"


def tracer(log: Path) -> list[str]:
    """Return what to put before the command line of a broker, so that its syncs are in *log*."""
    options = ["-D", "-f", "--seccomp-bpf", "-qq", "-ttt", "-e", f"trace={CALLS}", "-o", str(log)]
    return ["strace", *options]


@dataclass(frozen=True)
class Span:
    """The time between two marks, in seconds since 1970."""

    start: float
    end: float


def count(log: str, span: Span) -> int:
    """Return how many syncs of a log began within a span."""
    found = 0
    for line in log.splitlines():
        call = LINE.match(line)
        if call is None or not span.start <= float(call["time"]) < span.end:
            continue
        found += len(SYNC.findall(call["rest"])) if call["call"] == "io_submit" else 1
    return found
