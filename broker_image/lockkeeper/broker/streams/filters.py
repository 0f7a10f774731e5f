"""Filters of subscriptions: tags by their hash, SQL-92 on properties."""

from typing import Protocol

from lockkeeper.broker.selectors import InvalidSelectorError, Selector, compile_selector
from lockkeeper.broker.streams.drafts import read_draft, tag_hash_of
from lockkeeper.broker.streams.errors import InvalidFilterError
from lockkeeper.message.errors import MalformedMessageError

TAGS_MAX = 1_000
_CONVERTING = "convert_string_expressions:"


class Filter(Protocol):
    """Chooses messages of a stream."""

    def accepts_hash(self, tag_hash: int) -> bool:
        """Tell whether a message with a tag of this hash may be meant: it is read then."""

    def accepts_frame(self, frame: bytes) -> bool:
        """Tell whether a message that was read is meant."""


class Everything:
    """All messages."""

    def accepts_hash(self, tag_hash: int) -> bool:
        """Return True."""
        return True

    def accepts_frame(self, frame: bytes) -> bool:
        """Return True."""
        return True


EVERYTHING = Everything()


class TagFilter:
    """Messages with one of several tags, by hash: two tags may share one, so clients look again."""

    def __init__(self, hashes: frozenset[int]) -> None:
        self._hashes = hashes

    def accepts_hash(self, tag_hash: int) -> bool:
        """See `Filter.accepts_hash`."""
        return tag_hash in self._hashes

    def accepts_frame(self, frame: bytes) -> bool:
        """Return True: the hash has told all."""
        return True


class PropertyFilter:
    """Messages whose properties fulfil an SQL-92 condition; texts that are numbers are numbers."""

    def __init__(self, selector: Selector) -> None:
        self._selector = selector

    def accepts_hash(self, tag_hash: int) -> bool:
        """Return True: the properties have to be read."""
        return True

    def accepts_frame(self, frame: bytes) -> bool:
        """See `Filter.accepts_frame`; a message that cannot be read is not meant."""
        try:
            properties = read_draft(frame).properties
        except MalformedMessageError:
            return False
        return self._selector.matches(properties.get)


def tags_filter(expression: str) -> Filter:
    """Return the filter of `a || b`; `*` and nothing are all messages. Raises InvalidFilterError.

    The hash of each tag is what is compared.
    """
    tags = [tag.strip() for tag in expression.split("||")]
    if expression.strip() in ("", "*"):
        return EVERYTHING
    if len(tags) > TAGS_MAX:
        raise InvalidFilterError(f"the subscription has more than {TAGS_MAX} tags; use fewer")
    return TagFilter(frozenset(tag_hash_of(tag) for tag in tags if tag))


def sql_filter(condition: str) -> Filter:
    """Return the filter of an SQL-92 condition on properties. Raises InvalidFilterError."""
    try:
        return PropertyFilter(compile_selector(_CONVERTING + condition))
    except InvalidSelectorError as error:
        raise InvalidFilterError(str(error)) from error
