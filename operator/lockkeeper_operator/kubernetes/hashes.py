"""Short hashes of values, to tell whether two are the same."""

import json
from typing import Any

from lockkeeper_api.hashes import hash_of_text


def hash_of(value: Any) -> str:
    """Return a hash of a JSON value; the order of keys does not matter."""
    return hash_of_text(json.dumps(value, sort_keys=True, separators=(",", ":")))
