"""Searches for jobs among very many: in pieces, each of which is let go of."""

import pytest

from lockkeeper.broker.scheduling.job import Job
from lockkeeper.broker.scheduling.schedule import Schedule
from lockkeeper.broker.scheduling.searching import (
    LOOKED_AT_ONCE,
    Entries,
    search,
    search_in_order,
)

COUNT = 3 * LOOKED_AT_ONCE
NUMBERS = 2 * LOOKED_AT_ONCE + 7
JOBS = [Job(str(each), each % 7, Schedule(1, 0, 0, ""), each) for each in range(COUNT)]
WANTED = [job for job in JOBS if 2 <= job.due <= 5 and job.number <= NUMBERS]


def entries() -> Entries:
    """Return all jobs as a queue of jobs tells them."""
    return [(job, None) for job in JOBS]


def test_a_search_goes_over_the_jobs_in_pieces_and_keeps_none() -> None:
    left, found, sizes = entries(), [], []
    for piece in search(left, 2, 5, NUMBERS):
        found += piece
        sizes.append(len(left))
    assert found == WANTED
    assert sizes == [2 * LOOKED_AT_ONCE, LOOKED_AT_ONCE, 0]


def test_what_is_due_at_one_time_is_found_in_the_order_it_was_sent_in() -> None:
    left = entries()
    steps = search_in_order(left, 2, 5, NUMBERS)
    sizes = []
    while left:
        next(steps)
        sizes.append(len(left))
    with pytest.raises(StopIteration) as end:
        next(steps)
    found = [*end.value.value]
    assert found == sorted(WANTED, key=lambda job: job.due)
    assert sizes == [2 * LOOKED_AT_ONCE, LOOKED_AT_ONCE, 0]
