"""Reference pages, written from the models: field, type, default, meaning."""

from collections.abc import Iterator
from typing import Any

from lockkeeper_api.activemq_names import activemq_name
from lockkeeper_api.broker import Broker, BrokerSpec
from lockkeeper_api.changes import LIVE, OPERATOR, paths
from lockkeeper_api.definitions import all_definitions
from lockkeeper_api.meta import API_VERSION, ApiModel
from lockkeeper_api.policy import DestinationPolicy
from lockkeeper_api.schema import Schema, flat_schema

NOTE = "<!-- Written by `make crds` from the models in crds/lockkeeper_api. Do not edit. -->"
OPERATION = (
    *("replicas", "listeners", "admin", "journal", "locker"),
    "destinationPolicies",
    *("storage", "access", "image", "resources", "pods", "security", "disruptionBudget"),
    *("monitoring", "update", "paused", "hibernated"),
    *("allowedDestinations", "allowedNetworks", "analytics"),
)
"""What of a Broker's spec says how it runs, not how it behaves."""
HEADER = "| Field | Type | Default | Meaning |\n|-|-|-|-|"


def reference_page(model: type[ApiModel], sample: str) -> str:
    """Return the Markdown page of a resource; *sample* is the path of an example, seen from it."""
    schema = flat_schema(model)
    lines = [
        f"# {model.__name__}",
        "",
        NOTE,
        "",
        f"{schema['description']} `apiVersion: {API_VERSION}`, `kind: {model.__name__}`,",
        f"for kubectl `{_short_name(model)}`. An example: [{sample}]({sample}).",
        "Sizes are written `512Ki`, `64Mi`, `1Gi` (or as a number of bytes), durations `500ms`,",
        "`30s`, `1h30m`. A field that is not listed here is an error. What begins with *Cluster:*",
        "is for the operator; `lockkeeper up` passes it over.",
    ]
    if model is Broker:
        lines += _changes()
    metadata = schema["properties"]["metadata"]
    lines += _section("metadata", metadata)
    for path, section in _objects("spec", schema["properties"]["spec"]):
        lines += _section(path, section)
    return "\n".join(lines) + "\n"


def _changes() -> list[str]:
    """Return the lines about what may change while a Broker's pods run."""
    taken_over, carried_out = (
        ", ".join(f"`{path}`" for path in paths(BrokerSpec, change)) for change in (LIVE, OPERATOR)
    )
    return [
        "",
        "## Changes of a running Broker",
        "",
        f"Brokers take over changes of {taken_over} while they run.",
        "",
        f"The operator carries out changes of {carried_out}, and no pod starts anew.",
        "",
        "Every other change of `spec` starts the pods anew, the master last (`spec.update`).",
        "",
        "Paths are within `spec`.",
    ]


def policies_page() -> str:
    """Return the Markdown page with every setting that changes what applications see."""
    lines = [
        "# Policies and ActiveMQ's names for them",
        "",
        NOTE,
        "",
        "What changes the behaviour that applications see, with its default, and where ActiveMQ's",
        "configuration has it. A name that ActiveMQ does not have is `(none)`.",
        "",
        "## Of destinations",
        "",
        "In `spec.destinationPolicies[]` of a [Broker](broker.md), by name or wildcard, or in",
        "`spec.policy` of a [Destination](destination.md).",
        *_settings(_of_destinations()),
        "",
        "## Of the broker",
        "",
        "In `spec` of a [Broker](broker.md).",
        *_settings(_of_the_broker()),
    ]
    return "\n".join(lines) + "\n"


def _settings(properties: dict[str, Schema]) -> list[str]:
    lines = ["", "| Name | Default | Meaning | In ActiveMQ |", "|-|-|-|-|"]
    for path, schema in _leaves(properties):
        meaning = " ".join(schema["description"].split())
        known_as = activemq_name(path)
        lines.append(f"| `{path}` | {_default(schema)} | {meaning} | {known_as} |")
    return lines


def setting_paths() -> set[str]:
    """Return the path of every setting on that page."""
    return {path for part in (_of_destinations(), _of_the_broker()) for path, _ in _leaves(part)}


def _of_destinations() -> dict[str, Schema]:
    properties: dict[str, Schema] = flat_schema(DestinationPolicy)["properties"]
    return properties


def _of_the_broker() -> dict[str, Schema]:
    spec = flat_schema(Broker)["properties"]["spec"]["properties"]
    return {name: spec[name] for name in spec if name not in OPERATION}


def _leaves(properties: dict[str, Schema], path: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield every setting with its path, those within a setting after it."""
    for name, schema in properties.items():
        yield path + name, schema
        inner = schema if "properties" in schema else schema.get("items", {})
        yield from _leaves(inner.get("properties", {}), f"{path}{name}.")


def _short_name(model: type[ApiModel]) -> str:
    """Return the short name that kubectl knows *model* by."""
    return str(all_definitions()[model.__name__]["spec"]["names"]["shortNames"][0])


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
        return "as below" if "properties" in schema else "none"
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
