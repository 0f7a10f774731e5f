"""What must be in a broker after a crash, by what it had answered before.

Work is noted in units: a message sent, a message acknowledged, a transaction of both. A unit's
outcome is known once the broker has answered; when it dies before, either outcome is right, but
a transaction must be there wholly or not at all, and a message that is moved in one place at
least. After each round `settle` compares what the broker has with what it must have, and what is
found becomes what the next round begins with.
"""

import threading
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from lockkeeper.message.ids import XATransactionId

DEAD_LETTERS = "ActiveMQ.DLQ"


class Entry(NamedTuple):
    """A message (JMSMessageID) in a place: a queue, or a durable subscription."""

    place: str
    message: str


class Outcome(Enum):
    """What the broker was asked to do with a unit, and whether it has said that it did."""

    OPEN = "nothing asked yet, so nothing may have happened"
    ASKED = "asked and not answered: both are right"
    DONE = "answered: it has happened"
    DROPPED = "rolled back or refused: it has not happened"


OPEN, ASKED, DONE, DROPPED = Outcome


@dataclass(eq=False)
class Unit:
    """Entries that come and go together; only a transaction does so atomically."""

    outcome: Outcome = ASKED
    adds: list[Entry] = field(default_factory=list)
    removes: list[Entry] = field(default_factory=list)
    is_atomic: bool = False
    is_move: bool = False


@dataclass(eq=False)
class XAUnit(Unit):
    """A branch of an XA transaction: prepared first, then committed or rolled back."""

    identifier: XATransactionId | None = None
    prepare: Outcome = OPEN
    commits: bool = True


class Ledger:
    """The books of one broker; any thread may write to them. `problems` is what went wrong.

    With *one_order* false, messages of different producers may change places between rounds.
    """

    def __init__(self, one_order: bool = True) -> None:
        self._one_order = one_order
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self.open_entries = 0
        self._lock = threading.Lock()
        self._live: dict[str, list[str]] = {}
        self._gone: set[Entry] = set()
        self._added: dict[Entry, Unit] = {}
        self._removed: dict[Entry, list[Unit]] = {}
        self._units: list[Unit] = []
        # Its acknowledgement was rolled back after it had left the queue: it is first there now.
        self._returned: set[Entry] = set()
        self._seen: set[Entry] = set()
        self._last_seen: dict[tuple[str, str], int] = {}

    # During a round

    def begin(self, unit: Unit) -> Unit:
        """Note a unit before the broker learns of it."""
        with self._lock:
            self._units.append(unit)
            self._index(unit, unit.adds, unit.removes)
        return unit

    def extend(self, unit: Unit, adds: Iterable[Entry] = (), removes: Iterable[Entry] = ()) -> None:
        """Note a further part of a unit before the broker learns of it."""
        with self._lock:
            adds, removes = list(adds), list(removes)
            unit.adds += adds
            unit.removes += removes
            self._index(unit, adds, removes)

    def _index(self, unit: Unit, adds: list[Entry], removes: list[Entry]) -> None:
        for entry in adds:
            self._added[entry] = unit
        for entry in removes:
            self._removed.setdefault(entry, []).append(unit)

    def done(self, unit: Unit) -> None:
        """Note that the broker has answered."""
        with self._lock:
            unit.outcome = DONE
            self.open_entries += len(unit.adds) - len(unit.removes)
            self.counts["added"] += len(unit.adds)
            self.counts["removed"] += len(unit.removes)

    def delivered(self, consumer: str, entry: Entry, redeliveries: int) -> None:
        """Note that a consumer got a message, and check that it may."""
        with self._lock:
            self.counts["delivered"] += 1
            if entry in self._gone or any(u.outcome is DONE for u in self._removed.get(entry, ())):
                self.problems.append(f"{entry} came again after its end was answered")
            unit = self._added.get(entry)
            if unit is not None and unit.outcome in (OPEN, DROPPED):
                self.problems.append(f"{entry} was delivered, but was {unit.outcome.value}")
            self._see(entry, redeliveries)
            if not redeliveries and entry not in self._returned:
                self._check_order(consumer, entry)

    def _see(self, entry: Entry, redeliveries: int) -> None:
        """Check that what was delivered before says so."""
        if entry in self._seen and not redeliveries:
            self.problems.append(f"{entry} was delivered twice, as if for the first time")
        self._seen.add(entry)

    def _check_order(self, consumer: str, entry: Entry) -> None:
        producer, sequence = _position(entry.message)
        last = self._last_seen.get((consumer, producer), 0)
        if sequence <= last:
            self.problems.append(f"{entry} came to {consumer} after number {last}")
        self._last_seen[consumer, producer] = sequence

    def problem(self, text: str) -> None:
        """Note something else that is wrong."""
        with self._lock:
            self.problems.append(text)

    # Between rounds

    def xa_units(self) -> list[XAUnit]:
        """Return the XA transactions of this round."""
        return [unit for unit in self._units if isinstance(unit, XAUnit)]

    def doubt_removals(self, places: Collection[str]) -> None:
        """Take no answer for certain that says that something in *places* was consumed."""
        for unit in self._units:
            if any(entry.place in places for entry in unit.removes) and unit.outcome is DONE:
                unit.outcome = ASKED

    def settle(self, found: dict[str, list[str]]) -> None:
        """Compare what the broker has, by place and in its order, with what it must have."""
        before = {Entry(place, name) for place, names in self._live.items() for name in names}
        present = {Entry(place, name) for place, names in found.items() for name in names}
        self._note_returned()
        for place, names in found.items():
            self._check_place(place, names)
        for entry in present - before - self._added.keys():
            how = "came back" if entry in self._gone else "was never sent"
            self.problems.append(f"{entry} is there, but {how}")
        for entry in before | self._added.keys():
            self._check_entry(entry, entry in before, entry in present)
        for unit in self._units:
            if unit.outcome is ASKED and (unit.is_atomic or unit.is_move):
                self.counts["transactions in doubt"] += 1
                self._check_atomic(unit, before, present)
        self._gone |= (before | self._added.keys()) - present
        self._live = found
        self.open_entries = len(present)
        self._added, self._removed = {}, {}
        self._units, self._seen, self._last_seen = [], set(), {}

    def _note_returned(self) -> None:
        for unit in self.xa_units():
            if unit.outcome is DROPPED:
                self._returned.update(unit.removes)

    def _check_place(self, place: str, names: list[str]) -> None:
        """Check that nothing is there twice, and that the order is that of the senders."""
        if len(set(names)) != len(names):
            twice = [name for name, count in Counter(names).items() if count > 1]
            self.problems.append(f"{place} holds messages twice: {twice[:3]}")
        names = [name for name in names if Entry(place, name) not in self._returned]
        there = set(names)
        kept = [name for name in self._live.get(place, ()) if name in there]
        if self._one_order and names[: len(kept)] != kept:
            self.problems.append(f"{place}: what was there is not first, or in another order")
        if place == DEAD_LETTERS:
            return
        last: dict[str, int] = {}
        for producer, sequence in map(_position, names):
            if sequence <= last.get(producer, 0):
                self.problems.append(f"{place}: {producer}:{sequence} after {last[producer]}")
            last[producer] = sequence

    def _check_entry(self, entry: Entry, was_there: bool, is_there: bool) -> None:
        added = DONE if was_there else self._added[entry].outcome
        removals = [unit.outcome for unit in self._removed.get(entry, ())]
        if DONE in removals:
            if is_there:
                self.problems.append(f"{entry} is there, but its end was answered")
        elif added in (OPEN, DROPPED):
            if is_there:
                self.problems.append(f"{entry} is there, but was {added.value}")
        elif added is DONE and ASKED not in removals:
            if not is_there:
                self.problems.append(f"{entry} is lost")
        else:
            self.counts["in doubt"] += 1

    def _check_atomic(self, unit: Unit, before: set[Entry], present: set[Entry]) -> None:
        """Check that all parts tell the same of the outcome; a moved message may be in both."""
        happened: dict[Entry, bool] = {}
        for entry in unit.adds:
            if entry in present:
                happened[entry] = True
            elif not any(self._may_have_gone(self._removed.get(entry, ()))):
                happened[entry] = False
        for entry in unit.removes:
            others = [other for other in self._removed[entry] if other is not unit]
            sure = entry in before or self._added[entry].outcome is DONE
            if entry in present:
                happened[entry] = False
            elif sure and not any(self._may_have_gone(others)):
                happened[entry] = True
        was_left = not any(happened.get(entry, False) for entry in unit.removes)
        if len(set(happened.values())) > 1 and not (unit.is_move and was_left):
            self.problems.append(f"a transaction happened in part: {happened}")

    def _may_have_gone(self, removals: Iterable[Unit]) -> Iterable[bool]:
        return (unit.outcome in (ASKED, DONE) for unit in removals)


def _position(message: str) -> tuple[str, int]:
    """Return the producer of a message, and its number there."""
    producer, _, sequence = message.rpartition(":")
    return producer, int(sequence)
