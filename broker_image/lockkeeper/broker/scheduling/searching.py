"""Search for jobs by their time, a part of them in each step.

There may be very many: a search lets go of what it has looked at as it goes on, since that takes
long, too.
"""

from collections.abc import Generator, Iterator
from heapq import merge
from operator import attrgetter
from typing import Final, TypeAlias

from lockkeeper.broker.scheduling.job import Job
from lockkeeper.broker.scheduling.job_queue import JOB_BYTES

LOOKED_AT_ONCE: Final = 1024
# To look at a job takes as long as sending so many bytes, to note that it is there so many, to find
# out which is the next one so many.
LOOK_BYTES: Final = JOB_BYTES // LOOKED_AT_ONCE
NOTE_BYTES: Final = 16
NEXT_BYTES: Final = 4 * LOOK_BYTES

Entries: TypeAlias = list[tuple[Job, object]]
Search: TypeAlias = Generator[int, None, Iterator[Job]]
"""Yields what each step weighed, returns jobs."""


def search(entries: Entries, first: int, last: int, latest: int) -> Iterator[list[Job]]:
    """Yield those jobs up to number *latest* that are due from *first* to *last* (ms), in pieces.

    No entries are left then.
    """
    entries.reverse()
    while entries:
        piece = entries[: -LOOKED_AT_ONCE - 1 : -1]
        del entries[-LOOKED_AT_ONCE:]
        yield [job for job, _ in piece if first <= job.due <= last and job.number <= latest]


def search_in_order(entries: Entries, first: int, last: int, latest: int) -> Search:
    """Find what `search` does, the next job first."""
    due = attrgetter("due")
    runs: list[list[Job]] = []
    for found in search(entries, first, last, latest):
        runs.append(sorted(found, key=due))
        yield JOB_BYTES
    return merge(*map(_used_up, runs), key=due)


def _used_up(run: list[Job]) -> Iterator[Job]:
    run.reverse()
    while run:
        yield run.pop()
