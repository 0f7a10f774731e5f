"""Room for streams: how many there may be, and how many partitions they may have."""

from lockkeeper.broker.errors import InvalidDestinationError, ResourceAllocationError
from lockkeeper.broker.streams.settings import StreamLimits


class Capacity:
    """Counts the partitions of all streams; refuses what would be beyond the limits."""

    def __init__(self, limits: StreamLimits) -> None:
        self._limits = limits
        self.partitions = 0

    def check(self, name: str, partitions: int, known: int | None, streams: int) -> None:
        """Make sure that a stream may have so many partitions; *known* are those it has already.

        *streams* are there, without a new one, for which *known* is None. Raises BrokerError.
        """
        limits = self._limits
        if not 1 <= partitions <= limits.partitions:
            raise InvalidDestinationError(
                f"stream {name}: {partitions} partitions, not 1 to {limits.partitions} "
                "(streams.limits.partitions)"
            )
        if known is None and streams >= limits.streams:
            raise ResourceAllocationError(
                f"there are {limits.streams} streams already (streams.limits.streams)"
            )
        more = partitions - (known or 0)
        if more > 0 and self.partitions + more > limits.partitions_total:
            raise ResourceAllocationError(
                f"stream {name}: all streams have {self.partitions} partitions, and {more} more "
                f"would be beyond {limits.partitions_total} (streams.limits.partitionsTotal)"
            )
