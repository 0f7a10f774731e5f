"""The queue where jobs wait for their time; it has no consumers."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import BrokerError, InvalidDestinationError
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.scheduling.job import JOBS, Job, read_job
from lockkeeper.broker.timers import Timer
from lockkeeper.store.base import Reference

if TYPE_CHECKING:
    from lockkeeper.broker.subscriptions.consumer import Consumer

_PAGE = 1000
FULL_RETRY_MS = 1000

Fire = Callable[[Job, Reference], bool]
"""Carries out a job; returns False when there is no room for that now."""


class JobQueue(Queue):
    """Jobs by their id, each with a timer that fires it."""

    __slots__ = ("_fire", "_jobs")

    def __init__(self, context: Context, fire: Fire) -> None:
        super().__init__(context, JOBS)
        self._fire = fire
        self._jobs: dict[str, tuple[Job, Reference, Timer]] = {}

    def admit(self, reference: Reference) -> None:
        """Let a job wait for its time."""
        self.statistics.enqueued += 1
        self.residency.charge(reference)
        self._wait(reference)

    def restore(self, references: Iterable[Reference]) -> None:
        """Let the jobs wait again that the store held; each is read once, to learn its time."""
        every = list(references)
        for start in range(0, len(every), _PAGE):
            page = every[start : start + _PAGE]
            self.residency.load([each for each in page if each.message is None])
            for reference in page:
                self._wait(reference)

    def requeue(self, references: Iterable[Reference]) -> None:
        """Let jobs wait on that could not be carried out."""
        for reference in references:
            self._wait(reference)

    def poison(self, reference: Reference, cause: str) -> None:
        """End a job that cannot be carried out; it never comes again."""
        self._bury(reference, cause, expired=False)

    def attach(self, consumer: "Consumer") -> None:
        """Refuse: jobs are browsed and removed through the management topic."""
        raise InvalidDestinationError(f"{JOBS} cannot be consumed")

    def waiting(self) -> Iterable[Reference]:
        """Return the jobs, the next one first."""
        return [reference for _, reference in self.jobs()]

    def depth(self) -> int:
        """Return how many jobs wait."""
        return len(self._jobs)

    def jobs(self) -> list[tuple[Job, Reference]]:
        """Return every job with its message, the next one first."""
        found = [(job, reference) for job, reference, _ in self._jobs.values()]
        return sorted(found, key=lambda entry: entry[0].due)

    def cancel(self, identifier: str) -> None:
        """End a job, if there is one of this id."""
        found = self._jobs.pop(identifier, None)
        if found is None:
            return
        _, reference, timer = found
        timer.cancel()
        self._discard(reference)

    def close(self) -> None:
        """Stop every job: the queue is gone."""
        super().close()
        for _, _, timer in self._jobs.values():
            timer.cancel()
        self._jobs.clear()

    def _wait(self, reference: Reference) -> None:
        timers, now = self.context.timers, self.context.now
        try:
            job = read_job(reference.loaded)
        except BrokerError as error:
            timers.call_at(now, partial(self.poison, reference, str(error)))
            return
        timer = timers.call_at(job.due, partial(self._due, job.identifier))
        self._jobs[job.identifier] = (job, reference, timer)

    def _due(self, identifier: str) -> None:
        job, reference, _ = self._jobs.pop(identifier)
        self.body_of(reference)
        if not self._fire(job, reference):
            again = self.context.now + FULL_RETRY_MS
            timer = self.context.timers.call_at(again, partial(self._due, identifier))
            self._jobs[identifier] = (job, reference, timer)
