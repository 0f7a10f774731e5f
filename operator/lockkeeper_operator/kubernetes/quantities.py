"""Kubernetes' quantities: `500m`, `1`, `1.5Gi`, `2e3`; the API server writes them its own way."""

import re
from decimal import Decimal

_SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12),
    "P": Decimal(10**15), "E": Decimal(10**18), "Ki": Decimal(2**10), "Mi": Decimal(2**20),
    "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
_QUANTITY = re.compile(r"([+-]?\d{1,24}(?:\.\d{0,12})?(?:[eE][+-]?\d{1,2})?)([numkMGTPE]i?)?")


def quantity(value: object) -> Decimal | None:
    """Return the number that *value* says, or None for what is no quantity."""
    match = _QUANTITY.fullmatch(str(value))
    if match is None or isinstance(value, bool) or (match[2] or "") not in _SUFFIXES:
        return None
    return Decimal(match[1]) * _SUFFIXES[match[2] or ""]
