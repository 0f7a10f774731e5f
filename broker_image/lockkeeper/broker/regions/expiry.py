"""Ends what waits for consumers when its time is over, even if nobody comes to fetch it."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from lockkeeper.broker.context import END_BYTES, Context
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.regions.body_cache import BodyCache
from lockkeeper.broker.regions.line import Line
from lockkeeper.broker.regions.priority_queue import PriorityQueue
from lockkeeper.broker.timers import Timer
from lockkeeper.store.base import UNKNOWN, Reference
from lockkeeper.store.packed import PackedRun

NEVER: Final = 1 << 63
LEARNT_AT_ONCE: Final = 64
LOOKED_AT_ONCE = 10_000
# A look at one takes as long as sending so many bytes.
GLANCE_BYTES: Final = 256


class Expiring(Protocol):
    """Messages that wait and may expire; see `Backlog`."""

    policy: DestinationPolicy
    ready: deque[Reference] | Line | PriorityQueue

    @property
    def context(self) -> Context:
        """The services of the core."""

    @property
    def body_cache(self) -> BodyCache:
        """Cache that bodies are read back to."""

    def loose(self) -> Iterable[Reference]:
        """Return what waits and is not packed, in order."""

    def withdraw(self, references: set[Reference]) -> None:
        """Take messages out of what waits."""

    def expire(self, reference: Reference) -> None:
        """End a message whose time is over."""

    def put_back(self, taken: Iterable[Reference]) -> None:
        """Let those wait again that have not ended."""


class Expiry:
    """Looks through one backlog when the first of its messages has expired, once a period.

    `earliest` is when (ms since the epoch), as far as is known; whoever admits a message that
    expires has to call `expect`.
    """

    __slots__ = ("_backlog", "_scan", "_timer", "earliest")

    def __init__(self, backlog: Expiring) -> None:
        self._backlog = backlog
        self._timer: Timer | None = None
        # What a look that takes several ticks has not seen yet.
        self._scan: Iterator[Reference] | None = None
        self._forget()

    def expect(self, expiration: int) -> None:
        """Look as soon as a message with this expiration (ms since the epoch) is over."""
        if 0 < expiration < self.earliest:
            self._watch(expiration)

    def _watch(self, expiration: int) -> None:
        self.earliest = expiration
        if self._scan is not None:
            return
        period = self._backlog.policy.expiry.expire_messages_period
        # At whole periods: messages that expire one after the other are found together.
        self._look_at((expiration // period + 1) * period)

    def watch_all(self, references: Iterable[Reference]) -> None:
        """Look as soon as one of several messages that begin to wait is over."""
        for reference in references:
            self.expect(_expiration_of(reference))

    def watch_unknown(self) -> None:
        """Look soon: there are messages of which only the disk knows when they expire."""
        if self._backlog.policy.expiry.expire_messages_period:
            self._watch(self._backlog.context.now)

    def restart(self) -> None:
        """Look at the times of another policy, and at everything that waits."""
        self.stop()
        self._forget()
        self.watch_unknown()

    def stop(self) -> None:
        """Never look again."""
        self._scan = None
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget(self) -> None:
        self.earliest = NEVER if self._backlog.policy.expiry.expire_messages_period else 0

    def _look_at(self, due: int) -> None:
        self._cancel()
        self._timer = self._backlog.context.calendar.call_at(due, self._end_expired)

    def _end_expired(self) -> None:
        """Look at one piece of what waits, and end what has expired; the rest in the next tick."""
        self._timer = None
        if self._scan is None:
            self._begin()
        over = self._present(self._seek())
        if self._scan is None:
            if self.earliest != NEVER:
                self._watch(self.earliest)
        else:
            self._look_at(self._backlog.context.now)
        self._end(over)

    def _begin(self) -> None:
        """Take down what waits now; whatever comes during the look is told by `expect`."""
        backlog, now = self._backlog, self._backlog.context.now
        self._forget()
        if not isinstance(backlog.ready, deque):
            page = backlog.policy.expiry.max_expire_page_size
            found = backlog.ready.reveal(now, page, self._learn_packed)
            self._note_expiration(NEVER if found is None else found)
        self._scan = iter(list(backlog.loose()))

    def _note_expiration(self, expiration: int) -> None:
        if 0 < expiration < self.earliest:
            self.earliest = expiration

    def _seek(self) -> list[Reference]:
        """Return, of the next piece, what has expired or may have; at most a page of it."""
        assert self._scan is not None
        now, page = self._backlog.context.now, self._backlog.policy.expiry.max_expire_page_size
        found: list[Reference] = []
        for looked, reference in enumerate(self._scan, 1):
            self._backlog.context.unsent += GLANCE_BYTES
            expiration = _expiration_of(reference)
            if expiration == UNKNOWN or 0 < expiration < now:
                found.append(reference)
            else:
                self._note_expiration(expiration)
            if looked == LOOKED_AT_ONCE or len(found) == page:
                return found
        self._scan = None
        return found

    def _present(self, found: list[Reference]) -> list[Reference]:
        """Return those of *found* that have expired and still wait.

        Those of which only the disk knew are read first. After a page full of these, the others
        have until the next look: their bodies are to leave the memory meanwhile.
        """
        if not found:
            return found
        backlog, now = self._backlog, self._backlog.context.now
        waiting = set(found).intersection(backlog.loose())
        present = [each for each in found if each in waiting]
        unknown = [each for each in present if _expiration_of(each) == UNKNOWN]
        backlog.body_cache.load(unknown)
        if self._scan is not None and len(unknown) == backlog.policy.expiry.max_expire_page_size:
            self._scan = None
            self._note_expiration(now)
        over = []
        for reference in present:
            expiration = _expiration_of(reference)
            if 0 < expiration < now:
                over.append(reference)
            else:
                self._note_expiration(expiration)
        return over

    def _end(self, over: list[Reference]) -> None:
        """End messages whose time is over."""
        backlog = self._backlog
        backlog.context.unsent += len(over) * END_BYTES
        if over:
            backlog.withdraw(set(over))
        failed, problem = [], None
        for reference in over:
            try:
                backlog.expire(reference)
            except Exception as error:
                failed.append(reference)
                problem = error
        if problem is not None:
            # They wait again; this look is taken again, too.
            backlog.put_back(failed)
            self._note_expiration(backlog.context.now)
            raise problem

    def _learn_packed(self, run: PackedRun) -> None:
        """Read when the messages of a run expire; their bodies do not stay in memory."""
        context = self._backlog.context
        references = run.shown()
        expirations = []
        for start in range(0, len(references), LEARNT_AT_ONCE):
            copies = []
            for reference in references[start : start + LEARNT_AT_ONCE]:
                place = (reference.size, reference.location, reference.state)
                copies.append(Reference(None, *place))
            context.store.load(copies, context.next_sequence(len(copies)))
            expirations += [copy.loaded.expiration for copy in copies]
        run.learn(expirations)


def _expiration_of(reference: Reference) -> int:
    message = reference.message
    return reference.expiration if message is None else message.expiration
