"""Short hashes of texts, by which an operator and its brokers tell configurations apart."""

import hashlib

HASH_CHARACTERS = 16


def hash_of_text(text: str) -> str:
    """Return the first 16 characters of the SHA-256 of *text*, as sha256sum prints it."""
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARACTERS]
