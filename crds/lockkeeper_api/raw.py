"""Parts of a resource that Kubernetes itself defines, kept as they are written."""

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from lockkeeper_api.meta import LABEL_PATTERN

KEYS_MAX = 64
_STRINGS = {"type": "object", "maxProperties": KEYS_MAX, "additionalProperties": {"type": "string"}}

Raw = Annotated[
    dict[str, Any],
    WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
]
"""An object of Kubernetes' own API. It is not looked into: the API server checks it when the
operator applies what is made of it, and the Broker's conditions tell what it said."""

Strings = Annotated[dict[str, str], Field(max_length=KEYS_MAX), WithJsonSchema(_STRINGS)]
"""Labels, annotations and the like."""

ObjectName = Annotated[str, Field(min_length=1, max_length=63, pattern=LABEL_PATTERN)]
"""Name of a Secret, a claim or the like in the same namespace."""
