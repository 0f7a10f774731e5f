"""The queue where jobs wait for their time; it has no consumers."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import BrokerError, InvalidDestinationError
from lockkeeper.broker.regions.backlog import PAGE_BYTES
from lockkeeper.broker.regions.body_cache import ENDED
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.scheduling.job import JOBS, UNNUMBERED, Job, read_job
from lockkeeper.broker.scheduling.names import Names
from lockkeeper.broker.scheduling.removal import Removal
from lockkeeper.broker.timers import Timer
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt, Reference

if TYPE_CHECKING:
    from lockkeeper.broker.subscriptions.consumer import Consumer

FULL_RETRY_MS: Final = 1000
# To carry out a job takes as long as sending so many bytes.
JOB_BYTES: Final = 256 << 10

Fire = Callable[[Job, Reference], str | None]
"""Carries out a job; returns what is in the way of that now, None when it is done."""


class Obstacle(NamedTuple):
    """Obstacle to a job whose time has come: a lack of room, or a defect of the broker."""

    text: str
    is_defect: bool = False


class JobQueue(Queue):
    """Jobs, each with a timer that fires it; several may have one id.

    A delay is as long as it is to be whatever the clock is set to meanwhile; a cron expression
    goes by the clock, and so does every job that was read from the journal. `latest` is the number
    of the job that began to wait last, 0 that of all that were read from the journal.

    While a delivery is being written, the times of its job that follow are `coming`: they are told
    of and removed like those that wait, and what was removed does not begin to.
    """

    __slots__ = (
        "_coming",
        "_fire",
        "_jobs",
        "_named",
        "_obstacles",
        "_shown",
        "_unwanted",
        "latest",
    )

    def __init__(self, context: Context, fire: Fire) -> None:
        super().__init__(context, JOBS)
        self._fire = fire
        self._jobs: dict[Reference, tuple[Job, Timer]] = {}
        self._coming: dict[Reference, Job] = {}
        self._unwanted: set[Reference] = set()
        self._obstacles: dict[Reference, Obstacle] = {}
        self._named = Names()
        # By the JMSMessageID, where that is another one: of what came again, and of copies.
        self._shown = Names()
        self.latest = 0

    def admit(self, reference: Reference) -> None:
        """Let a job wait for its time."""
        self.statistics.enqueued += 1
        self.body_cache.charge(reference)
        self._wait(reference, reference.loaded, is_fresh=True)

    def _admit_together(self, references: Sequence[Reference]) -> None:
        """Let each job wait for its own time."""
        for reference in references:
            self.admit(reference)

    def restore(self, references: Iterable[Reference]) -> None:
        """Let the jobs wait again that the store held; each is read once, to learn its time.

        The bodies stay in the store until it has come: they may be more than the memory holds.
        """
        page: list[Reference] = []
        size = 0
        for reference in references:
            if reference.message is not None:
                self._wait(reference, reference.message)
                continue
            page.append(reference)
            size += reference.size
            if size > PAGE_BYTES:
                self._read(page)
                page, size = [], 0
        self._read(page)

    def _read(self, references: Sequence[Reference]) -> None:
        """Let jobs wait whose bodies are only in the store."""
        copies = [Reference(None, each.size, each.location, each.state) for each in references]
        self.context.store.load(copies, self.context.next_sequence(len(copies)))
        for reference, copy in zip(references, copies, strict=True):
            self._wait(reference, copy.loaded)

    def requeue(self, references: Iterable[Reference]) -> None:
        """Let jobs wait on that could not be carried out."""
        for reference in references:
            self._wait(reference, self.body_of(reference))

    def put_back(self, taken: Iterable[Reference]) -> None:
        """See `Backlog.put_back`: each waits for its own time."""
        for reference in taken:
            if reference not in self._jobs and reference.held != ENDED:
                self._wait(reference, self.body_of(reference))

    def poison(self, reference: Reference, cause: str) -> None:
        """End a job that cannot be carried out; it never comes again.

        One whose transaction was undone waits again, or has ended for having failed too often.
        """
        if reference in self._jobs:
            self._stop(reference)
        if reference.held != ENDED:
            self._bury(reference, cause, expired=False)

    def attach(self, consumer: "Consumer") -> None:
        """Refuse: jobs are browsed and removed through the management topic."""
        raise InvalidDestinationError(f"{JOBS} cannot be consumed")

    def waiting(self) -> Iterable[Reference]:
        """Return the jobs, the next one first."""
        return [reference for _, reference in self.jobs()]

    def first(self) -> Reference | None:
        """See `Backlog.first`; there may be very many, which take long to sort."""
        first, due = None, 0
        for reference, (job, _) in self._jobs.items():
            if first is None or job.due < due:
                first, due = reference, job.due
        return first

    def depth(self) -> int:
        """Return how many jobs wait."""
        return len(self._jobs)

    def known(self) -> int:
        """Return how many jobs wait, or are coming."""
        return len(self._jobs) + len(self._coming)

    def jobs(self) -> list[tuple[Job, Reference]]:
        """Return every job with its message, the next one first."""
        found = [(job, reference) for reference, (job, _) in self._jobs.items()]
        return sorted(found, key=lambda entry: entry[0].due)

    def entries(self) -> list[tuple[Job, object]]:
        """Return every job as it is now, in no order, also those that are coming."""
        return [*self._jobs.values(), *((job, None) for job in self._coming.values())]

    def expect(self, coming: Iterable[tuple[Reference, Job]]) -> None:
        """Know of jobs that begin to wait as soon as they are written."""
        for reference, job in coming:
            if reference not in self._jobs:
                self._coming[reference] = job
                self._named.add(job.identifier, reference)

    def count(self, identifier: str) -> int:
        """Return how many jobs have this id."""
        return self._named.count(identifier)

    def named(self, identifier: str) -> list[Reference]:
        """Return the jobs that have this id."""
        return self._named.of(identifier)

    def shown_as(self, message_id: str) -> list[Reference]:
        """Return the jobs whose JMSMessageID this is, and not their id."""
        return self._shown.of(message_id)

    def holds(self, reference: Reference, latest: int) -> bool:
        """Tell whether a job still waits, or is coming, whose number is *latest* at most."""
        job = self._job_of(reference)
        return job is not None and job.number <= latest

    def due_of(self, reference: Reference) -> int | None:
        """Return when a job is due that waits, or is coming (ms since the epoch).

        That is by the clock as it is now: a delay does not go by it.
        """
        entry, context = self._jobs.get(reference), self.context
        if entry is None or reference in self._obstacles or entry[1].is_of(context.calendar):
            job = self._job_of(reference)
            return None if job is None else job.due
        return context.now + entry[1].due - context.steady

    def obstacle_to(self, reference: Reference) -> Obstacle | None:
        """Return what was in the way when a job was last to be carried out, None if nothing was."""
        return self._obstacles.get(reference)

    def _job_of(self, reference: Reference) -> Job | None:
        entry = self._jobs.get(reference)
        return self._coming.get(reference) if entry is None else entry[0]

    def cancel(self, reference: Reference) -> None:
        """End a job that waits, or as soon as it would begin to."""
        if self._forget_coming(reference):
            self._unwanted.add(reference)
            return
        self._stop(reference)
        self._discard(reference)

    def settle_removal(self, receipt: Receipt) -> None:
        """Settle when the end of everything that was cancelled so far is durable."""
        context, unwanted = self.context, self._unwanted
        context.settle_behind(Removal(context, unwanted, receipt) if unwanted else receipt)

    def close(self) -> None:
        """Stop every job: the queue is gone."""
        super().close()
        for _, timer in self._jobs.values():
            timer.cancel()
        self._jobs.clear()
        self._coming.clear()
        self._unwanted.clear()
        self._obstacles.clear()
        self._named.clear()
        self._shown.clear()

    def _wait(self, reference: Reference, message: Message, is_fresh: bool = False) -> None:
        context = self.context
        self._forget_coming(reference)
        if reference in self._unwanted:
            self._discard(reference)
            self._unwanted.remove(reference)
            return
        try:
            job = read_job(message)
        except BrokerError as refusal:
            poison = partial(self.poison, reference, str(refusal))
            context.timers.call_at(context.steady, poison)
            return
        except Exception as error:
            context.timers.call_at(context.steady, partial(self.quarantine, reference, error))
            return
        job = job._replace(number=self._number(job) if is_fresh else 0)
        action = partial(self._due, reference)
        if is_fresh and not job.schedule.cron:
            timer = context.timers.call_at(context.steady + job.due - context.now, action)
        else:
            timer = context.calendar.call_at(job.due, action)
        self._keep(reference, job, timer)

    def _number(self, job: Job) -> int:
        """Return the number of a job that begins to wait, or comes again."""
        if job.number != UNNUMBERED:
            return job.number
        self.latest += 1
        return self.latest

    def _keep(self, reference: Reference, job: Job, timer: Timer) -> None:
        self._jobs[reference] = (job, timer)
        self._named.add(job.identifier, reference)
        if job.shown:
            self._shown.add(job.shown, reference)

    def _forget_coming(self, reference: Reference) -> bool:
        """Expect a job no longer; tell whether it was coming."""
        job = self._coming.get(reference)
        if job is None:
            return False
        self._named.remove(job.identifier, reference)
        del self._coming[reference]
        return True

    def _take_job(self, reference: Reference) -> tuple[Job, Timer]:
        """Let a job wait no more."""
        job, timer = self._jobs[reference]
        self._named.remove(job.identifier, reference)
        if job.shown:
            self._shown.remove(job.shown, reference)
        self._obstacles.pop(reference, None)
        del self._jobs[reference]
        return job, timer

    def _stop(self, reference: Reference) -> None:
        """Let a job wait no more, nor be due."""
        _, timer = self._take_job(reference)
        timer.cancel()

    def _due(self, reference: Reference) -> None:
        if reference not in self._jobs:
            return
        self.context.unsent += JOB_BYTES
        self.body_of(reference)
        job, _ = self._take_job(reference)
        obstacle: Obstacle | None = None
        try:
            lack = self._fire(job, reference)
            if lack is not None:
                obstacle = Obstacle(lack)
        except Exception as error:
            self.context.containment.note_error("timer", job.identifier, error)
            # With its transaction handed to the store it has ended; else it is to come again.
            if reference.holders > 0:
                obstacle = Obstacle(f"{type(error).__name__}: {error}", is_defect=True)
        if obstacle is not None:
            again = self.context.steady + FULL_RETRY_MS
            timer = self.context.timers.call_at(again, partial(self._due, reference))
            self._keep(reference, job, timer)
            self._obstacles[reference] = obstacle
