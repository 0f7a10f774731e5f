"""Field owners of an object, as the API server keeps them."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from lockkeeper_operator.kubernetes.api.errors import ApiError
from lockkeeper_operator.kubernetes.children.comparing import Path
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import FIELD_MANAGER

FIELD_CONFLICT = "FieldManagerConflict"
_MANAGER = re.compile(r'conflict with "([^"]*)"( with subresource "[^"]*")?(.*)', re.DOTALL)


def appliers_of(manifest: Manifest, paths: Iterable[Path]) -> str:
    """Return who else applied what is at *paths*, with where it is; empty for nobody.

    Who applied a field declares it, and will again. Who only updated it, by hand or in passing,
    made a drift.
    """
    found = []
    for entry in manifest["metadata"].get("managedFields", ()):
        if entry.get("operation") != "Apply" or entry.get("manager") == FIELD_MANAGER:
            continue
        for path in sorted(paths, key=str):
            if _owns(entry.get("fieldsV1", {}), manifest, path):
                found.append(f"{entry['manager']} ({written(path)})")
    return ", ".join(found)


def steadfast_owners(error: ApiError) -> str:
    """Return who owns fields and would take them back, with the fields; empty for nobody.

    Who applied a field declares it, and will again. Who only updated it, by hand or in passing,
    made a drift, which is repaired.
    """
    owners = []
    for cause in error.causes:
        found = _MANAGER.match(cause.get("message", ""))
        if cause.get("reason") == FIELD_CONFLICT and found and " using " not in found[3]:
            owners.append(f"{found[1]} ({cause.get('field', '')})")
    return ", ".join(owners)


def written(path: Path) -> str:
    """Return a path as the API server writes it: `.spec.ports[0]`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)


def pointer(path: Path) -> str:
    """Return a path as JSON Patch has it (RFC 6901)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


def _owns(fields: Manifest, value: Any, path: Path) -> bool:
    """Return whether *fields* hold what is at *path* of *value*, or all that it is in."""
    for key in path:
        value = value[key]
        if not fields:
            return True  # Owned as a whole.
        names = [f"f:{key}"] if isinstance(key, str) else _item_names(fields, value)
        step = next((fields[name] for name in names if name in fields), None)
        if step is None:
            return False
        fields = {name: inner for name, inner in step.items() if name != "."}
    return True


def _item_names(fields: Manifest, item: Any) -> Iterator[str]:
    """Yield the names of *fields* that stand for an item of a list."""
    for name in fields:
        if name.startswith("v:") and json.loads(name[2:]) == item:
            yield name
        if name.startswith("k:") and isinstance(item, dict):
            keys = json.loads(name[2:])
            if all(item.get(key) == value for key, value in keys.items()):
                yield name
