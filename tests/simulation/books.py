"""The ledger of the crash tests, for brokers that live on between two comparisons."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from simulation.clients import QUEUES as CALM_QUEUES
from simulation.crowd import DEAD_LETTERS, EXPIRING, LATER, with_scheduled
from simulation.crowd import FETCHED_AHEAD as CROWDED

FETCHED_AHEAD = (*CALM_QUEUES, *CROWDED)


class Unseen:
    """The part of the books for what nobody sees who browses: what is scheduled, what is over."""

    def __init__(self) -> None:
        super().__init__()
        # What is scheduled, as a master said after everything else, and who asks it.
        self.jobs: list[str] = []
        self.look_later: Callable[[], tuple[list[str], list[str]]]
        # What subscriptions to several topics held then.
        self.heard: dict[str, list[str]] = {}
        # What may have been sent, and may come to light when it is a dead letter.
        self.doubtful: list[str] = []
        self.is_over = False
        self.masters = 0
        self.ledger: Any

    def entries_of(self: Any, place: str) -> list[Any]:
        """Return what is, or may be, in a place."""
        live = [self.ledger.Entry(place, name) for name in self._live.get(place, ())]
        with self._lock:
            added = [entry for entry in self._added if entry.place == place]
        return list(dict.fromkeys(live + added))

    def with_unseen(self: Any, found: dict[str, list[str]]) -> dict[str, list[str]]:
        """Return what was found, with what is there as well."""
        self.jobs, came = self.look_later()
        found[LATER] = with_scheduled(self.jobs, came)
        if not self.is_over:
            found[EXPIRING] += self._buried_soon(found)
        found[DEAD_LETTERS] = self._once(found[DEAD_LETTERS])
        return {**found, **self.heard}

    def _once(self: Any, names: list[str]) -> list[str]:
        """Return dead letters without those that died again.

        A master that ends between the two records of a move leaves the message in both places;
        where it came from it dies once more. That is once for each master at most.
        """
        often = [name for name, count in Counter(names).items() if count > self.masters]
        if often:
            self.problem(f"{DEAD_LETTERS} holds messages more than once: {often[:3]}")
        return list(dict.fromkeys(names))

    def _buried_soon(self: Any, found: dict[str, list[str]]) -> list[str]:
        seen = {*found[EXPIRING], *found[DEAD_LETTERS]}
        there = list(self._live.get(EXPIRING, ()))
        for entry, unit in self._added.items():
            if entry.place == EXPIRING and unit.outcome is self.ledger.DONE:
                there.append(entry.message)
            elif entry.place == EXPIRING and unit.outcome is self.ledger.ASKED:
                self.doubtful.append(entry.message)
        return [name for name in there if name not in seen]

    def expect_doubtful(self: Any) -> None:
        """Let what may be there, unseen, become a dead letter."""
        for name in self.doubtful:
            dead = self.ledger.Entry(DEAD_LETTERS, name)
            if name not in self._live.get(DEAD_LETTERS, ()):
                self._gone.discard(dead)
                self.begin(self.ledger.Unit(adds=[dead]))


class Late:
    """The part of the books for what is said by who cannot know better yet, or comes late."""

    def __init__(self) -> None:
        super().__init__()
        # Whether what a client reads now was sent by a master that has a successor.
        self.comes_late: Callable[[], bool] = lambda: False
        # Whether what a client reads now may have been said before a broker was all awake.
        self.has_just_woken: Callable[[], bool] = lambda: False

    def is_right_to_refuse(self, text: str) -> bool:
        """Tell whether a refusal is right: work on a full disk, a client id upon waking.

        A broker that was stopped finds the end of one connection and the beginning of the next at
        the same time, and reads each as it comes to it; so does ActiveMQ, with a thread for each.
        A moment later it must know that the client id is free.
        """
        if "InvalidClientIDException" in text:
            return self.has_just_woken()
        return "no room on the disk" in text or "storeUsage" in text


def make_books(ledger: Any) -> Any:
    """Return a ledger; *ledger* is the module of the crash tests."""

    class Books(Late, Unseen, ledger.Ledger):  # type: ignore[misc]
        """Compares orders only where they are those of the journal.

        A queue whose consumers have left begins with what these gave back, in whatever order;
        after a restart it is in the order of the journal again.
        """

        def __init__(self) -> None:
            super().__init__()
            self.ledger = ledger
            self._is_ordered = self._was_ordered = True

        def new_master(self) -> None:
            """Note that nobody knows any more what was delivered."""
            self.masters += 1
            self._seen.clear()

        def _see(self, entry: Any, redeliveries: int) -> None:
            """Leave out what a successor cannot know of: it delivers that as if it were new."""
            if not self.comes_late():
                super()._see(entry, redeliveries)

        def expect_order(self, expected: bool) -> None:
            """Say whether what is found next is in the order of the journal."""
            self._is_ordered = expected
            self._one_order = expected and self._was_ordered
            self._was_ordered = expected

        def settle(self, found: dict[str, list[str]]) -> None:
            """Compare, with what is scheduled as if it had come already."""
            super().settle(self.with_unseen(found))

        def _check_place(self, place: str, names: list[str]) -> None:
            # What is scheduled comes when it is due.
            if self._is_ordered and place not in (LATER, EXPIRING):
                super()._check_place(place, names)
            elif len(set(names)) != len(names):
                twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
                self.problems.append(f"{place} holds messages twice: {twice[:3]}")

        def _check_order(self, consumer: str, entry: Any) -> None:
            """Let a program find what another one had fetched ahead and gave back unseen."""
            if entry.place not in FETCHED_AHEAD:
                super()._check_order(consumer, entry)

        def note_refusal(self, name: str, error: Exception) -> None:
            """Count what a broker refused."""
            self.counts[f"refused: {type(error).__name__}"] += 1

        def problem(self, text: str) -> None:
            """Note what is wrong."""
            if not self.is_right_to_refuse(text):
                super().problem(text)

    return Books()
