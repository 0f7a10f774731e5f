"""Names of streams: those that RocketMQ's clients may use."""

import re
from typing import Final

from lockkeeper.broker.errors import InvalidDestinationError

NAME_CHARACTERS_MAX: Final = 127
_NAME: Final = re.compile(r"[%|a-zA-Z0-9_.-]+")


def check_stream_name(name: str) -> None:
    """Raise InvalidDestinationError for a name that RocketMQ's clients could not use."""
    if not _NAME.fullmatch(name) or len(name) > NAME_CHARACTERS_MAX:
        raise InvalidDestinationError(
            f"{name[:NAME_CHARACTERS_MAX]!r} is no name of a stream: use up to "
            f"{NAME_CHARACTERS_MAX} of the characters a-z A-Z 0-9 % | _ - ."
        )
