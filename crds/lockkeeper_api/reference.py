"""Reference pages, written from the models: field, type, default, meaning."""

from collections.abc import Iterator
from typing import Any

from lockkeeper_api.definitions import broker_definition, destination_definition
from lockkeeper_api.meta import API_VERSION, ApiModel
from lockkeeper_api.schema import Schema, flat_schema

HEADER = "| Field | Type | Default | Meaning |\n|-|-|-|-|"


def reference_page(model: type[ApiModel], sample: str) -> str:
    """Return the Markdown page of a resource; *sample* is the path of an example, seen from it."""
    schema = flat_schema(model)
    lines = [
        f"# {model.__name__}",
        "",
        "<!-- Written by `make crds` from the models in crds/lockkeeper_api. Do not edit. -->",
        "",
        f"{schema['description']} `apiVersion: {API_VERSION}`, `kind: {model.__name__}`,",
        f"for kubectl `{_short_name(model)}`. An example: [{sample}]({sample}).",
        "Sizes are written `512Ki`, `64Mi`, `1Gi` (or as a number of bytes), durations `500ms`,",
        "`30s`, `1h30m`. A field that is not listed here is an error.",
    ]
    metadata = schema["properties"]["metadata"]
    lines += _section("metadata", metadata)
    for path, section in _objects("spec", schema["properties"]["spec"]):
        lines += _section(path, section)
    return "\n".join(lines) + "\n"


def _short_name(model: type[ApiModel]) -> str:
    """Return the short name that kubectl knows *model* by."""
    definitions = (broker_definition(), destination_definition())
    names = {item["spec"]["names"]["kind"]: item["spec"]["names"] for item in definitions}
    return str(names[model.__name__]["shortNames"][0])


def _objects(path: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield *schema* and every object below it with its path."""
    yield path, schema
    for name, inner in schema["properties"].items():
        if "properties" in inner:
            yield from _objects(f"{path}.{name}", inner)
        elif "properties" in inner.get("items", {}):
            yield from _objects(f"{path}.{name}[]", inner["items"])


def _section(path: str, schema: Schema) -> list[str]:
    """Return the lines about one object."""
    required = schema.get("required", ())
    lines = ["", f"## {path}", "", " ".join(schema["description"].split()), "", HEADER]
    for name, inner in schema["properties"].items():
        meaning = " ".join(inner["description"].split())
        default = "required" if name in required else _default(inner)
        lines.append(f"| `{name}` | {_type(inner)} | {default} | {meaning} |")
    return lines


def _default(schema: Schema) -> str:
    """Return a field's default for people."""
    default: Any = schema.get("default", "")
    if isinstance(default, dict):
        return "as below"
    if isinstance(default, list):
        return "as below" if default else "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default}`" if default != "" else ""


def _type(schema: Schema) -> str:
    """Return a field's type for people."""
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = str(schema["type"])
    if kind == "array":
        return "list"
    if "bounds" in schema:
        return f"{kind}, {schema['bounds'][0]} to {schema['bounds'][1]}"
    if "minimum" in schema:
        return f"{kind}, {schema['minimum']} to {schema['maximum']}"
    return kind
