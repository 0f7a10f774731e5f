"""Ends what waits for consumers when its time is over, even if nobody comes to fetch it."""

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from lockkeeper.store.base import UNKNOWN, Reference
from lockkeeper.store.packed import PackedRun

if TYPE_CHECKING:
    from lockkeeper.broker.regions.backlog import Backlog
    from lockkeeper.broker.timers import Timer

NEVER = 1 << 63
LEARNT_AT_ONCE = 64


class Expiry:
    """Looks through one backlog when the first of its messages has expired, once a period.

    `earliest` is when (ms since the epoch), as far as is known; whoever admits a message that
    expires has to call `expect`.
    """

    __slots__ = ("_backlog", "_timer", "earliest")

    def __init__(self, backlog: "Backlog") -> None:
        self._backlog = backlog
        self._timer: Timer | None = None
        self._forget()

    def expect(self, expiration: int) -> None:
        """Look as soon as a message with this expiration (ms since the epoch) is over."""
        if 0 < expiration < self.earliest:
            self._watch(expiration)

    def _watch(self, expiration: int) -> None:
        self.earliest = expiration
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
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget(self) -> None:
        self.earliest = NEVER if self._backlog.policy.expiry.expire_messages_period else 0

    def _look_at(self, due: int) -> None:
        self.stop()
        self._timer = self._backlog.context.calendar.call_at(due, self._look)

    def _look(self) -> None:
        """End one page of what has expired; the rest in the next tick."""
        self._timer = None
        backlog, now = self._backlog, self._backlog.context.now
        page = backlog.policy.expiry.max_expire_page_size
        self._learn(page)
        earliest, expired = NEVER, []
        if not isinstance(backlog.ready, deque):
            found = backlog.ready.reveal(now, page, self._learn_packed)
            earliest = NEVER if found is None else found
        for reference in backlog.loose():
            expiration = _expiration_of(reference)
            if expiration == UNKNOWN:
                earliest = min(earliest, now)
                break
            if 0 < expiration < now:
                expired.append(reference)
                if len(expired) > page:
                    break
            elif 0 < expiration < earliest:
                earliest = expiration
        over = expired[:page]
        self._forget()
        if len(expired) > page:
            self._look_at(now)
        elif earliest != NEVER:
            self._watch(earliest)
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
            raise problem

    def _learn(self, page: int) -> None:
        """Read the next bodies of which it is not known when they expire."""
        unknown = (each for each in self._backlog.loose() if _expiration_of(each) == UNKNOWN)
        self._backlog.residency.load(list(islice(unknown, page)))

    def _learn_packed(self, run: PackedRun) -> None:
        """Read when the messages of a run expire; their bodies do not stay in memory."""
        context = self._backlog.context
        references = run.shown()
        expirations = []
        for start in range(0, len(references), LEARNT_AT_ONCE):
            copies = []
            for reference in references[start : start + LEARNT_AT_ONCE]:
                copy = Reference(None, reference.size, reference.location)
                copy.state = reference.state
                copies.append(copy)
            context.store.load(copies, context.next_sequence(len(copies)))
            expirations += [copy.loaded.expiration for copy in copies]
        run.learn(expirations)


def _expiration_of(reference: Reference) -> int:
    message = reference.message
    return reference.expiration if message is None else message.expiration
