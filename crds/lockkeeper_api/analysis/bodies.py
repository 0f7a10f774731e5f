"""Insight into the bodies of messages: what is sampled, and what is hidden."""

from typing import Annotated

from pydantic import Field

from lockkeeper_api.meta import ApiModel

MASKS_MAX = 64
Mask = Annotated[str, Field(max_length=256, pattern=r"^[^-,\s][^,\s]*$")]
"""Places of fields in bodies, with wildcards, such as `$.customer.*` or `*password*`."""


class Bodies(ApiModel):
    """Report on the fields that bodies of messages have: names and types of a sample, no values."""

    masks: list[Mask] = Field(default=[], max_length=MASKS_MAX)
    """Fields to hide, with all that is below them: JSONPaths or XPaths with `*` for any text, such
    as `$.customer.*` or `*password*`."""
