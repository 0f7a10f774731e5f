"""Shares of partitions: of members by the averaging strategy, of messages by a key."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def average(partitions: Iterable[T], members: Iterable[str], member: str) -> list[T]:
    """Return the partitions of one member: as RocketMQ's AllocateMessageQueueAveragely.

    Each gets a row of neighbours, the first ones one more where it does not come out even. All
    members come to the same result, since they sort alike. *partitions* are sorted.
    """
    everything = list(partitions)
    # Java sorts by units of UTF-16.
    order = sorted(set(members), key=lambda name: name.encode("utf-16-be"))
    if member not in order:
        return []
    index = order.index(member)
    share, left = divmod(len(everything), len(order))
    start = index * share + min(index, left)
    return everything[start : start + share + (index < left)]


def java_hash(text: str) -> int:
    """Return what Java's String.hashCode returns: 32 bits with a sign."""
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(data), 2):
        value = (31 * value + (data[position] << 8 | data[position + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def by_key(partitions: Sequence[T], key: str) -> T:
    """Return the partition of a key: as RocketMQ's SelectMessageQueueByHash of a String."""
    return partitions[abs(java_hash(key)) % len(partitions)]
