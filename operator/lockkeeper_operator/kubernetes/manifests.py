"""Manifests: objects as the API server reads and writes them."""

from typing import Any, TypeAlias

Manifest: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str]
"""Kind and name of an object, within one namespace."""


def key_of(manifest: Manifest) -> Key:
    """Return the key of an object."""
    return manifest["kind"], manifest["metadata"]["name"]
