"""Parts of a resource that Kubernetes itself defines, kept as they are written."""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, Field, WithJsonSchema

from lockkeeper_api.meta import LABEL_PATTERN

KEYS_MAX = 64
LEVELS_MAX = 64
"""Far more than any object of Kubernetes has."""
_STRINGS = {"type": "object", "maxProperties": KEYS_MAX, "additionalProperties": {"type": "string"}}


def _shallow(value: dict[str, Any]) -> dict[str, Any]:
    """Return *value* unless it is nested too deep; ValueError otherwise."""
    level: list[Any] = [value]
    for _ in range(LEVELS_MAX):
        level = [inner for each in level for inner in _within(each)]
        if not level:
            return value
    raise ValueError(f"expected at most {LEVELS_MAX} levels of mappings and lists")


def _within(value: Any) -> Iterable[Any]:
    """Return the mappings and lists in *value*."""
    inner = value.values() if isinstance(value, dict) else value
    return [each for each in inner if isinstance(each, dict | list)]


Raw = Annotated[
    dict[str, Any],
    AfterValidator(_shallow),
    WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
]
"""An object of Kubernetes' own API. It is not looked into: the API server checks it when the
operator applies what is made of it, and the Broker's conditions tell what it said."""

Strings = Annotated[dict[str, str], Field(max_length=KEYS_MAX), WithJsonSchema(_STRINGS)]
"""Labels, annotations and the like."""

ObjectName = Annotated[str, Field(min_length=1, max_length=63, pattern=LABEL_PATTERN)]
"""Name of a Secret, a claim or the like in the same namespace."""
