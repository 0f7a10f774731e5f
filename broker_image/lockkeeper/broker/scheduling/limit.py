"""Limit of how many jobs may wait, whatever they are sent in."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from lockkeeper.broker.errors import ResourceAllocationError

if TYPE_CHECKING:
    from lockkeeper.broker.scheduling.job_queue import JobQueue
    from lockkeeper.broker.transactions import Transaction


class JobLimit:
    """Counts a job from when it is sent: in its transaction at first, which may take long.

    Of each the memory has a part, whatever the store holds.
    """

    def __init__(self, queue: "JobQueue", most: int, blocked: Callable[[], int]) -> None:
        """*blocked* tells how many are sent that wait for room."""
        self._queue = queue
        self._most = most
        self._blocked = blocked
        self._undecided: dict[Transaction, int] = {}
        self._undecided_jobs = 0

    def check(self) -> None:
        """Raise ResourceAllocationError when as many jobs are there as may be."""
        if self._queue.known() + self._undecided_jobs + self._blocked() >= self._most:
            raise ResourceAllocationError(
                f"{self._most} scheduled messages wait already (scheduler.maxScheduledMessages)"
            )

    def count(self, transaction: "Transaction", more: int = 1) -> None:
        """Count jobs that wait from the commit on, until the transaction is over."""
        jobs = self._undecided.get(transaction)
        if jobs is None:
            jobs, transaction.ending = 0, partial(self._forget, transaction)
        self._undecided[transaction] = jobs + more
        self._undecided_jobs += more

    def _forget(self, transaction: "Transaction") -> None:
        """Count the jobs of a transaction no more, or as those that wait."""
        self._undecided_jobs -= self._undecided.pop(transaction)
