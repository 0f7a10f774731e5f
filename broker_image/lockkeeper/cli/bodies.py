"""Message bodies and properties for `send`: words, files, standard input."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lockkeeper.cli.errors import misused

if TYPE_CHECKING:
    from lockkeeper.message.primitives import Value

BATCH_MESSAGES_MAX = 500
LONG_MAX = 2**63 - 1
READ_BYTES = 64 * 1024
STANDARD_INPUT = Path("-")


class BodyType(StrEnum):
    """Kind of message to send."""

    TEXT = "text"
    BYTES = "bytes"


def to_body(data: bytes, kind: BodyType, where: str) -> str | bytes:
    """Return *data* as a body; CommandError naming *where* it came from when it is no text."""
    if kind is BodyType.BYTES:
        return data
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} is no UTF-8"
        raise misused(f"{where}: {reason}; --type bytes sends it as it is") from error


def read_file(path: Path, kind: BodyType) -> str | bytes:
    """Return a file's content as a body; `-` is standard input."""
    if path == STANDARD_INPUT:
        return to_body(sys.stdin.buffer.read(), kind, "standard input")
    return to_body(path.read_bytes(), kind, str(path))


def line_batches(kind: BodyType) -> Iterator[Sequence[str | bytes]]:
    """Yield the lines of standard input, as many at a time as are there already.

    So a file is sent in large transactions, and a line that somebody types at once.
    """
    number, rest = 0, b""
    standard_input = cast(BufferedReader, sys.stdin.buffer)
    while data := standard_input.read1(READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        for first in range(0, len(lines), BATCH_MESSAGES_MAX):
            batch = lines[first : first + BATCH_MESSAGES_MAX]
            yield list(_to_bodies(batch, kind, number))
            number += len(batch)
    if rest:
        yield list(_to_bodies([rest], kind, number))


def repeated_batches(body: str | bytes, count: int) -> Iterator[Sequence[str | bytes]]:
    """Yield *body*, *count* times, in batches."""
    for first in range(0, count, BATCH_MESSAGES_MAX):
        yield [body] * min(BATCH_MESSAGES_MAX, count - first)


def parse_properties(options: Iterable[str]) -> "dict[str, Value]":
    """Return the properties that options `NAME=VALUE` say.

    A value that is a JSON number, true, false or a text in double quotes is that, so that
    selectors can compare it; anything else is a text as it stands.
    """
    found: dict[str, Value] = {}
    for option in options:
        name, separator, value = option.partition("=")
        if not (name and separator):
            raise misused(f"--property {option}: write NAME=VALUE")
        found[name] = parsed = _parse_value(value)
        if isinstance(parsed, int) and not -LONG_MAX <= parsed <= LONG_MAX:
            raise misused(f"--property {option}: a whole number has 64 bits at most")
    return found


def _to_bodies(lines: Iterable[bytes], kind: BodyType, before: int) -> Iterator[str | bytes]:
    for number, line in enumerate(lines, start=before + 1):
        yield to_body(line.removesuffix(b"\r"), kind, f"line {number}")


def _parse_value(text: str) -> "Value":
    try:
        value = json.loads(text, parse_constant=str)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float | str) else text
