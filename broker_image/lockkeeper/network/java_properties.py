"""Texts of Java's Properties, in which a duplex bridge tells the other end of its settings."""

import re
from collections.abc import Mapping

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPECIAL = re.compile(r"[\\:=#! \t\n\r\f]|[^\x20-\x7e]")
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t\f]*")
_LINE = re.compile(r"((?:\\.|[^\\:= \t\f])*)[ \t\f]*[:=]?[ \t\f]*(.*)", re.DOTALL)
_NAMES = {value: name for name, value in _ESCAPES.items()}


def written(properties: Mapping[str, str]) -> str:
    """Return *properties* as Java's Properties.store writes them, without its comments."""
    return "".join(f"{_escape(name)}={_escape(value)}\n" for name, value in properties.items())


def read(text: str) -> dict[str, str]:
    """Return the properties of a *text*, as Java's Properties.load reads it."""
    found: dict[str, str] = {}
    for line in _CONTINUED.sub(r"\1", text).splitlines():
        line = line.lstrip(" \t\f")
        if line and line[0] not in "#!":
            match = _LINE.fullmatch(line)
            assert match is not None
            found[_unescape(match[1])] = _unescape(match[2])
    return found


def _escape(text: str) -> str:
    return _SPECIAL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character in _NAMES:
        return "\\" + _NAMES[character]
    if " " <= character <= "~":
        return "\\" + character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _unescape(text: str) -> str:
    plain = _ESCAPED.sub(_unescaped, text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2])
