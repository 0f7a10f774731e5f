"""File descriptors: clients must leave enough of them for the journal."""

import resource
from typing import Final

from lockkeeper.store.kahadb.segment_files import OPEN_MAX

KEPT: Final = 256 + OPEN_MAX
"""For the journal, the temporary storage, the admin endpoint, libraries; indexes of streams."""


def allow_many_descriptors() -> None:
    """Take as many as the system permits; mostly it begins with 1024, for the sake of select(2)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connections_possible() -> int:
    """Return how many clients leave enough for everything else."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, soft - KEPT) if soft != resource.RLIM_INFINITY else 1 << 30
