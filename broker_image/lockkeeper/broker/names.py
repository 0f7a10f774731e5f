"""Limits of names: those of destinations, and the length of any text of the wire."""

from typing import Final

from lockkeeper.broker.errors import BrokerError, InvalidDestinationError
from lockkeeper.message.destination import COMPOSITE_SEPARATOR, PATH_SEPARATOR, Destination

PARTS_MAX: Final = 100
LEVELS_MAX: Final = 100
SHOWN_CHARACTERS: Final = 60


def check_name(destination: Destination) -> None:
    """Raise InvalidDestinationError for a name with too many parts or levels, or an empty part."""
    name = destination.name
    if name.count(COMPOSITE_SEPARATOR) >= PARTS_MAX:
        raise InvalidDestinationError(
            f"{name[:SHOWN_CHARACTERS]}… lists more than {PARTS_MAX} destinations"
        )
    if name.count(PATH_SEPARATOR) < LEVELS_MAX and COMPOSITE_SEPARATOR not in name:
        return
    try:
        parts = destination.parts()
    except ValueError as error:
        raise InvalidDestinationError(str(error)) from error
    for part in parts:
        if part.name.count(PATH_SEPARATOR) >= LEVELS_MAX:
            raise InvalidDestinationError(
                f"{part.name[:SHOWN_CHARACTERS]}… has more than {LEVELS_MAX} levels"
            )


def check_text(text: str) -> None:
    """Raise BrokerError for half of a character, which Java's texts may have and no file can."""
    if not text.isascii() and any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        raise BrokerError(f"{text[:SHOWN_CHARACTERS]!a} holds half of a character")
