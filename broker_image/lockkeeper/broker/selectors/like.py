"""LIKE patterns, matched in a time that grows with the value's length, whatever the pattern.

`%` stands for any characters, `_` for one, and the escape character takes the meaning from either
or from itself; before anything else it stands for itself, as in ActiveMQ.
"""

import re
from collections.abc import Callable
from typing import Final

from lockkeeper.broker.selectors.places import places_in

PATTERN_CHARACTERS_MAX = 1024
# So many characters are compared at most, a segment at each place of a value. What is left is
# looked at in pieces of so many places, all places of a piece at once.
_COMPARED_MAX: Final = 1 << 17
_PIECE: Final = 1 << 16
# To find out where a character stands in a piece takes as long as comparing so many characters.
_LOOKING_COMPARES: Final = 1 << 15

Token = str | None
"""A character of a pattern; None is any one."""


def compile_like(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """Return a function that tells whether a whole string is like *pattern*."""
    first, *others = map(Segment, _segments(pattern, escape))
    if not others:
        return lambda text: len(text) == first.length and first.is_at(text, 0)
    *inner, last = others

    def matches(text: str) -> bool:
        # Each segment between two % is taken at its first place and never moved again: that is
        # always as good as any later place.
        if not first.is_at(text, 0):
            return False
        position = first.length
        for segment in inner:
            found = segment.find(text, position)
            if found < 0:
                return False
            position = found + segment.length
        end = len(text) - last.length
        return end >= position and last.is_at(text, end)

    return matches


def searches(pattern: str, escape: str | None) -> bool:
    """Tell whether *pattern* looks everywhere in a string for what has letters and `_` in it."""
    return any(None in each and any(each) for each in _segments(pattern, escape)[1:-1])


class Segment:
    """Characters between two `%` of a pattern, some of them any."""

    def __init__(self, tokens: list[Token]) -> None:
        self.length = len(tokens)
        expression = "".join("." if each is None else re.escape(each) for each in tokens)
        self._compiled = re.compile(expression, re.DOTALL)
        self._literal = "".join(each for each in tokens if each is not None)
        positions: dict[str, list[int]] = {}
        for at, token in enumerate(tokens):
            if token is not None:
                positions.setdefault(token, []).append(at)
        self._by_count = sorted(positions.items(), key=lambda entry: -len(entry[1]))

    def is_at(self, text: str, position: int) -> bool:
        """Tell whether *text* has the segment at *position*."""
        return self._compiled.match(text, position) is not None

    def find(self, text: str, start: int) -> int:
        """Return the first place from *start* on where *text* has the segment, -1 for none."""
        literal = self._literal
        if len(literal) == self.length:
            return text.find(literal, start)
        if not literal:
            return start if start + self.length <= len(text) else -1
        compared = min(len(text) - start, _COMPARED_MAX // self.length)
        found = self._compiled.search(text, start, start + compared + self.length)
        if found is not None:
            return found.start()
        for at in range(start + compared, len(text) - self.length + 1, _PIECE):
            place = self._find_in(text[at : at + _PIECE + self.length - 1])
            if place >= 0:
                return at + place
        return -1

    def _find_in(self, piece: str) -> int:
        """Do what `find` does, at all places of a piece at once.

        Each character that was looked for leaves fewer places. Once the whole segment is compared
        at those as quickly as they were found, that is done: of N places, k different characters
        leave N / k at most, so neither part takes long, whatever the segment and the piece.
        """
        fitting = (1 << (len(piece) - self.length + 1)) - 1
        places = places_in(piece)
        for looked_for, (character, positions) in enumerate(self._by_count):
            if fitting.bit_count() * self.length <= looked_for * _LOOKING_COMPARES:
                break
            of_character = places(character)
            for position in positions:
                fitting &= of_character >> position
                if not fitting:
                    return -1
        marks = f"{fitting:b}"[::-1]
        place = marks.find("1")
        while place >= 0 and not self.is_at(piece, place):
            place = marks.find("1", place + 1)
        return place


def _segments(pattern: str, escape: str | None) -> list[list[Token]]:
    """Return what stands between the `%` of *pattern*."""
    segments: list[list[Token]] = [[]]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        following = pattern[position + 1 : position + 2]
        if character == escape and following and following in ("_", "%", escape):
            segments[-1].append(following)
            position += 1
        elif character == "%":
            segments.append([])
        else:
            segments[-1].append(None if character == "_" else character)
        position += 1
    return segments
