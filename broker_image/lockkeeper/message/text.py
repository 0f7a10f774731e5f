"""Modified UTF-8, the text encoding of Java's DataOutput (openwire.md section 2).

U+0001..U+007F take one byte, U+0000 and U+0080..U+07FF two, everything else three bytes per
UTF-16 unit, so a character beyond U+FFFF is two surrogates of three bytes each.
"""


def encode_text(text: str) -> bytes:
    """Return *text* in modified UTF-8."""
    if text.isascii() and "\0" not in text:
        return text.encode("ascii")
    units = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    if any(character > "\uffff" for character in units):
        units = "".join(map(_surrogates, units))
    return units.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")


def decode_text(data: bytes) -> str:
    """Return the text held by modified UTF-8 *data*.

    Raises UnicodeDecodeError (a ValueError) when *data* is not modified UTF-8.
    """
    if data.isascii():
        return data.decode("ascii")
    units = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def _surrogates(character: str) -> str:
    if character <= "\uffff":
        return character
    offset = ord(character) - 0x10000
    return chr(0xD800 + (offset >> 10)) + chr(0xDC00 + (offset & 0x3FF))
