"""The accounts: what became of every single departure."""

import queue
from abc import ABC, abstractmethod
from array import array
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roles import Events


class Accounts(ABC):
    """What producers and consumers say, in turn; `total` departures are to be `done`."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.published = 0

    @property
    @abstractmethod
    def done(self) -> int:
        """How many departures are done with so far."""

    @abstractmethod
    def _note(self, kind: str, value: Any) -> None:
        """Take one event in. Raises RuntimeError for the failure of somebody."""

    def is_complete(self) -> bool:
        """Tell whether every departure was sent and is done with."""
        return self.done >= self.total and self.published >= self.total

    def take(self, events: "Events", seconds: float) -> None:
        """Take the next events in; TimeoutError when none comes, RuntimeError on a failure."""
        try:
            self._note(*events.get(timeout=seconds))
        except queue.Empty:
            raise TimeoutError(
                f"nothing has happened for {seconds:.0f} s, with {self.done} of {self.total} done"
            ) from None
        self.drain(events)

    def drain(self, events: "Events") -> None:
        """Take in what is there already."""
        while not events.empty():
            self._note(*events.get())


class Tally(Accounts):
    """Counts how often each departure was processed and how often it became a dead letter.

    Progress (`published`, `done`) is what producers and workers say; the verdict is not: a
    departure is dead-lettered only when its letter was found in the queue.
    """

    def __init__(self, total: int) -> None:
        super().__init__(total)
        self.rejected = 0
        self.resent = 0
        self.redelivered = 0
        self.in_doubt = 0
        self._processed = bytearray(total)
        self._buried = bytearray(total)
        self._distinct = 0

    @property
    def done(self) -> int:
        """How many departures were processed or rejected so far."""
        return self._distinct + self.rejected

    def _note(self, kind: str, value: object) -> None:
        if kind == "failed":
            raise RuntimeError(str(value))
        if kind == "processed" and isinstance(value, bytes):
            numbers: array[int] = array("l")
            numbers.frombytes(value)
            for number in numbers:
                self._distinct += not self._processed[number]
                self._processed[number] = min(255, self._processed[number] + 1)
        elif isinstance(value, int):
            setattr(self, kind, getattr(self, kind) + value)

    def bury(self, number: int) -> None:
        """Note that a departure's dead letter was found."""
        self._buried[number] = min(255, self._buried[number] + 1)

    @property
    def missing(self) -> int:
        """How many departures were neither processed nor found as a dead letter."""
        pairs = zip(self._processed, self._buried, strict=True)
        return sum(not processed and not buried for processed, buried in pairs)

    def summary(self) -> str:
        """Return the verdict in one line, and the duplicates in another."""
        processed = sum(map(bool, self._processed))
        buried = sum(map(bool, self._buried))
        twice = sum(self._processed) - processed + sum(self._buried) - buried
        return (
            f"{self.total} departures: {processed} processed, {buried} dead-lettered, "
            f"{self.missing} missing\n"
            f"{twice} duplicates; the kill made producers repeat {self.resent} transactions and "
            f"workers {self.redelivered}, and left workers in doubt about {self.in_doubt}"
        )
