"""Time zones by their names in the IANA data base."""

from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field


def check_zone(name: str) -> str:
    """Return *name* if it is a time zone; ValueError otherwise."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(f"{name!r} is no time zone such as Europe/Berlin") from None
    return name


TimeZone = Annotated[str, Field(max_length=64), AfterValidator(check_zone)]
"""A time zone such as Europe/Berlin."""
