"""Delay of a write by a moment: a message acknowledged before it is never written.

ActiveMQ calls this concurrent store and dispatch. When consumers hold every message that waits
to be written, their acknowledgements may be quicker than the disk; then nothing is written at
all, and the producers are answered at once. Whether that pays is learnt from the last attempts.
"""

from typing import Any, Final

from lockkeeper.store.base import WAITING
from lockkeeper.store.kahadb.file_references import DestinationReferences
from lockkeeper.store.kahadb.waiting import RECORD

HOLD_MICROSECONDS = 300
ITEMS_MAX: Final = 64
_TRUST_MAX, _TRUST_NEEDED, _MISS_COSTS = 8, 4, 2
# While holding does not pay, one attempt in so many finds out whether it does by now.
_PROBE_EVERY: Final = 64


class CommitDelay:
    """Learns whether to hold writes back."""

    __slots__ = ("_passed", "_trust", "is_holding")

    def __init__(self) -> None:
        self.is_holding = False
        self._trust = _TRUST_NEEDED
        self._passed = 0

    def should_hold(self, items: list[Any], kinds: list[Any]) -> bool:
        """Tell whether acknowledgements may make writing *items* needless within the hold."""
        if not _may_be_overtaken(items, kinds):
            return False
        if self.is_holding or self._trust >= _TRUST_NEEDED:
            return True
        self._passed += 1
        return self._passed % _PROBE_EVERY == 0

    def end(self, paid: bool) -> None:
        """Learn how a hold ended: everything acknowledged in time, or the time was over."""
        self.is_holding = False
        change = 1 if paid else -_MISS_COSTS
        self._trust = max(0, min(_TRUST_MAX, self._trust + change))


def _may_be_overtaken(items: list[Any], kinds: list[Any]) -> bool:
    """Tell whether all that hurries is messages that consumers hold right now."""
    if len(items) > ITEMS_MAX:
        return False
    some_held = False
    for item, kind in zip(items, kinds, strict=True):
        if type(kind) is DestinationReferences:
            if item.state == WAITING:
                if not item.held:
                    return False
                some_held = True
        elif kind is not RECORD and type(kind) is not int:
            return False
    return some_held
