"""The course of one seed, with a pair or with a network: it begins, has rounds, and ends."""

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulation.hub import StalledError
from simulation.install import World


@dataclass(frozen=True)
class Options:
    """What of a seed is carried out: for shrinking a failure."""

    rounds: int | None = None
    skipped: frozenset[int] = frozenset()
    silenced: frozenset[str] = frozenset()
    keep: Path | None = None
    """Where to leave the directory, and what must be in it, instead of consuming everything."""

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Options":
        """Return what a command line says."""
        return cls(
            values.get("rounds"),
            frozenset(values.get("skipped", ())),
            frozenset(values.get("silenced", ())),
            Path(values["keep"]) if "keep" in values else None,
        )


class Course(ABC):
    """One run of one seed; `books` has what clients were told, and what was wrong with it."""

    books: Any

    def __init__(self, chance: str, seed: int, root: Path, options: Options) -> None:
        """Draw everything from *chance*, and let *root* be the world's disk."""
        self.seed = seed
        self.options = options
        self.chance = random.Random(chance)
        (root / "disk").mkdir()
        self.world = World(seed, root / "disk")
        self.planned = self.rounds = 0

    def run(self) -> list[str]:
        """Return what went wrong."""
        problems = self.world.hub.problems
        try:
            self._begin()
            drawn = self.chance.randint(1, 3)
            self.rounds = self.options.rounds or drawn
            for number in range(self.rounds):
                self._round(number)
                if problems or self.books.problems:
                    break
            else:
                self._end()
        except (AssertionError, StalledError) as error:
            self.world.hub.problem(f"{type(error).__name__}: {error}", error)
        return [*problems, *self.books.problems[:5]]

    @abstractmethod
    def _begin(self) -> None:
        """Start the brokers."""

    @abstractmethod
    def _round(self, number: int) -> None:
        """Let clients work while things go wrong, and see that all of it ends well."""

    @abstractmethod
    def _end(self) -> None:
        """Do everything that is left to do, and see what came of it."""
