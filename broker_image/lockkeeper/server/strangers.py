"""Connections whose clients have not said who they are, or not yet in TLS: few, and not for long.

When there are too many, the oldest one goes, not the newest: an honest client is in within
milliseconds, so it is never the oldest for long, and whoever opens connections by the thousand
keeps nobody out.
"""

import logging
from typing import NamedTuple

from lockkeeper.transport.peer import Guest

logger = logging.getLogger(__name__)

TELL_EVERY_MS = 10_000
LATE = "late"
DISPLACED = "displaced"
FULL = "full"


class _Stay(NamedTuple):
    """Since when a stranger is there and when it must be in; in ms of `Context.steady`."""

    since: int
    until: int


class Strangers:
    """Everybody who is at the door; `turned_away` counts by reason those who had to go."""

    def __init__(self) -> None:
        self._stays: dict[Guest, _Stay] = {}
        self.turned_away = {LATE: 0, DISPLACED: 0, FULL: 0}
        self._told = dict(self.turned_away)
        self._told_at = -TELL_EVERY_MS
        self._last = ""

    def __len__(self) -> int:
        """Return how many there are, those included who got in since the last `look`."""
        return len(self._stays)

    def __contains__(self, guest: object) -> bool:
        """Tell whether *guest* is still a stranger, as far as was looked."""
        return guest in self._stays

    def came(self, guest: Guest, steady: int, patience: int) -> None:
        """Note who came now and must be in within *patience* ms."""
        self._stays[guest] = _Stay(steady, steady + patience)

    def went_on(self, guest: Guest, into: Guest) -> None:
        """Note that the one went on as the other; its time goes on, too."""
        stay = self._stays.pop(guest, None)
        if stay is not None:
            self._stays[into] = stay

    def gone(self, guest: Guest) -> None:
        """Forget who is gone."""
        self._stays.pop(guest, None)

    def make_room(self, most: int) -> None:
        """See to it that one more is not more than *most*."""
        if len(self._stays) >= most:
            self._forget_those_in()
        while len(self._stays) >= most and self.displace():
            pass

    def displace(self, newcomer: Guest | None = None) -> bool:
        """Part with the oldest one who is not the *newcomer*; False when there is none."""
        while (guest := self._oldest_besides(newcomer)) is not None:
            del self._stays[guest]
            if not guest.is_in:
                self.refused(guest.address, DISPLACED)
                guest.abort()
                return True
        return False

    def refused(self, address: str, reason: str) -> None:
        """Count somebody who was turned away."""
        self.turned_away[reason] += 1
        self._last = address

    def abort_late_ones(self, steady: int) -> None:
        """Abort guests that did not log in in time, and log all that were turned away."""
        self._forget_those_in()
        for guest, stay in list(self._stays.items()):
            if steady >= stay.until:
                del self._stays[guest]
                self.refused(guest.address, LATE)
                guest.abort()
        if self._told != self.turned_away and steady - self._told_at >= TELL_EVERY_MS:
            self._log_turned_away()
            self._told_at = steady

    def _oldest_besides(self, newcomer: Guest | None) -> Guest | None:
        return next((guest for guest in self._stays if guest is not newcomer), None)

    def _forget_those_in(self) -> None:
        for guest in [guest for guest in self._stays if guest.is_in]:
            del self._stays[guest]

    def _log_turned_away(self) -> None:
        more = {reason: count - self._told[reason] for reason, count in self.turned_away.items()}
        self._told = dict(self.turned_away)
        logger.warning(
            "turned away %d connections, the last one from %s: %d did not log in in time "
            "(loginTimeout), %d made room for newer ones (connectionsBeforeLoginMax), %d came when "
            "there were connectionsMax",
            sum(more.values()),
            self._last,
            more[LATE],
            more[DISPLACED],
            more[FULL],
        )
