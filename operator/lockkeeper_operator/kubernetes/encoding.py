"""Encoding of text in Secrets."""

from base64 import b64encode
from collections.abc import Mapping


def encoded(values: Mapping[str, str]) -> dict[str, str]:
    """Return *values* as the `data` of a Secret."""
    return {name: b64encode(value.encode()).decode() for name, value in values.items()}
