"""Statistics as the journal has them: what is being written counts as done."""

from collections.abc import Iterable
from itertools import chain

from lockkeeper.broker.core import Broker
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.statistics import Statistics
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.broker.transactions import SentRun


class CountedStatistics:
    """Statistics of a broker's destinations with what commits, and its own messages, change.

    Records of these were handed over: a line that is written next stands behind them.
    """

    def __init__(self, broker: Broker) -> None:
        self._changed: dict[Statistics, Statistics] = {}
        committing = broker.transactions.committing()
        self._count_sent(broker.destinations.arriving())
        self._count_sent(chain.from_iterable(each.sent for each in committing))
        for transaction in committing:
            for run in transaction.consumed:
                changed = self._copy_of(run.backlog.statistics)
                changed.acknowledged(run.references, transaction.committed_at)

    def of(self, statistics: Statistics) -> Statistics:
        """Return what *statistics* will be once all this is durable."""
        return self._changed.get(statistics, statistics)

    def _count_sent(self, sent: Iterable[SentRun]) -> None:
        for route, references in sent:
            # How much came into a stream its partitions tell.
            if isinstance(route, Queue | Topic):
                self._copy_of(route.statistics).enqueued += len(references)

    def _copy_of(self, statistics: Statistics) -> Statistics:
        if statistics not in self._changed:
            self._changed[statistics] = statistics.copied()
        return self._changed[statistics]
