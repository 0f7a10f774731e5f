"""Fields of JSON values: places are JSONPaths such as `$.items[*].price` (RFC 9535)."""

from typing import Any

from lockkeeper_analytics.shapes.fields import (
    ANY,
    DEPTH_MAX,
    HIDDEN,
    ITEMS,
    NAMES_MAX,
    Fields,
    Place,
    shown_name,
    text_type,
)

ROOT = "$"
AT_ROOT = Place(ROOT, ROOT)


def add_json(fields: Fields, value: Any, place: Place = AT_ROOT, depth: int = 0) -> None:
    """Note *value*, as `json` reads it, and all that is in it."""
    if not fields.add(place.shown, _type_of(value)) or depth >= DEPTH_MAX:
        return
    if isinstance(value, dict):
        is_table = len(value) > NAMES_MAX
        for name, each in value.items():
            below = place.below(f".{ANY if is_table else shown_name(name)}", f".{name}")
            if fields.is_hidden(below):
                fields.add(f"{place.shown}.{HIDDEN}", "hidden")
            else:
                add_json(fields, each, below, depth + 1)
    elif isinstance(value, list):
        items = place.below(ITEMS)
        if fields.is_hidden(items):
            fields.add(f"{place.shown}.{HIDDEN}", "hidden")
        else:
            for each in value:
                add_json(fields, each, items, depth + 1)


def _type_of(value: Any) -> str:
    if isinstance(value, str):
        return text_type(value)
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if value is None:
        return "null"
    return "object" if isinstance(value, dict) else "array"
