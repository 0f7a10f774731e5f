"""The JMS selector language: text to a compiled predicate over headers and properties.

Comes in: the text of a selector, and a function that looks a name up in a message. Never here:
what a message is, how its properties are stored, or what happens to one that does not match.
"""

from lockkeeper.broker.selectors.errors import InvalidSelectorError
from lockkeeper.broker.selectors.selector import Lookup, Selector, Value, compile_selector

__all__ = ["InvalidSelectorError", "Lookup", "Selector", "Value", "compile_selector"]
