"""Many numbers in little room: ranges in order, written as `5-6,9`."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ranges:
    """A set of numbers from 0 on, as the first and last of each range, in order, with gaps between.

    What it takes and what its operators cost follows the ranges, not the numbers.
    """

    runs: tuple[tuple[int, int], ...] = ()

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        index = bisect_right(self.runs, number, key=lambda run: run[0])
        return index > 0 and number <= self.runs[index - 1][1]

    def __or__(self, other: "Ranges") -> "Ranges":
        joined: list[tuple[int, int]] = []
        for first, last in sorted((*self.runs, *other.runs)):
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = joined[-1][0], max(joined[-1][1], last)
            else:
                joined.append((first, last))
        return Ranges(tuple(joined))

    def __sub__(self, other: "Ranges") -> "Ranges":
        return Ranges(tuple(self._left_by(other)))

    def _left_by(self, other: "Ranges") -> Iterator[tuple[int, int]]:
        """Yield the ranges that are left without *other*."""
        holes, index = other.runs, 0
        for first, last in self.runs:
            while index < len(holes) and holes[index][0] <= last:
                begin, end = holes[index]
                if first < begin:
                    yield first, begin - 1
                first = max(first, end + 1)
                if end > last:
                    break
                index += 1
            if first <= last:
                yield first, last

    def __str__(self) -> str:
        """Return the ranges in order: `5-6,9`."""
        return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in self.runs)


def between(first: int, last: int) -> Ranges:
    """Return all numbers from *first* to *last*; none where that is less."""
    return Ranges(((first, last),) if first <= last else ())


def ranges_of(numbers: Iterable[int]) -> Ranges:
    """Return *numbers* as ranges."""
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return Ranges(tuple(runs))


def ranges_in(text: str) -> Ranges:
    """Return the ranges in *text*, as they are written."""
    runs = []
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        runs.append((int(first), int(last or first)))
    return Ranges(tuple(runs))
