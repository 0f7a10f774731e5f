"""Which message bodies of a destination are in memory, and what they weigh.

Bodies beyond the memory's high-water mark leave it once the journal holds them; they come back
when their turn comes.
"""

from collections import deque
from collections.abc import Sequence

from lockkeeper.broker.context import Context
from lockkeeper.message.destination import Destination
from lockkeeper.store.base import WAITING, WRITTEN, Reference


class Residency:
    """The bodies of one destination, each counted once however many subscriptions wait for it.

    *limit* is the destination's own, in bytes; 0 for none.
    """

    __slots__ = ("_destination", "_limit", "context", "unloadable", "used")

    def __init__(self, context: Context, destination: Destination, limit: int = 0) -> None:
        self.context = context
        self._destination = destination
        self._limit = limit
        self.used = 0
        self.unloadable: deque[Reference] = deque()

    def charge(self, reference: Reference) -> None:
        """Count a body that is in memory now."""
        message = reference.message
        if message is None:
            return
        size = len(message.body)
        self.used += size
        memory = self.context.memory
        memory.used += size
        if reference.state and (memory.used > memory.high_water or 0 < self._limit < self.used):
            self._make_unloadable(reference)

    def _make_unloadable(self, reference: Reference) -> None:
        if not self.unloadable:
            self.context.relievable.append(self)
        self.unloadable.append(reference)

    def let_go(self, references: Sequence[Reference]) -> None:
        """Count a consumer less for each of these; without any, its body may leave the memory."""
        is_tight = self.is_tight()
        for reference in references:
            if reference.held and reference.state:
                reference.held -= 1
                if is_tight and not reference.held and reference.message is not None:
                    self._make_unloadable(reference)

    def refund(self, references: Sequence[Reference]) -> None:
        """Count bodies that leave the memory, those of them that were there."""
        size = 0
        for reference in references:
            reference.held = 0
            message = reference.message
            if message is not None:
                size += len(message.body)
        self.used -= size
        self.context.memory.used -= size

    def load(self, page: Sequence[Reference]) -> None:
        """Read the bodies of *page* back from the store; none of them is in memory."""
        self.context.store.load(page, self.context.next_sequence(len(page)))
        for reference in page:
            message = reference.message
            if message is not None:
                # What it says of itself may be another destination (see MessageCopier).
                message.destination = self._destination
                self.charge(reference)

    def is_tight(self) -> bool:
        """Tell whether bodies should leave the memory."""
        memory = self.context.memory
        return memory.used > memory.high_water or 0 < self._limit < self.used

    def is_full(self) -> bool:
        """Tell whether the destination's own limit is reached."""
        return 0 < self._limit <= self.used

    def relieve(self) -> bool:
        """Drop bodies that the journal holds, while memory is tight.

        Returns whether there is more to drop when their write has begun.
        """
        unloadable = self.unloadable
        while unloadable and unloadable[0].state != WAITING:
            reference = unloadable.popleft()
            if reference.held or not reference.location or not self.is_tight():
                continue
            if reference.state == WRITTEN and reference.message is not None:
                self.refund((reference,))
                reference.expiration = reference.message.expiration
                reference.message = None
        return bool(unloadable)
