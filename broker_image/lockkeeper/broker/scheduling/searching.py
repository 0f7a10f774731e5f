"""Search for jobs by their time, a part of them in each step."""

from collections.abc import Generator, Sequence
from heapq import merge
from operator import attrgetter
from typing import Final, TypeAlias

from lockkeeper.broker.scheduling.job import Job
from lockkeeper.broker.scheduling.job_queue import JOB_BYTES

LOOKED_AT_ONCE: Final = 1024
# To look at a job takes as long as sending so many bytes, to note that it is there so many.
LOOK_BYTES: Final = JOB_BYTES // LOOKED_AT_ONCE
NOTE_BYTES: Final = 16

Search: TypeAlias = Generator[int, None, list[str]]
"""Yields what each step weighed, returns ids."""


def search(entries: Sequence[tuple[Job, object]], first: int, last: int, latest: int) -> Search:
    """Find the ids of those jobs up to number *latest* that are due from *first* to *last* (ms).

    The next one is first.
    """
    yield len(entries) * NOTE_BYTES
    due = attrgetter("due")
    runs: list[list[Job]] = []
    for begin in range(0, len(entries), LOOKED_AT_ONCE):
        piece = entries[begin : begin + LOOKED_AT_ONCE]
        found = [job for job, _ in piece if first <= job.due <= last and job.number <= latest]
        runs.append(sorted(found, key=due))
        yield len(piece) * LOOK_BYTES
    identifiers: dict[str, None] = {}
    for job in merge(*runs, key=due):
        identifiers[job.identifier] = None
        yield LOOK_BYTES
    return [*identifiers]
