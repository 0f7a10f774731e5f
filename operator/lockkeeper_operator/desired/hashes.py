"""Short hashes of values, to tell whether two are the same."""

import hashlib
import json
from typing import Any

HASH_CHARACTERS = 16


def hash_of_text(text: str) -> str:
    """Return the first 16 characters of the SHA-256 of *text*, as sha256sum prints it."""
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARACTERS]


def hash_of(value: Any) -> str:
    """Return a hash of a JSON value; the order of keys does not matter."""
    return hash_of_text(json.dumps(value, sort_keys=True, separators=(",", ":")))
