"""Histograms of durations, which processes hand on and add up."""

from collections import Counter
from dataclasses import dataclass, field

DIGITS = 6
"""How many binary digits of a duration are kept: a bucket is 1/32 of its durations wide at most."""


@dataclass
class Histogram:
    """Counts of durations in microseconds, by the lower end of their bucket."""

    counts: Counter[int] = field(default_factory=Counter)
    longest: int = 0

    @property
    def total(self) -> int:
        """Return the number of durations."""
        return self.counts.total()

    def add(self, microseconds: int) -> None:
        """Count a duration; one below zero, by clocks that differ, counts as zero."""
        duration = max(0, microseconds)
        self.counts[duration & -_width(duration)] += 1
        self.longest = max(self.longest, duration)

    def merge(self, other: "Histogram") -> None:
        """Add the durations of *other*."""
        self.counts.update(other.counts)
        self.longest = max(self.longest, other.longest)

    def percentile(self, share: float) -> int:
        """Return the microseconds within which *share* (0 to 1) of the durations lie; 0 of none."""
        missing = share * self.total
        for bucket in sorted(self.counts):
            missing -= self.counts[bucket]
            if missing <= 0:
                return min(bucket + _width(bucket) - 1, self.longest)
        return self.longest

    def by_steps(self) -> list[tuple[int, int]]:
        """Return counts by durations of at most 1, 2, 5, 10, … microseconds, without empty ends.

        A bucket that a step divides counts where it begins.
        """
        counted: list[tuple[int, int]] = []
        left = sorted(self.counts.items())
        step, scale = 0, 1
        while left:
            limit = (1, 2, 5)[step] * scale
            inside = [count for bucket, count in left if bucket <= limit]
            left = left[len(inside) :]
            if inside or counted:
                counted.append((limit, sum(inside)))
            step, scale = (step + 1, scale) if step < 2 else (0, scale * 10)
        return counted


def _width(duration: int) -> int:
    """Return the width of the bucket of *duration*: a power of two."""
    return int(1 << max(0, duration.bit_length() - DIGITS))
