"""Errors in the text of a selector."""

SHOWN_CHARACTERS_MAX = 120


class InvalidSelectorError(ValueError):
    """The text is no selector: says at which character, and what was expected there.

    *position* counts characters from 0; the message counts from 1, as people do.
    """

    def __init__(self, text: str, position: int, problem: str) -> None:
        self.text = text
        self.position = position
        self.problem = problem
        super().__init__(f"invalid selector at character {position + 1}: {problem}: {_shown(text)}")


def _shown(text: str) -> str:
    """Return *text* quoted, cut to what fits in a log line."""
    if len(text) <= SHOWN_CHARACTERS_MAX:
        return repr(text)
    return f"{text[:SHOWN_CHARACTERS_MAX]!r} … ({len(text)} characters)"
