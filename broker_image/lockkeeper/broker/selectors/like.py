"""LIKE patterns to regular expressions that cannot backtrack.

`%` stands for any characters, `_` for one, and the escape character takes the meaning from either
or from itself; before anything else it stands for itself, as in ActiveMQ.
"""

import re
from collections.abc import Callable

PATTERN_CHARACTERS_MAX = 1024
"""Length of a pattern: the time to match is at most this times the length of the value."""


def compile_like(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """Return a function that tells whether a whole string is like *pattern*."""
    segments = _segments(pattern, escape)
    if len(segments) == 1:
        expression = segments[0]
    else:
        # Each segment between two % is taken at its first place and never moved again: that is
        # always as good as any later place, and keeps the time linear in the value's length.
        inner = "".join(f"(?>.*?{segment})" for segment in segments[1:-1] if segment)
        expression = f"{segments[0]}{inner}.*{segments[-1]}"
    compiled = re.compile(expression, re.DOTALL)
    return lambda text: compiled.fullmatch(text) is not None


def _segments(pattern: str, escape: str | None) -> list[str]:
    """Return the regular expressions of what stands between the `%` of *pattern*."""
    segments = [""]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        following = pattern[position + 1 : position + 2]
        if character == escape and following and following in ("_", "%", escape):
            segments[-1] += re.escape(following)
            position += 1
        elif character == "%":
            segments.append("")
        else:
            segments[-1] += "." if character == "_" else re.escape(character)
        position += 1
    return segments
