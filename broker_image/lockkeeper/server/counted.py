"""Statistics as the journal has them: commits that are being written count as done."""

from collections.abc import Iterable

from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.statistics import Statistics
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.broker.transactions import Transaction


class CountedStatistics:
    """Statistics of destinations with what *committing* transactions change, at *now* (ms).

    Records of these were handed over: a line that is written next stands behind them.
    """

    def __init__(self, committing: Iterable[Transaction], now: int) -> None:
        self._changed: dict[Statistics, Statistics] = {}
        for transaction in committing:
            for route, references in transaction.sent:
                # How much came into a stream its partitions tell.
                if isinstance(route, Queue | Topic):
                    self._copy_of(route.statistics).enqueued += len(references)
            for run in transaction.consumed:
                self._copy_of(run.backlog.statistics).acknowledged(run.references, now)

    def of(self, statistics: Statistics) -> Statistics:
        """Return what *statistics* will be once all this is durable."""
        return self._changed.get(statistics, statistics)

    def _copy_of(self, statistics: Statistics) -> Statistics:
        if statistics not in self._changed:
            self._changed[statistics] = statistics.copied()
        return self._changed[statistics]
