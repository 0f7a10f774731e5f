"""Passwords at rest: `scrypt$N$R$P$SALT$KEY`, salt and key in base64 (scrypt: RFC 7914)."""

import base64
import binascii
import hashlib
import hmac
from typing import NamedTuple

SCHEME = "scrypt"
COST, BLOCK_SIZE, PARALLELISM = 2**14, 8, 1
KEY_BYTES = 32
SALT_BYTES_MAX = 64
_SEPARATOR = "$"
# What a hash from elsewhere may ask for: it must not take the broker's memory or minutes.
_COST_MAX, _BLOCK_SIZE_MAX, _PARALLELISM_MAX = 2**17, 16, 4
_MEMORY_BYTES_MAX = 512 << 20


class InvalidHashError(ValueError):
    """A text is no hash of a password; it says why, and never shows the text."""


class _Hash(NamedTuple):
    cost: int
    block_size: int
    parallelism: int
    salt: bytes
    key: bytes


def hashed(password: str, salt: bytes) -> str:
    """Return the hash of *password*; the same salt (16 bytes or so) makes the same hash.

    Raises ValueError for a salt of no bytes or of more than SALT_BYTES_MAX.
    """
    if not 0 < len(salt) <= SALT_BYTES_MAX:
        raise ValueError(f"a salt has 1 to {SALT_BYTES_MAX} bytes, not {len(salt)}")
    key = _key(password, _Hash(COST, BLOCK_SIZE, PARALLELISM, salt, bytes(KEY_BYTES)))
    numbers = map(str, (COST, BLOCK_SIZE, PARALLELISM))
    encoded = (base64.b64encode(value).decode() for value in (salt, key))
    return _SEPARATOR.join((SCHEME, *numbers, *encoded))


def matches(password: str, hash: str) -> bool:
    """Tell whether *hash* is that of *password*; takes some 50 ms, as it must.

    Raises InvalidHashError.
    """
    expected = _read(hash)
    return hmac.compare_digest(_key(password, expected), expected.key)


def check_hash(hash: str) -> str:
    """Return *hash* if it is one. Raises InvalidHashError."""
    _read(hash)
    return hash


def _read(text: str) -> _Hash:
    parts = text.split(_SEPARATOR)
    if len(parts) != 6 or parts[0] != SCHEME:
        raise InvalidHashError(f"expected {SCHEME}$N$R$P$SALT$KEY")
    try:
        cost, block_size, parallelism = map(int, parts[1:4])
        salt, key = (base64.b64decode(part, validate=True) for part in parts[4:])
    except (ValueError, binascii.Error):
        raise InvalidHashError(f"expected numbers and base64 in {SCHEME}$N$R$P$SALT$KEY") from None
    if not 2 <= cost <= _COST_MAX or cost & (cost - 1):
        raise InvalidHashError(f"N is no power of 2 up to {_COST_MAX}")
    if not (1 <= block_size <= _BLOCK_SIZE_MAX and 1 <= parallelism <= _PARALLELISM_MAX):
        raise InvalidHashError(f"R is not 1 to {_BLOCK_SIZE_MAX}, or P not 1 to {_PARALLELISM_MAX}")
    if not 0 < len(salt) <= SALT_BYTES_MAX or len(key) != KEY_BYTES:
        raise InvalidHashError(f"the salt is not 1 to {SALT_BYTES_MAX} bytes, or the key not 32")
    return _Hash(cost, block_size, parallelism, salt, key)


def _key(password: str, hash: _Hash) -> bytes:
    return hashlib.scrypt(
        password.encode(errors="surrogatepass"),
        salt=hash.salt,
        n=hash.cost,
        r=hash.block_size,
        p=hash.parallelism,
        maxmem=_MEMORY_BYTES_MAX,
        dklen=KEY_BYTES,
    )
