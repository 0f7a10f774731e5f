"""Emptying a destination by hand, a slice at a time: nobody else is kept waiting meanwhile."""

from collections.abc import Iterator

from lockkeeper.broker.core import Broker
from lockkeeper.broker.regions.backlog import Backlog
from lockkeeper.message.destination import Destination
from lockkeeper.store.base import Receipt

SLICE_MESSAGES = 2_000


def purge(broker: Broker, destination: Destination, receipt: Receipt) -> Iterator[int]:
    """End the messages that wait there now, each with no dead letter; yields how many per slice.

    Those that consumers hold, or a prepared transaction, are left alone. The receipt is settled
    when all of it is durable.
    """
    for backlog in _backlogs(broker, destination):
        left = backlog.depth()
        while left > 0:
            ended = backlog.drop(min(left, SLICE_MESSAGES))
            if not ended:
                break
            left -= ended
            yield ended
    broker.context.settle_behind(receipt)


def _backlogs(broker: Broker, destination: Destination) -> list[Backlog]:
    region = broker.registry.find(destination)
    return [] if region is None else list(region.backlogs())
