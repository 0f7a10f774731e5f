"""Limits on what a producer sends."""

from collections.abc import Sequence
from typing import Final

from lockkeeper.broker.streams.drafts import RESERVED, Draft
from lockkeeper.broker.streams.errors import IllegalMessageError
from lockkeeper.broker.streams.settings import StreamLimits

PROPERTIES_CHARACTERS_MAX: Final = 32_767
"""Names and values of a message's properties, as RocketMQ's messages have room for."""


def check_drafts(drafts: Sequence[Draft], limits: StreamLimits) -> None:
    """Raise IllegalMessageError for a batch without messages, or with one that cannot be kept."""
    if not drafts:
        raise IllegalMessageError("a batch without messages")
    for draft in drafts:
        if len(draft.body) > limits.message_bytes:
            raise IllegalMessageError(
                f"the body has {len(draft.body)} bytes, more than {limits.message_bytes} "
                "(streams.limits.messageBytes)"
            )
        for name in RESERVED:
            if name in draft.properties:
                raise IllegalMessageError(f"the property {name} is the broker's own")
        size = sum(len(name) + len(value) for name, value in draft.properties.items())
        if size > PROPERTIES_CHARACTERS_MAX:
            raise IllegalMessageError(
                f"the properties have {size} characters, more than {PROPERTIES_CHARACTERS_MAX}"
            )
