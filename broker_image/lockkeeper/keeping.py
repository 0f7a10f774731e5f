"""Values kept by texts of clients: bounded by their number, and by how long those texts are.

A client chooses its texts: without the second bound a few thousand long ones fill the memory.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Generic, TypeVar

SHORT_CHARACTERS_MAX = 256
"""Texts up to this length are worth keeping: those of people and programs, mostly."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def kept_while_short(count: int) -> Callable[[Callable[[str], V]], Callable[[str], V]]:
    """Decorate a function of a text: what it returned for *count* short texts is kept."""

    def decorate(function: Callable[[str], V]) -> Callable[[str], V]:
        kept = lru_cache(maxsize=count)(function)

        @wraps(function)
        def call(text: str) -> V:
            return kept(text) if len(text) <= SHORT_CHARACTERS_MAX else function(text)

        return call

    return decorate


class Kept(Generic[K, V]):
    """Values by key: up to *count*, whose keys have *characters_max* together.

    One that is full begins anew, and what is too long for it is not kept at all.
    """

    __slots__ = ("_characters", "_characters_max", "_count", "_values")

    def __init__(self, count: int, characters_max: int) -> None:
        self._count = count
        self._characters_max = characters_max
        self._characters = 0
        self._values: dict[K, V] = {}

    def __len__(self) -> int:
        """Return how many values are kept."""
        return len(self._values)

    def find(self, key: K) -> V | None:
        """Return a value, if it is kept."""
        return self._values.get(key)

    def keep(self, key: K, value: V, characters: int) -> V:
        """Keep the value of a new key of so many characters; returns it."""
        if characters > self._characters_max:
            return value
        is_full = len(self._values) >= self._count
        if is_full or self._characters + characters > self._characters_max:
            self._values.clear()
            self._characters = 0
        self._values[key] = value
        self._characters += characters
        return value
