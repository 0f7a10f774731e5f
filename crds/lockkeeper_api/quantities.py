"""Sizes and durations with units, as Kubernetes writes them: `64Mi`, `1Gi`, `500ms`, `1h30m`.

In Python a size is an int of bytes and a duration a timedelta; on the wire both are text (a size
may also be a plain number of bytes).
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic_core import core_schema

from lockkeeper_api.units import format_duration, format_size, parse_duration, parse_size


class Bounds:
    """The bounds of a size or duration, both included, in the field's own units.

    In the JSON schema they are the pair `bounds`, which the CRD turns into a rule.
    """

    def __init__(self, parse: Callable[[object], Any], least: str, most: str) -> None:
        self._texts = [least, most]
        self._least, self._most = parse(least), parse(most)

    def _check(self, value: Any) -> Any:
        if not self._least <= value <= self._most:
            raise ValueError("expected {} to {}".format(*self._texts))
        return value

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "bounds": self._texts}


def sizes(least: str, most: str) -> Bounds:
    """Return the bounds of a Size."""
    return Bounds(parse_size, least, most)


def durations(least: str, most: str) -> Bounds:
    """Return the bounds of a Duration."""
    return Bounds(parse_duration, least, most)


Size = Annotated[
    int,
    BeforeValidator(parse_size),
    PlainSerializer(format_size, when_used="json"),
    WithJsonSchema({"type": "size"}),
]
"""Bytes; the pseudo type `size` becomes an int-or-string in the CRD."""

Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, when_used="json"),
    WithJsonSchema({"type": "duration"}),
]
"""A time span; the pseudo type `duration` becomes a string with a pattern in the CRD."""
