"""Messages in hand: what has come for a channel and is not acknowledged."""

import itertools
import threading
from dataclasses import dataclass
from typing import Protocol

from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.integrations.kombu.feeds import QueueFeed
from lockkeeper.integrations.kombu.transient import TransientQueue

ARRIVALS_MAX = 16
"""Without a prefetch count so many messages wait for the application at most."""
LATE_MAX = 10_000


class HeldOwner(Protocol):
    """The channel of a message in hand."""

    def deliver_held(self, held: "Held") -> bool:
        """Hand a message over."""


@dataclass(slots=True, eq=False)
class Held:
    """One message; *era* says how often the broker had been lost when it came."""

    owner: HeldOwner
    received: ReceivedMessage
    queue: str
    era: int
    feed: QueueFeed | None = None
    transient: TransientQueue | None = None
    tag: int = 0

    def deliver(self) -> bool:
        """Hand it over to the application."""
        return self.owner.deliver_held(self)


class Hand:
    """All that a channel has in hand, by delivery tag and by message id; for any thread.

    After a broker was lost it sends again what was not acknowledged. What is still in hand then is
    not handed over twice, and what was acknowledged in vain is acknowledged again.
    """

    def __init__(self) -> None:
        self.prefetch_count = 0
        self._lock = threading.Lock()
        self._tags = itertools.count(1)
        self._by_tag: dict[int, Held] = {}
        self._by_id: dict[str, Held] = {}
        self._late: dict[str, None] = {}
        self._waiting = 0

    @property
    def has_room(self) -> bool:
        """Tell whether one more message may come."""
        if self.prefetch_count:
            return len(self._by_tag) + self._waiting < self.prefetch_count
        return self._waiting < ARRIVALS_MAX

    def take_arrival(self, held: Held) -> bool:
        """Take what a feed has got; False when it is in hand already, or has been settled."""
        received, identifier = held.received, held.received.message_id
        with self._lock:
            known = self._by_id.get(identifier)
            if known is not None:
                known.received, known.era = received, held.era
                return False
            if identifier in self._late:
                del self._late[identifier]
                received.acknowledge()
                return False
            self._by_id[identifier] = held
            self._waiting += 1
            if held.feed is not None:
                held.feed.unsettled += 1
            return True

    def leave_line(self, held: Held) -> None:
        """Note that an arrival waits no more."""
        with self._lock:
            self._waiting -= 1

    def number(self, held: Held) -> int:
        """Give a message its delivery tag; it is in hand until that is settled."""
        with self._lock:
            held.tag = next(self._tags)
            self._by_tag[held.tag] = held
            return held.tag

    def pass_on(self) -> int:
        """Return the delivery tag of a message that nobody has to settle."""
        return next(self._tags)

    def take_tagged(self, tag: int) -> Held | None:
        """Give a message out of hand."""
        with self._lock:
            return self._by_tag.pop(tag, None)

    def tags_up_to(self, tag: int | None) -> list[int]:
        """Return the tags in hand, up to one of them."""
        with self._lock:
            return [each for each in self._by_tag if tag is None or each <= tag]

    def acknowledge(self, held: Held, era: int) -> None:
        """Acknowledge a message; *era* is that of the broker that is there now."""
        if held.transient is None and held.era == era:
            # Before its consumer may leave, which would give the message to others.
            held.received.acknowledge()
        elif held.transient is None:
            with self._lock:
                self._late[held.received.message_id] = None
                if len(self._late) > LATE_MAX:
                    del self._late[next(iter(self._late))]
        self.forget(held)

    def reject(self, held: Held, cause: str | BaseException) -> None:
        """Make a message a dead letter; what came for a transient queue is dropped."""
        if held.transient is None:
            held.received.reject(cause)
        self.forget(held)

    def forget(self, held: Held) -> None:
        """Note that a message is settled, in whatever way."""
        with self._lock:
            if self._by_id.get(held.received.message_id) is held:
                del self._by_id[held.received.message_id]
            if held.feed is not None:
                held.feed.unsettled -= 1
        if held.feed is not None:
            held.feed.close_if_settled()

    def has_tagged(self, feed: QueueFeed) -> bool:
        """Tell whether the application has something of a feed in hand."""
        with self._lock:
            return any(held.feed is feed for held in self._by_tag.values())
