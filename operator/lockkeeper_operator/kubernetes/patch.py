"""Laying one JSON value over another."""

from typing import Any


def patched(value: Any, patch: Any) -> Any:
    """Return *value* with *patch* laid over it; neither is changed.

    Mappings are merged, and null takes a key away (RFC 7386). Lists whose items all have a name,
    as containers and volumes do, are merged by it; other lists are replaced.
    """
    if isinstance(value, dict) and isinstance(patch, dict):
        return _merged(value, patch)
    if _is_named(value) and _is_named(patch):
        own = {item["name"]: item for item in value}
        over = {item["name"]: item for item in patch}
        return list(_merged(own, over).values())
    return patch


def _merged(value: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = dict(value)
    for key, over in patch.items():
        if over is None:
            result.pop(key, None)
        else:
            result[key] = patched(result[key], over) if key in result else over
    return result


def _is_named(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) and "name" in item for item in value)
    )
