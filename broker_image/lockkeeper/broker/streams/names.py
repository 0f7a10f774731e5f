"""Names of streams and groups: those that RocketMQ's clients may use."""

import re
from typing import Final

from lockkeeper.broker.errors import BrokerError, InvalidDestinationError

NAME_CHARACTERS_MAX: Final = 127
GROUP_CHARACTERS_MAX: Final = 255
_NAME: Final = re.compile(r"[%|a-zA-Z0-9_.-]+")


def check_stream_name(name: str) -> None:
    """Raise InvalidDestinationError for a name that RocketMQ's clients could not use."""
    if not _NAME.fullmatch(name) or len(name) > NAME_CHARACTERS_MAX:
        raise InvalidDestinationError(
            f"{name[:NAME_CHARACTERS_MAX]!r} is no name of a stream: use up to "
            f"{NAME_CHARACTERS_MAX} of the characters a-z A-Z 0-9 % | _ - ."
        )


def check_group_name(name: str) -> None:
    """Raise BrokerError for a name of a group that RocketMQ's clients could not use."""
    if not _NAME.fullmatch(name) or len(name) > GROUP_CHARACTERS_MAX:
        raise BrokerError(
            f"{name[:GROUP_CHARACTERS_MAX]!r} is no name of a group: use up to "
            f"{GROUP_CHARACTERS_MAX} of the characters a-z A-Z 0-9 % | _ - ."
        )
