"""Models to JSON schema without references, and from there to Kubernetes' structural schema."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pydantic import BaseModel, TypeAdapter

from lockkeeper_api.units import (
    DURATION_PATTERN,
    SIZE_PATTERN,
    format_duration,
    format_size,
    parse_size,
)

Schema = dict[str, Any]
UNIT_CHARACTERS_MAX = 32
"""Length of a size or duration as text."""

CLUSTER = "Cluster: "
"""What the description of a field begins with that only the operator honours."""

_ISO_DURATION = TypeAdapter(timedelta)
_TEXTS: dict[str, Callable[[Any], str]] = {
    "size": format_size,
    "duration": lambda default: format_duration(_ISO_DURATION.validate_python(default)),
}
"""How defaults are written on the wire; pydantic's schema has bytes and ISO 8601 instead."""


def flat_schema(model: type[BaseModel]) -> Schema:
    """Return the JSON schema of *model* with every reference replaced by what it refers to.

    Sizes and durations keep their pseudo types; what may be absent is just not required.
    """
    schema = model.model_json_schema(by_alias=True)
    return _flat(schema, schema.get("$defs", {}))


def _flat(schema: Schema, definitions: Schema) -> Schema:
    """Return *schema* without $ref, without null alternatives, without titles."""
    result = dict(schema)
    if "anyOf" in result:
        alternatives = result.pop("anyOf")
        (only,) = [option for option in alternatives if option.get("type") != "null"]
        result = only | result
    if "$ref" in result:
        result = definitions[result.pop("$ref").rpartition("/")[2]] | result
    for ignored in ("$defs", "title"):
        result.pop(ignored, None)
    if isinstance(result.get("additionalProperties"), bool):
        del result["additionalProperties"]
    if result.get("default", ...) is None:
        del result["default"]
    if "default" in result:
        result["default"] = _default_text(result["default"], result)
    if "const" in result:
        result["enum"] = [result.pop("const")]
    if "properties" in result:
        result["properties"] = {
            name: _flat(inner, definitions) for name, inner in result["properties"].items()
        }
    if "items" in result:
        result["items"] = _flat(result["items"], definitions)
        if "default" in result:
            found = [_default_text(each, result["items"]) for each in result["default"]]
            result["default"] = found
    return result


def _default_text(default: Any, schema: Schema) -> Any:
    """Return a default as it is written on the wire."""
    written = _TEXTS.get(schema.get("type", ""))
    return default if written is None else written(default)


def structural_schema(schema: Schema, in_list: bool = False) -> Schema:
    """Return a flat schema as CustomResourceDefinitions want it.

    A size may be a number or text of any length, so that a rule about it is dear; *in_list*,
    where the API server multiplies the cost, there is none, and the operator checks it instead.
    """
    result = dict(schema)
    if "description" in result:
        result["description"] = _description(result["description"])
    bounds = result.pop("bounds", None)
    if result.get("type") == "size":
        result = _size(result, None if in_list else bounds)
    elif result.get("type") == "duration":
        result = _duration(result, bounds)
    if "properties" in result:
        result["properties"] = {
            name: structural_schema(inner, in_list) for name, inner in result["properties"].items()
        }
    if "items" in result:
        result["items"] = structural_schema(result["items"], in_list=True)
    if "default" in result:
        result["default"] = _default(result)
    return result


def _description(text: str) -> str:
    """Return a description as one line; that a field is for clusters goes without saying."""
    line = " ".join(text.split())
    if not line.startswith(CLUSTER):
        return line
    rest = line.removeprefix(CLUSTER)
    return rest[0].upper() + rest[1:]


def _size(schema: Schema, bounds: list[str] | None) -> Schema:
    """Return the structural form of a size: a number of bytes, or text with a unit."""
    result = {name: value for name, value in schema.items() if name != "type"}
    result["x-kubernetes-int-or-string"] = True
    result["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    result["pattern"] = SIZE_PATTERN
    result["maxLength"] = UNIT_CHARACTERS_MAX
    if bounds:
        least, most = bounds
        text = (
            f"quantity(self).compareTo(quantity('{least}')) >= 0 && "
            f"quantity(self).compareTo(quantity('{most}')) <= 0"
        )
        numbers = f"self >= {parse_size(least)} && self <= {parse_size(most)}"
        rule = f"type(self) == int ? {numbers} : {text}"
        own = result.get("x-kubernetes-validations", [])
        result["x-kubernetes-validations"] = [_rule(rule, bounds), *own]
    return result


def _duration(schema: Schema, bounds: list[str] | None) -> Schema:
    """Return the structural form of a duration: text with a unit."""
    result = schema | {
        "type": "string",
        "pattern": DURATION_PATTERN,
        "maxLength": UNIT_CHARACTERS_MAX,
    }
    if bounds:
        least, most = bounds
        rule = f"duration(self) >= duration('{least}') && duration(self) <= duration('{most}')"
        result["x-kubernetes-validations"] = [_rule(rule, bounds)]
    return result


def _rule(rule: str, bounds: list[str]) -> Schema:
    """Return a CEL rule that complains with the bounds."""
    return {"rule": rule, "message": f"expected {bounds[0]} to {bounds[1]}"}


def _default(schema: Schema) -> Any:
    """Return the default of a field.

    The API server itself fills in the defaults inside an object. But it checks the default of a
    list, and that of an object with rules, as it stands, so these are written in full.
    """
    default = schema["default"]
    if not isinstance(default, dict):
        return _without_nulls(default)
    if "x-kubernetes-validations" not in schema:
        return {}
    inner = schema["properties"].items()
    return {name: each["default"] for name, each in inner if "default" in each}


def _without_nulls(value: Any) -> Any:
    """Return *value* without the fields that are absent."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value
