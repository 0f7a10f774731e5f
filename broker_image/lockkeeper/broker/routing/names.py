"""Rules for the name of one destination."""

import unicodedata

from lockkeeper.broker.errors import InvalidDestinationError
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.message.destination import Destination
from lockkeeper.message.segments import SEGMENT_PREFIX

NAME_CHARACTERS_MAX = 4096
# Control characters, and halves of characters, which no file and no log can hold.
_REFUSED = ("Cc", "Cs")


def is_own(destination: Destination) -> bool:
    """Tell whether the broker keeps a destination for itself: no wildcard stands for it."""
    return destination.name.startswith(SEGMENT_PREFIX) or destination == JOBS


def check_name(destination: Destination, may_be_wildcard: bool = False) -> None:
    """Make sure that a client may have this destination. Raises InvalidDestinationError.

    Lists name several, and so do wildcards, as a rule. Options are part of what a client reads,
    never of a name.
    """
    name = destination.name
    if not name or len(name) > NAME_CHARACTERS_MAX:
        raise InvalidDestinationError(
            f"a destination's name has 1 to {NAME_CHARACTERS_MAX} characters, not {len(name)}"
        )
    if destination.is_composite:
        raise InvalidDestinationError(f"{destination} names several destinations, not one")
    if destination.is_pattern and not may_be_wildcard:
        raise InvalidDestinationError(f"a wildcard names no single destination: {destination}")
    if name.startswith(SEGMENT_PREFIX):
        raise InvalidDestinationError(
            f"{destination} is the broker's own: it holds messages of streams; name the stream"
        )
    if "?" in name:
        raise InvalidDestinationError(
            f"options are for the client to read, they cannot be part of a name: {destination}"
        )
    if name != name.strip():
        raise InvalidDestinationError(f"there is white space around the name of {destination}")
    for character in name:
        if unicodedata.category(character) in _REFUSED:
            raise InvalidDestinationError(
                f"the name {name!r} holds the character {character!a}, which no name may"
            )
