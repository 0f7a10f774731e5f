"""The accounts of the streams' demo: what each group had of the departures, and in which order."""

from array import array
from typing import Any

from stream_roles import PARTITIONS, Seen
from tally import Accounts


class GroupTally:
    """What one group had."""

    def __init__(self, name: str, total: int) -> None:
        self.name = name
        self.distinct = 0
        self._times = bytearray(total)
        self._partitions, self._offsets, self._at = array("b"), array("l"), array("d")

    def note(self, seen: Seen) -> None:
        """Take a report of a member in."""
        self._partitions.frombytes(seen.partitions)
        self._offsets.frombytes(seen.offsets)
        self._at.frombytes(seen.times)
        departures = array("l")
        departures.frombytes(seen.departures)
        for number in departures:
            self.distinct += not self._times[number]
            self._times[number] = min(255, self._times[number] + 1)

    @property
    def missing(self) -> int:
        """How many departures it never had."""
        return len(self._times) - self.distinct

    @property
    def repeated(self) -> int:
        """How many it had once more."""
        return len(self._offsets) - self.distinct

    @property
    def out_of_order(self) -> int:
        """How many came for the first time behind one that stands behind them in a partition."""
        places = sorted(range(len(self._at)), key=self._at.__getitem__)
        expected = [0] * PARTITIONS
        wrong = 0
        for place in places:
            partition, offset = self._partitions[place], self._offsets[place]
            wrong += offset > expected[partition]
            expected[partition] = max(expected[partition], offset + 1)
        return wrong


class StreamTally(Accounts):
    """The accounts of all groups; `published` and `done` are for showing how far it is."""

    def __init__(self, total: int, groups: list[str]) -> None:
        super().__init__(total)
        self.groups = {name: GroupTally(name, total) for name in groups}

    @property
    def done(self) -> int:
        """How many departures each group had at least."""
        return min(group.distinct for group in self.groups.values())

    def _note(self, kind: str, value: Any) -> None:
        if kind == "failed":
            raise RuntimeError(str(value))
        if kind == "published":
            self.published += value
        else:
            group, seen = value
            self.groups[group].note(seen)

    def verdict(self, orderly: str) -> tuple[str, bool]:
        """Return a line for each group, and whether all is well."""
        lines, is_well = [], True
        for group in self.groups.values():
            line = (
                f"{group.name:10} had {group.distinct} of {self.total} departures, "
                f"{group.missing} missing, {group.repeated} came once more"
            )
            if group.name == orderly:
                wrong = group.out_of_order
                kept = "kept" if not wrong else f"broken {wrong} times"
                line += f"; the order of each partition was {kept}"
                is_well &= not wrong
            is_well &= not group.missing
            lines.append(line)
        return "\n".join(lines), is_well
