"""Which message bodies of a destination are in memory, and what they weigh.

Bodies beyond the memory's high-water mark leave it once the journal holds them; they come back
when their turn comes.
"""

from collections import deque
from collections.abc import Sequence

from lockkeeper.broker.context import Context
from lockkeeper.store.base import WAITING, WRITTEN, Reference


class Residency:
    """The bodies of one destination, each counted once however many subscriptions wait for it."""

    __slots__ = ("context", "unloadable", "used")

    def __init__(self, context: Context) -> None:
        self.context = context
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
        if memory.used > memory.high_water and reference.state:
            if not self.unloadable:
                self.context.relievable.append(self)
            self.unloadable.append(reference)

    def refund(self, reference: Reference) -> None:
        """Count a body that leaves the memory, if it was there."""
        if reference.message is not None:
            size = len(reference.message.body)
            self.used -= size
            self.context.memory.used -= size

    def load(self, page: Sequence[Reference]) -> None:
        """Read the bodies of *page* back from the store; none of them is in memory."""
        self.context.store.load(page, self.context.next_sequence(len(page)))
        for reference in page:
            self.charge(reference)

    def relieve(self) -> bool:
        """Drop bodies that the journal holds, while memory is above its high-water mark.

        Returns whether there is more to drop when their write has begun.
        """
        unloadable, memory = self.unloadable, self.context.memory
        while unloadable and unloadable[0].state != WAITING:
            reference = unloadable.popleft()
            if memory.used <= memory.high_water or reference.held or not reference.location:
                continue
            if reference.state == WRITTEN and reference.message is not None:
                self.refund(reference)
                reference.message = None
        return bool(unloadable)
