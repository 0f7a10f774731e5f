"""Queues that the broker keeps for itself: no client can remove them."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.errors import InvalidDestinationError
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.streams.transactions import HALVES
from lockkeeper.message.destination import Destination, queue

if TYPE_CHECKING:
    from conftest import Bench

SEGMENT = queue("Lockkeeper.Stream.0.00000000000000000000.ORDERS")


@pytest.mark.parametrize("destination", [JOBS, HALVES, SEGMENT], ids=str)
def test_they_are_removed_by_nobody(bench: "Bench", destination: Destination) -> None:
    with pytest.raises(InvalidDestinationError, match="is the broker's own"):
        bench.broker.destinations.remove(destination, None)
    with pytest.raises(InvalidDestinationError, match="is the broker's own"):
        bench.broker.destinations.remove_with_users(destination, None)
