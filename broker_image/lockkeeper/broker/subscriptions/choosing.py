"""The selector that a client asks for."""

from lockkeeper.broker.errors import InvalidSelectorError
from lockkeeper.broker.selectors import InvalidSelectorError as BadSelectorError
from lockkeeper.broker.selectors import Selector, compile_selector


def compiled(selector: str | None) -> Selector | None:
    """Return a selector ready for use; None for an empty one. Raises InvalidSelectorError."""
    if not selector or not selector.strip():
        return None
    try:
        return compile_selector(selector)
    except BadSelectorError as error:
        raise InvalidSelectorError(str(error)) from None
