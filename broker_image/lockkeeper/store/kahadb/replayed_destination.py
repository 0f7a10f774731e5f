"""One destination as the records applied so far leave it."""

from typing import Final

from lockkeeper.message.destination import Destination
from lockkeeper.store.base import Reference
from lockkeeper.store.kahadb.long_index import LongIndex
from lockkeeper.store.kahadb.segment_replay import SegmentReplay

LONG_MIN: Final = 100_000
"""A queue with fewer messages is kept in a dictionary: that is quicker, and 400 bytes each."""

Messages = dict[bytes, Reference]
"""Messages by their id, in the order of their adds."""


class ReplayedDestination:
    """A destination: `index` holds a queue's messages, `pending` a topic's by subscription.

    `encodings` are the bytes that records name it by; `added` has where all of a topic's adds
    are. Their removals refer there even when the subscription's creation is no longer before
    them, because it was created again.
    """

    __slots__ = ("added", "destination", "encodings", "index", "pending", "segment")

    def __init__(self, destination: Destination, segment: SegmentReplay | None) -> None:
        self.destination = destination
        self.segment = segment
        self.encodings: list[bytes] = []
        has_index = destination.is_queue and segment is None
        self.index: Messages | LongIndex | None = {} if has_index else None
        self.pending: dict[str, Messages] = {}
        self.added: dict[bytes, int] = {}

    def compact(self) -> None:
        """Keep a queue that has become long in less memory."""
        if isinstance(self.index, LongIndex):
            self.index.compact()
        elif self.index is not None and len(self.index) > LONG_MIN:
            self.index = LongIndex(self.index)

    def messages_of(self, key: bytes | None) -> "list[Messages | LongIndex]":
        """Return where the messages of a subscription are, or all places without its *key*."""
        if self.index is not None:
            return [self.index]
        if key is None:
            return list(self.pending.values())
        return [self.pending[key_text(key)]] if key_text(key) in self.pending else []

    def holders_of(
        self, message_id: bytes, key: bytes | None = None
    ) -> "list[Messages | LongIndex]":
        """Return those of `messages_of` that contain *message_id*."""
        return [messages for messages in self.messages_of(key) if message_id in messages]

    def keep(self, message_id: bytes, reference: Reference) -> None:
        """Enter a message, for every subscription that exists now."""
        for messages in self.messages_of(None):
            messages[message_id] = reference

    def retained(self, forgotten: Messages) -> Messages:
        """Return all messages that are still there, in order, *forgotten* among them."""
        retained = dict(forgotten)
        for messages in self.pending.values():
            retained |= messages
        return dict(sorted(retained.items(), key=lambda item: item[1].location))


def key_text(key: bytes) -> str:
    """Return the key of a subscription as a text."""
    return key.decode("utf-8", "replace")
