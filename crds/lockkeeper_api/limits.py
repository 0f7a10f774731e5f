"""Limits of a broker on the number of things."""

from pydantic import Field

from lockkeeper_api.meta import ApiModel

LIMIT_MAX = 1_000_000


class Limits(ApiModel):
    """Largest numbers of things; a request beyond one is refused with the limit's name."""

    destinations: int = Field(default=100_000, ge=1, le=LIMIT_MAX)
    """Queues and topics of the broker, temporary ones included."""
    consumers: int = Field(default=100_000, ge=1, le=LIMIT_MAX)
    """Consumers of a connection (ActiveMQ's maximumConsumersAllowedPerConnection)."""
    producers: int = Field(default=100_000, ge=1, le=LIMIT_MAX)
    """Producers of a connection (ActiveMQ's maximumProducersAllowedPerConnection)."""
    temporary_destinations: int = Field(default=10_000, ge=1, le=LIMIT_MAX)
    """Temporary queues and topics of a connection."""
    transactions: int = Field(default=10_000, ge=1, le=LIMIT_MAX)
    """Open transactions of a connection."""
