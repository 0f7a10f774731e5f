"""Compiled selectors, kept by their text."""

from functools import lru_cache

from lockkeeper.broker.selectors.errors import InvalidSelectorError
from lockkeeper.broker.selectors.parser import Parser
from lockkeeper.broker.selectors.values import Evaluate, Lookup, MismatchError, Value

__all__ = ["Lookup", "Selector", "Value", "compile_selector"]

TEXT_CHARACTERS_MAX = 65_536
KEPT_CHARACTERS_MAX = 256
"""Length of a selector's text."""

CONVERT_PREFIX = "convert_string_expressions:"
"""Before a selector: compare strings with numbers by reading the string (ActiveMQ's own)."""


class Selector:
    """A predicate over the headers and properties of a message."""

    __slots__ = ("_evaluate", "identifiers", "text")

    def __init__(self, text: str, evaluate: Evaluate, identifiers: frozenset[str]) -> None:
        self.text = text
        self.identifiers = identifiers
        self._evaluate = evaluate

    def matches(self, lookup: Lookup) -> bool:
        """Tell whether the message matches; unknown counts as no, and so does 'a' - 1.

        *lookup* returns the value of a header (`JMSPriority`, `JMSXGroupID`; JMSDeliveryMode is
        'PERSISTENT' or 'NON_PERSISTENT') or property by its name, None when there is none.
        """
        try:
            return self._evaluate(lookup) is True
        except MismatchError:
            return False

    def __repr__(self) -> str:
        """Return the selector's text, for logs."""
        return f"Selector({self.text!r})"


def compile_selector(text: str) -> Selector:
    """Return the compiled selector; blank text matches every message.

    Raises InvalidSelectorError with the position and what was expected there.
    """
    # A long one takes a hundred times its length: those of clients long gone would fill the memory.
    return _kept(text) if len(text) <= KEPT_CHARACTERS_MAX else _compiled(text)


@lru_cache(maxsize=1024)
def _kept(text: str) -> Selector:
    return _compiled(text)


def _compiled(text: str) -> Selector:
    if len(text) > TEXT_CHARACTERS_MAX:
        problem = f"longer than {TEXT_CHARACTERS_MAX} characters ({len(text)})"
        raise InvalidSelectorError(text, TEXT_CHARACTERS_MAX, problem)
    if not text.strip():
        return Selector(text, lambda _lookup: True, frozenset())
    convert = text.startswith(CONVERT_PREFIX)
    parser = Parser(text.removeprefix(CONVERT_PREFIX), convert)
    part = parser.parse()
    return Selector(text, part.evaluate, frozenset(parser.identifiers))
