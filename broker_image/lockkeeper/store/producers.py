"""Last stored sequence number of each producer, for as many as were active last.

A client that comes back after a failover repeats what was not answered. What is known as stored
is a duplicate; anything else is taken, a number below the last one, too: its first attempt may
have waited for room, or been part of a transaction that was never committed.
"""

from bisect import bisect_left
from typing import Final

PRODUCERS_MAX = 10_000
NAMES_BYTES_MAX: Final = 4 << 20
"""So long are the keys of all producers together: clients choose what is in them."""
GAPS_MAX: Final = 1_024


class Window:
    """The numbers of one producer that were noted: all above `floor` up to `last` but for `gaps`.

    Gaps are ranges of numbers, both ends included, in order. Of more than GAPS_MAX the oldest is
    forgotten, and with it everything before: about what is not above `floor` nothing is known.
    """

    __slots__ = ("floor", "gaps", "last")

    def __init__(self, number: int) -> None:
        self.floor = number - 1
        self.last = number
        self.gaps: list[tuple[int, int]] = []

    def note_number(self, number: int) -> None:
        """Note any number but the one after `last`, for which setting `last` is enough."""
        if number > self.last:
            self.gaps.append((self.last + 1, number - 1))
            self.last = number
        elif number > self.floor:
            self._fill(number)
        else:
            self._lower(number)
        if len(self.gaps) > GAPS_MAX:
            self.floor = self.gaps.pop(0)[1]

    def holds(self, number: int) -> bool:
        """Tell whether a number was noted, as far as is known."""
        if not self.floor < number <= self.last:
            return False
        index = self._gap_of(number)
        return index is None

    def _gap_of(self, number: int) -> int | None:
        """Return the index of the gap that a number is in."""
        index = bisect_left(self.gaps, (number + 1,)) - 1
        return index if index >= 0 and number <= self.gaps[index][1] else None

    def _fill(self, number: int) -> None:
        index = self._gap_of(number)
        if index is not None:
            first, last = self.gaps[index]
            rest = ((first, number - 1), (number + 1, last))
            self.gaps[index : index + 1] = [gap for gap in rest if gap[0] <= gap[1]]

    def _lower(self, number: int) -> None:
        """Note a number from below the floor, unless too many gaps are known already."""
        if len(self.gaps) >= GAPS_MAX:
            return
        if number < self.floor:
            self.gaps.insert(0, (number + 1, self.floor))
        self.floor = number - 1


class Producers:
    """The windows of producers by their key (`connectionId:sessionId:value`), the last active last.

    Of more than PRODUCERS_MAX, or NAMES_BYTES_MAX, those are forgotten that have been quiet for
    longest.
    """

    __slots__ = ("_current", "_names_bytes", "_window", "_windows")

    def __init__(self) -> None:
        self._windows: dict[bytes, Window] = {}
        self._names_bytes = 0
        self._current = b""
        self._window = Window(0)

    def __len__(self) -> int:
        """Return how many producers are known."""
        return len(self._windows)

    def note_number(self, producer: bytes, number: int) -> None:
        """Note a number of a producer, which is the one heard of last from now on."""
        window = self._window
        if producer != self._current:
            found = self._windows.pop(producer, None)
            self._current = producer
            if found is None:
                self._window = self._windows[producer] = Window(number)
                self._names_bytes += len(producer)
                while len(self._windows) > PRODUCERS_MAX or self._names_bytes > NAMES_BYTES_MAX:
                    self._forget_one()
                return
            window = self._window = self._windows[producer] = found
        if number == window.last + 1:
            window.last = number
        else:
            window.note_number(number)

    def _forget_one(self) -> None:
        oldest = next(iter(self._windows))
        del self._windows[oldest]
        self._names_bytes -= len(oldest)

    def note_key(self, key: bytes) -> None:
        """Note a message by its key; one that is no producer's and a number says nothing."""
        producer, _, number = key.rpartition(b":")
        if producer and number.isdigit():
            self.note_number(producer, int(number))

    def holds(self, producer: bytes, number: int) -> bool:
        """Tell whether a number of a producer was noted, as far as is known."""
        window = self._windows.get(producer)
        return window is not None and window.holds(number)

    def last(self, producer: bytes) -> int | None:
        """Return the highest number noted of a producer."""
        window = self._windows.get(producer)
        return None if window is None else window.last

    def stored(self) -> dict[bytes, tuple[int, int, tuple[tuple[int, int], ...]]]:
        """Return floor, last number and gaps of each producer, the last active last."""
        return {
            producer: (window.floor, window.last, tuple(window.gaps))
            for producer, window in self._windows.items()
        }


def network_stream(producer: bytes, hops: int, destination: bytes) -> bytes:
    """Return the key for numbers of a producer whose messages other brokers bring.

    *hops* is how many brokers they have left, 0 for a topic's; *destination* is the wire form of
    where they go.
    """
    return b"%b>%d>%b" % (producer, hops, destination)
