"""Places where characters stand in a text, as bits of a number: all of them are looked at at once.

Bit 0 is the first place. What Python does with one number takes as long as reading its bytes.
"""

from collections.abc import Callable
from typing import Final

_OTHERS: Final = b"0" * 256
_ONE: Final = b"1"

Places = Callable[[str], int]
"""Returns where a character stands."""


def places_in(text: str) -> Places:
    """Return what tells where each character stands in *text*, which is not empty."""
    backwards = text[::-1]
    try:
        octets = backwards.encode("latin-1")
    except UnicodeEncodeError:
        return _places_in_wide(backwards)
    return lambda character: _places_of(octets, ord(character)) if ord(character) < 256 else 0


def _places_in_wide(backwards: str) -> Places:
    """Return the same where characters take several bytes: those at which all of them fit."""
    octets = backwards.encode("utf-32-le", "surrogatepass")
    planes = [octets[at::4] for at in range(3)]
    known: dict[tuple[int, int], int] = {}

    def places(character: str) -> int:
        found = -1
        for at, octet in enumerate(ord(character).to_bytes(3, "little")):
            if (at, octet) not in known:
                known[at, octet] = _places_of(planes[at], octet)
            found &= known[at, octet]
        return found

    return places


def _places_of(octets: bytes, octet: int) -> int:
    return int(octets.translate(_OTHERS[:octet] + _ONE + _OTHERS[octet + 1 :]), 2)
