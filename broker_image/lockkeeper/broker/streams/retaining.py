"""Retention: what is too old, or too much, ends some segments at a time."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from lockkeeper.broker.chores import Chore
from lockkeeper.broker.context import Context
from lockkeeper.broker.streams.partition import Partition

INTERVAL_MS: Final = 10_000
AT_ONCE: Final = 1_024
_END_WEIGHT: Final = 32


class Retaining:
    """Looks at all partitions every INTERVAL_MS; *partitions* returns those there are."""

    def __init__(self, context: Context, partitions: Callable[[], Iterable[Partition]]) -> None:
        self._context = context
        self._partitions = partitions
        self._chore = Chore(context, self._steps, AT_ONCE)
        self._is_due = False

    def begin(self) -> None:
        """Look after a while, unless that is going to happen."""
        if not self._is_due:
            self._is_due = True
            self._context.timers.call_at(self._context.steady + INTERVAL_MS, self._retain)

    def _retain(self) -> None:
        self._is_due = False
        self.begin()
        self._chore.begin()

    def _steps(self) -> Iterator[int]:
        for partition in self._partitions():
            while partition.end_oldest():
                yield _END_WEIGHT
            yield 1
