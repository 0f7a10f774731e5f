"""Keys of what a consumer holds, for clients whose acknowledgements name no broker sequence.

A client that names what it does not hold has all of it looked through once, not every time.
"""

from itertools import islice
from typing import Final

from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.store.base import Reference

# So many ended messages may be known before all is looked through again.
_ENDED_MIN: Final = 1024


class DispatchedKeys:
    """Sequences of dispatched messages by their keys, each key's in the order of dispatch."""

    __slots__ = ("_count", "_delivered", "_dispatched", "_last", "_sequences")

    def __init__(self) -> None:
        self._dispatched: dict[int, Reference] | None = None
        self._sequences: dict[bytes, list[int]] = {}
        self._count = self._delivered = self._last = 0

    def find(self, consumer: Consumer, key: bytes) -> int | None:
        """Return the sequence of the oldest message of this key that the consumer holds."""
        dispatched = consumer.dispatched
        if dispatched is not self._dispatched or self._count > 2 * len(dispatched) + _ENDED_MIN:
            self._dispatched, self._sequences = dispatched, {}
            self._count = self._last = 0
            self._learn(consumer, len(dispatched))
        elif consumer.delivered != self._delivered:
            self._learn(consumer, consumer.delivered - self._delivered)
        sequences = self._sequences.get(key, [])
        while sequences:
            if sequences[0] in dispatched:
                return sequences[0]
            del sequences[0]
        return None

    def _learn(self, consumer: Consumer, most: int) -> None:
        """Learn what was dispatched since the last time, up to *most* messages."""
        fresh: list[tuple[int, Reference]] = []
        for sequence, reference in islice(reversed(consumer.dispatched.items()), most):
            if reference.delivery <= self._last:
                break
            fresh.append((sequence, reference))
        for sequence, reference in reversed(fresh):
            self._sequences.setdefault(reference.loaded.key, []).append(sequence)
            self._last = max(self._last, reference.delivery)
        self._count += len(fresh)
        self._delivered = consumer.delivered
