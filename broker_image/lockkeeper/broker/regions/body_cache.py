"""Message bodies of one destination in memory, and their weight.

Bodies beyond the memory's high-water mark leave it: persistent ones once the journal holds them,
others to temporary files. They come back when their turn comes.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from lockkeeper.broker.context import MESSAGE_BYTES, Context
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.message.destination import Destination
from lockkeeper.store.base import VOLATILE, WAITING, WRITTEN, Reference, body_bytes

PACKED_AFTER = 4096
ENDED: Final = -1
"""What `Reference.held` is once nobody needs the message any more."""
_NOTHING: deque[Reference] = deque()
"""Stays empty: see `BodyCache._let_leave`, before which nothing is added."""


class BodyCache:
    """The bodies of one destination, each counted once however many subscriptions wait for it.

    `used` is in bytes; `spooled` counts messages in temporary files. What may leave is in
    `unloadable` if the journal has it, or will have it, else in `spoolable`.
    """

    __slots__ = (
        "_high_water",
        "_limit",
        "_may_spool",
        "_own_high_water",
        "context",
        "destination",
        "pack",
        "spoolable",
        "spooled",
        "unloadable",
        "unloaded",
        "used",
    )

    def __init__(
        self, context: Context, destination: Destination, policy: DestinationPolicy
    ) -> None:
        self.context = context
        self.destination = destination
        self.used = 0
        self.spooled = 0
        # Whoever has the messages; called when many bodies have left the memory.
        self.pack: Callable[[], None] = _nothing
        self.unloaded = 0
        # A deque weighs 760 bytes, so destinations share these while memory was never tight.
        self.unloadable = _NOTHING
        self.spoolable = _NOTHING
        self.adopt(policy)

    def adopt(self, policy: DestinationPolicy) -> None:
        """Go by another policy from now on."""
        percent = policy.flow.cursor_memory_high_water_mark
        self._high_water = self.context.memory.limit * percent // 100
        self._limit = policy.memory_limit
        self._own_high_water = policy.memory_limit * percent // 100
        self._may_spool = policy.flow.spool_non_persistent

    def charge(self, reference: Reference) -> None:
        """Count a body that is in memory now."""
        message = reference.message
        if message is None:
            return
        size = MESSAGE_BYTES + len(message.body)
        self.used += size
        memory = self.context.memory
        memory.used += size
        own = self._own_high_water
        if memory.used > self._high_water or (own and own < self.used):
            self._let_leave(reference)

    def charge_run(self, references: Sequence[Reference]) -> None:
        """Do what `charge` does for several bodies, all of them in memory."""
        size = MESSAGE_BYTES * len(references) + body_bytes(references)
        own, memory = self._own_high_water, self.context.memory
        if memory.used + size > self._high_water or (own and own < self.used + size):
            for reference in references:
                self.charge(reference)
            return
        self.used += size
        memory.used += size

    def _let_leave(self, reference: Reference) -> None:
        """Note a body that may leave the memory while it is tight."""
        if reference.state or self._may_spool:
            if self.unloadable is _NOTHING:
                self.unloadable, self.spoolable = deque(), deque()
            if not self.unloadable and not self.spoolable:
                self.context.relievable.append(self)
            (self.unloadable if reference.state else self.spoolable).append(reference)

    def let_go(self, references: Sequence[Reference]) -> None:
        """Count a consumer less for each of these; without any, its body may leave the memory."""
        is_tight = self.is_tight()
        for reference in references:
            if reference.held > 0:
                reference.held -= 1
                if is_tight and not reference.held and reference.message is not None:
                    self._let_leave(reference)

    def refund(self, references: Sequence[Reference]) -> None:
        """Give back what messages occupied that have ended."""
        size = MESSAGE_BYTES * len(references)
        for reference in references:
            reference.held = ENDED
            message = reference.message
            size += -MESSAGE_BYTES if message is None else len(message.body)
        self.used -= size
        self.context.memory.used -= size
        if self.spooled:
            self._unspool(references)

    def _unspool(self, references: Sequence[Reference]) -> None:
        """Give back the room in temporary files of messages that have ended."""
        gone = [each for each in references if each.state == VOLATILE and each.location]
        self.spooled -= len(gone)
        self.context.store.unspool(gone)

    def load(self, page: Sequence[Reference]) -> None:
        """Read the bodies of *page* back from the store; none of them is in memory."""
        self.context.store.load(page, self.context.next_sequence(len(page)))
        for reference in page:
            message = reference.message
            if message is not None:
                # What it says of itself may be another destination (see MessageCopier).
                message.destination = self.destination
                self.charge(reference)

    def is_tight(self) -> bool:
        """Tell whether bodies should leave the memory."""
        return self.context.memory.used > self._high_water or (0 < self._own_high_water < self.used)

    def is_full(self) -> bool:
        """Tell whether the destination's own limit is reached."""
        return 0 < self._limit <= self.used

    def relieve(self) -> bool:
        """Let bodies leave that are on disk already, or are brought there, while memory is tight.

        Returns whether some may leave later: their write has not begun, or there is no room for
        them in the temporary storage.
        """
        if not self.is_tight():
            self.unloadable.clear()
            self.spoolable.clear()
            return False
        self._unload_written()
        spoolable = self.spoolable
        while spoolable and self.is_tight():
            reference = spoolable[0]
            if reference.state:
                # Its transaction has handed it to the store since.
                self.unloadable.append(reference)
            # What consumers hold comes here again when they let go of it.
            elif not reference.held and reference.message is not None:
                if not self._spool(reference):
                    break
                self._unload(reference)
            spoolable.popleft()
        if self.unloaded >= PACKED_AFTER:
            self.unloaded = 0
            self.pack()
        return bool(self.unloadable or spoolable)

    def _unload_written(self) -> None:
        """Let bodies leave that the journal has, whatever those before them wait for."""
        unloadable, unwritten = self.unloadable, []
        while unloadable and self.is_tight():
            reference = unloadable.popleft()
            if reference.state == WAITING:
                unwritten.append(reference)
            elif (
                reference.state == WRITTEN
                and reference.location
                and not reference.held
                and reference.message is not None
            ):
                self._unload(reference)
        unloadable.extendleft(reversed(unwritten))

    def skip(self) -> bool:
        """Leave the next body that may leave where it is: that failed. Return as `relieve` does."""
        waiting = self.unloadable or self.spoolable
        if waiting:
            waiting.popleft()
        return bool(self.unloadable or self.spoolable)

    def _spool(self, reference: Reference) -> bool:
        """Put a body into a temporary file, unless it is there; False without room for it."""
        if not reference.location:
            if not self.context.store.spool([reference]):
                return False
            self.spooled += 1
        return True

    def _unload(self, reference: Reference) -> None:
        """Drop a body that is on disk."""
        message = reference.loaded
        size = MESSAGE_BYTES + len(message.body)
        self.used -= size
        self.context.memory.used -= size
        reference.expiration = message.expiration
        reference.message = None
        self.unloaded += 1


def _nothing() -> None:
    """Pack nothing."""
