"""Back-off: how long to wait before a broker is looked for again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackOff:
    """Exponential delays in seconds; after *attempts* of them in a row it is given up.

    Each delay is made up to *spread* of it longer or shorter, at random.
    """

    initial: float = 0.5
    multiplier: float = 2.0
    maximum: float = 30.0
    attempts: int | None = None
    spread: float = 0.2

    def __post_init__(self) -> None:
        if self.initial < 0 or self.maximum < self.initial or self.multiplier < 1:
            raise ValueError("a back-off needs 0 <= initial <= maximum and a multiplier from 1 on")
        if not 0 <= self.spread < 1:
            raise ValueError(f"the spread of a back-off is 0 up to 1, not {self.spread:g}")

    def delays(self, chance: Callable[[], float]) -> Iterator[float]:
        """Yield the delays of one recovery; *chance* returns random numbers from 0 up to 1."""
        delay, count = self.initial, 0
        while self.attempts is None or count < self.attempts:
            yield delay * (1 + self.spread * (2 * chance() - 1))
            count += 1
            delay = min(delay * self.multiplier, self.maximum)
