"""Refusals of streams; protocols give each its code."""

from lockkeeper.broker.errors import BrokerError, InvalidDestinationError, ResourceAllocationError


class NoSuchStreamError(InvalidDestinationError):
    """There is no such stream, and it may not be made by its first use."""


class NoSuchPartitionError(InvalidDestinationError):
    """The stream has fewer partitions."""


class NoSuchGroupError(BrokerError):
    """Nobody has used the consumer group yet."""


class NoSuchRecordError(BrokerError):
    """There is no message at the offset, or it is gone."""


class IllegalMessageError(BrokerError):
    """The message cannot be stored: too large, or a text that nothing can hold."""


class InvalidFilterError(BrokerError):
    """The expression of a subscription is not in its language."""


class NoSuchTransactionError(BrokerError):
    """The half message is unknown: its transaction has its outcome already."""


class StreamsBusyError(ResourceAllocationError):
    """Too much waits for the disk; the producer may try again at once."""
