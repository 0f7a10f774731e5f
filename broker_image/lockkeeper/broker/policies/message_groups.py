"""Message groups: which consumer owns which group, and how many groups are remembered."""

from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from lockkeeper.broker.subscriptions.consumer import Consumer


class MessageGroupMap(Enum):
    """Memory of the groups' owners."""

    CACHED = "Cached"
    SIMPLE = "Simple"
    HASH_BUCKET = "HashBucket"


@dataclass(frozen=True, slots=True)
class MessageGroupPolicy:
    """ActiveMQ's messageGroupMapFactory with its defaults.

    Cached remembers the owners of the `cache_size` groups used last, Simple all of them; with
    HashBucket all groups whose id falls into the same of `bucket_count` buckets are as one.
    """

    map: MessageGroupMap = MessageGroupMap.CACHED
    cache_size: int = 1024
    bucket_count: int = 1024


# A group's id, or the number of its bucket.
GroupKey = bytes | int


class GroupOwners:
    """The owners of one queue's groups."""

    __slots__ = ("_owned", "_owners", "_policy")

    def __init__(self, policy: MessageGroupPolicy) -> None:
        self._policy = policy
        self._owners: OrderedDict[GroupKey, Consumer] = OrderedDict()
        self._owned: dict[Consumer, set[GroupKey]] = {}

    def __len__(self) -> int:
        """Return how many groups (or buckets) have an owner."""
        return len(self._owners)

    def key(self, group: bytes) -> GroupKey:
        """Return what a group is remembered by."""
        if self._policy.map is MessageGroupMap.HASH_BUCKET:
            return crc32(group) % self._policy.bucket_count
        return group

    def owner(self, key: GroupKey) -> "Consumer | None":
        """Return who owns a group, if anybody does."""
        return self._owners.get(key)

    def groups_of(self, consumer: "Consumer") -> int:
        """Return how many groups a consumer owns."""
        return len(self._owned.get(consumer, ()))

    def consumers(self) -> "list[Consumer]":
        """Return everybody who owns a group, or did."""
        return list(self._owned)

    def touch(self, key: GroupKey) -> None:
        """Note that an owned group was used: those not used for longest are forgotten first."""
        self._owners.move_to_end(key)

    def assign(self, key: GroupKey, consumer: "Consumer") -> GroupKey | None:
        """Make a consumer the owner of a group; returns the group that is forgotten for it."""
        self.release(key)
        self._owners[key] = consumer
        self._owned.setdefault(consumer, set()).add(key)
        if self._policy.map is not MessageGroupMap.CACHED:
            return None
        if len(self._owners) <= self._policy.cache_size:
            return None
        oldest = next(iter(self._owners))
        self.release(oldest)
        return oldest

    def release(self, key: GroupKey) -> None:
        """End the ownership of a group, if it has an owner."""
        owner = self._owners.pop(key, None)
        if owner is not None:
            self._owned[owner].discard(key)

    def forget(self, consumer: "Consumer") -> set[GroupKey]:
        """End all ownership of a consumer; returns what it owned."""
        released = self._owned.pop(consumer, set())
        for key in released:
            del self._owners[key]
        return released
