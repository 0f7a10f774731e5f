"""Announcements of brokers by multicast, as ActiveMQ's discovery agent does.

A datagram is `GROUP.ActiveMQ-4.alive.%NAME%URI`, or `dead.` for one that goes. ActiveMQ's NAME is
always `localhost`. Who sends is not known, so that a datagram may say anything.
"""

from collections.abc import Callable, Collection
from typing import Final

NEIGHBOURS_MAX: Final = 64
DATAGRAM_CHARACTERS_MAX: Final = 1024
SILENT_INTERVALS: Final = 10
"""After so many intervals without a word a broker counts as gone: as with ActiveMQ."""
_TYPE: Final = ".ActiveMQ-4."
_ALIVE: Final = "alive."
_DEAD: Final = "dead."
_DELIMITER: Final = "%"
_NAME: Final = "localhost"


def announcement(group: str, uri: str, is_alive: bool) -> bytes:
    """Return the datagram of a broker at *uri* that is there, or goes."""
    state = _ALIVE if is_alive else _DEAD
    return f"{group}{_TYPE}{state}{_DELIMITER}{_NAME}{_DELIMITER}{uri}".encode()


class Neighbours:
    """The brokers of a group that are there, by what they tell.

    *read* returns a broker's address, and raises ValueError for what is none. `found` are the
    addresses of those that are there, at most NEIGHBOURS_MAX. Times are in ms that only pass.
    """

    def __init__(self, group: str, keep_alive_interval: int, read: Callable[[str], str]) -> None:
        self._begins = f"{group}{_TYPE}"
        self._silence = SILENT_INTERVALS * keep_alive_interval
        self._read = read
        self._heard: dict[str, int] = {}

    @property
    def found(self) -> Collection[str]:
        """Addresses of the brokers that are there."""
        return self._heard.keys()

    def hear(self, datagram: bytes, now: int) -> None:
        """Take what a broker tells of itself; anything else is passed over."""
        try:
            text = datagram.decode()
        except UnicodeDecodeError:
            return
        if not text.startswith(self._begins) or len(text) > DATAGRAM_CHARACTERS_MAX:
            return
        state, delimiter, told = text.removeprefix(self._begins).partition(_DELIMITER)
        _, second, uri = told.partition(_DELIMITER)
        if not (delimiter and second):
            return
        try:
            address = self._read(uri)
        except ValueError:
            return
        if state == _DEAD:
            self._heard.pop(address, None)
        elif state == _ALIVE and (address in self._heard or len(self._heard) < NEIGHBOURS_MAX):
            self._heard[address] = now

    def part_with_silent(self, now: int) -> None:
        """Let go of those that have told nothing for long."""
        for address, heard in list(self._heard.items()):
            if now - heard > self._silence:
                del self._heard[address]
