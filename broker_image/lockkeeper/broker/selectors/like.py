"""LIKE patterns, matched in a time that grows with the value's length, whatever the pattern.

`%` stands for any characters, `_` for one, and the escape character takes the meaning from either
or from itself; before anything else it stands for itself, as in ActiveMQ.
"""

import re
from collections.abc import Callable
from typing import Final

PATTERN_CHARACTERS_MAX = 1024
# A longer segment is not compared at each place of a value: every character is read once.
_COMPARED_MAX: Final = 128

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


class Segment:
    """Characters between two `%` of a pattern, some of them any."""

    def __init__(self, tokens: list[Token]) -> None:
        self.length = len(tokens)
        self._tokens = tokens
        expression = "".join("." if each is None else re.escape(each) for each in tokens)
        self._compiled = re.compile(expression, re.DOTALL)
        self._literal = "".join(each for each in tokens if each is not None)

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
        if self.length > _COMPARED_MAX:
            return self._read(text, start)
        found = self._compiled.search(text, start)
        return -1 if found is None else found.start()

    def _read(self, text: str, start: int) -> int:
        """Do what `find` does, one character after the other, at all places at once.

        A bit of `state` tells that as many tokens as its number fit what was read last.
        """
        anything = sum(1 << at for at, token in enumerate(self._tokens) if token is None)
        fitting: dict[str, int] = {}
        for at, token in enumerate(self._tokens):
            if token is not None:
                fitting[token] = fitting.get(token, anything) | 1 << at
        state, whole = 0, 1 << (self.length - 1)
        for at in range(start, len(text)):
            state = (state << 1 | 1) & fitting.get(text[at], anything)
            if state & whole:
                return at - self.length + 1
        return -1


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
