"""What must hold for streams and groups, whatever goes wrong.

Every message that a producer was answered for comes to every group at least once. An offset is
given once. Where a group consumes in order, it passes nothing, and a partition has one owner.
Offsets go back by no more than the interval at which they are written. A transaction has one
outcome.
"""

from collections import Counter
from typing import Any

from simulation.hub import SECOND, Hub, Process

from lockkeeper.broker.core import Broker

Place = tuple[str, str, int]
"""A group, a stream and the number of a partition."""
SLACK = SECOND
"""So much of the time in which offsets are written may be the disk's, beside the interval."""
SLOW_DISK = 4 * SECOND


class StreamBooks:
    """What clients and brokers said, and what was wrong with it."""

    def __init__(self, hub: Hub, interval: int) -> None:
        """*interval* is that of the offsets, in ns."""
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        # Messages that must come, by name; those of transactions that must not.
        self.confirmed: dict[str, int] = {}
        self.forbidden: set[str] = set()
        self.outcomes: dict[str, bool] = {}
        self.consumed: dict[str, set[str]] = {}
        self.owners: dict[Place, tuple[str, int]] = {}
        self.is_slow = self.is_stepped = False
        self._hub = hub
        self._interval = interval
        self._contents: dict[tuple[str, int, int], str] = {}
        self._offsets_of: dict[str, set[tuple[int, int]]] = {}
        self._highest: dict[Place, int] = {}
        self._tenures: dict[Place, tuple[str, int]] = {}
        self._history: dict[Place, list[tuple[int, int]]] = {}
        self._process: Process | None = None
        self._alive_at = 0

    def problem(self, text: str) -> None:
        """Note something that must not be."""
        self.problems.append(f"[{self._hub.now / SECOND:.3f}] {text}")

    # Messages

    def confirm(self, name: str) -> None:
        """Note that a message must come from now on."""
        self.confirmed.setdefault(name, self._hub.now)
        self.counts["confirmed"] += 1

    def decide(self, name: str, is_commit: bool) -> None:
        """Note the outcome of a message's transaction."""
        self.outcomes[name] = is_commit
        if not is_commit:
            self.forbidden.add(name)

    def stored(self, stream: str, partition: int, offset: int, name: str) -> None:
        """Note what is said to be at an offset; nobody may ever say anything else."""
        known = self._contents.setdefault((stream, partition, offset), name)
        if known != name:
            self.problem(f"{stream} {partition} has {known} and {name} at offset {offset}")
        if name in self.forbidden:
            self.problem(f"{name} was rolled back, and is in {stream} {partition}")
        if name in self.outcomes and not stream.startswith("%"):
            places = self._offsets_of.setdefault(name, set())
            places.add((partition, offset))
            if len(places) > 1:
                self.problem(f"the transaction of {name} was committed more than once")

    def consume(self, group: str, name: str, due: int) -> None:
        """Note that a group has consumed a message, which has no business there before *due*."""
        self.consumed.setdefault(group, set()).add(name)
        self.counts["consumed"] += 1
        if self._hub.now < due and not self.is_stepped:
            self.problem(f"{name} came {(due - self._hub.now) / SECOND:.3f} s early")

    def missing(self, group: str) -> list[str]:
        """Return what a group has not consumed yet."""
        seen = self.consumed.get(group, set())
        return [name for name in self.confirmed if name not in seen]

    # Order and locks

    def consume_in_order(self, place: Place, member: str, offset: int) -> None:
        """See that the owner of a partition passes nothing, and goes on where it was."""
        owner, until = self.owners.get(place, ("", 0))
        if owner != member or until <= self._hub.now:
            self.problem(f"{member} consumes {place} without the lock")
        highest = self._highest.get(place, -1)
        before, last = self._tenures.get(place, ("", -1))
        if offset > highest + 1:
            self.problem(f"{member} passes {place} {highest + 1} on the way to {offset}")
        if before == member and offset not in (last + 1, last):
            self.problem(f"{member} consumes {place} {offset} after {last}")
        self._highest[place] = max(highest, offset)
        self._tenures[place] = (member, offset)

    def own(self, place: Place, member: str, until: int) -> None:
        """Note that a member was told that it holds a partition up to a time."""
        owner, lasts = self.owners.get(place, (member, 0))
        if owner != member and lasts > self._hub.now:
            self.problem(f"{member} owns {place}, and so does {owner}")
        if owner != member:
            self._tenures.pop(place, None)
            self.counts["owners"] += 1
        self.owners[place] = (member, until)

    def disown(self, place: Place, member: str) -> None:
        """Note that a member gives a partition back."""
        if self.owners.get(place, ("", 0))[0] == member:
            del self.owners[place]

    def begin_tenure(self, place: Place) -> None:
        """Note that the owner of a partition goes on at the offset that the broker has."""
        self._tenures.pop(place, None)

    # Offsets

    def alive(self, process: Process) -> None:
        """Note that a process has carried something out."""
        if process is self._process:
            self._alive_at = self._hub.now

    def commit(self, place: Place, offset: int, process: Process) -> None:
        """Note that a master was told how far a group is."""
        if process is self._process:
            self._history.setdefault(place, []).append((self._hub.now, offset))

    def see_process(self, broker: Broker, process: Process) -> None:
        """Compare the offsets of a new master with what the one before was told."""
        if process is self._process:
            return
        before, self._process = self._process, process
        # Nobody can write while it sleeps, whatever it was asked when it woke up.
        forgives = before is not None and before.stopped_until > self._alive_at - 2 * self._interval
        for place, history in self._history.items():
            found = _offset(broker, place)
            self._compare(place, history, found, forgives)
            history[:] = [(0, found)] if found is not None else []
        self._alive_at = self._hub.now
        self.counts["masters"] += 1

    def _compare(
        self, place: Place, history: list[tuple[int, int]], found: int | None, forgives: bool
    ) -> None:
        durable = self._alive_at - self._interval - (SLOW_DISK if self.is_slow else 0)
        old = [offset for at, offset in history if at <= durable]
        allowed = {*old[-1:], *(offset for at, offset in history if at > durable)}
        if found is not None and found not in {offset for _, offset in history}:
            self.problem(f"{place} is at {found}, where nobody was")
        elif not forgives and (found not in allowed if found is not None else bool(old)):
            late = [at for at, offset in history if offset == found][-1:] or [0]
            seconds = (self._alive_at - late[0]) / SECOND
            self.problem(f"{place} goes back to {found}, of {seconds:.1f} s ago: {sorted(allowed)}")

    # The end

    def check_counts(self, counts: dict[str, int]) -> None:
        """See that a broker has contained nothing."""
        if found := {kind: count for kind, count in counts.items() if count}:
            self.problem(f"a broker contained errors: {found}")


def _offset(broker: Broker, place: Place) -> int | None:
    group: Any = broker.streams.groups.find(place[0])
    return None if group is None else group.offsets.get(place[1:])
