"""Moments at which a master looks whether it still has its lock.

They come by a clock that nobody sets. But a machine that stood still may not know it by its own
clock; the clock of people, which is set right afterwards, tells by a jump.
"""


class KeepAlive:
    """Tells when the lock is due: every *period* ms, and at once after a jump; 0 for never."""

    def __init__(self, period: int) -> None:
        self._period = period
        self._due = 0
        self._apart = 0

    def is_due(self, steady: int, wall: int) -> bool:
        """Tell whether the lock is to be looked at now, and count on its being done.

        *steady* is a clock that nobody sets, *wall* one that people may set; both in ms.
        """
        apart = wall - steady
        if abs(apart - self._apart) >= self._period:
            self._apart, self._due = apart, steady
        if not self._period or steady < self._due:
            return False
        self._due = steady + self._period
        return True
