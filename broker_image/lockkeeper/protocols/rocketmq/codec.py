"""Commands: requests and answers, with headers in JSON or in RocketMQ's own encoding.

Both encodings say the same: a code, who speaks, a number that an answer repeats (`opaque`), flags,
a remark and fields by name, all of them texts. Behind the header comes the body.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import Struct, error
from typing import Any, Final

from lockkeeper.protocols.rocketmq.errors import ProtocolError
from lockkeeper.protocols.rocketmq.frames import HEADER_LENGTH_BYTES, framed

JSON, BINARY = 0, 1
"""Marks of the encodings, in the byte before a header's size."""
PYTHON: Final = 3
VERSION: Final = 479
"""The version of RocketMQ that clients take us for (5.3.3): older ones are denied SQL filters."""
IS_ANSWER, IS_ONE_WAY = 1, 2
FIELDS_MAX: Final = 256
HEADER_BYTES_MAX: Final = 256 << 10

LANGUAGES: Final = (
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP",
    "OMS", "RUST", "NODE_JS",
)  # fmt: skip
OTHER: Final = LANGUAGES.index("OTHER")
# Code, language, version, opaque, flag; then the sizes of remark and fields.
_FIXED: Final = Struct(">hbhii")
_SHORT, _INT = Struct(">h"), Struct(">i")
_HEADER: Final = Struct(">I")
_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1


@dataclass(slots=True)
class Command:
    """A request or an answer; `encoding` is JSON or BINARY."""

    code: int
    opaque: int = 0
    flag: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    remark: str | None = None
    language: int = PYTHON
    version: int = VERSION
    encoding: int = JSON

    @property
    def is_answer(self) -> bool:
        """Tell whether this answers a request."""
        return bool(self.flag & IS_ANSWER)

    @property
    def is_one_way(self) -> bool:
        """Tell whether nobody waits for an answer."""
        return bool(self.flag & IS_ONE_WAY)


def decode(frame: bytes) -> Command:
    """Return the command that a frame without its size holds. Raises ProtocolError."""
    if len(frame) < HEADER_LENGTH_BYTES:
        raise ProtocolError("a frame without a header")
    (mark,) = _HEADER.unpack_from(frame)
    encoding, size = mark >> 24, mark & 0xFFFFFF
    end = HEADER_LENGTH_BYTES + size
    if end > len(frame):
        raise ProtocolError(f"a header of {size} bytes in a frame of {len(frame)}")
    if size > HEADER_BYTES_MAX:
        raise ProtocolError(f"a header of {size} bytes; none is longer than {HEADER_BYTES_MAX}")
    header = frame[HEADER_LENGTH_BYTES:end]
    if encoding == JSON:
        command = _decode_json(header)
    elif encoding == BINARY:
        command = _decode_binary(header)
    else:
        raise ProtocolError(f"a header in the unknown encoding {encoding}; JSON is 0, ROCKETMQ 1")
    command.encoding = encoding
    command.body = frame[end:]
    return command


def encode(command: Command) -> bytes:
    """Return a command as a frame. Raises ProtocolError for what no header can say."""
    return encode_before(command, len(command.body)) + command.body


def encode_before(command: Command, body_bytes: int) -> bytes:
    """Return what comes before a body of so many bytes. Raises ProtocolError."""
    header = _encode_binary(command) if command.encoding == BINARY else _encode_json(command)
    if len(header) > HEADER_BYTES_MAX:
        raise ProtocolError(f"a header of {len(header)} bytes; none is longer")
    return framed(command.encoding, header, body_bytes)


def _decode_json(header: bytes) -> Command:
    try:
        told = json.loads(header)
    except (ValueError, RecursionError) as wrong:
        raise ProtocolError(f"a header that is no JSON: {wrong}") from wrong
    if not isinstance(told, dict):
        raise ProtocolError("a header that is no JSON object")
    remark = told.get("remark")
    language = told.get("language")
    return Command(
        _number(told, "code"),
        _number(told, "opaque"),
        _number(told, "flag"),
        _text_fields(told.get("extFields")),
        remark=remark if isinstance(remark, str) else None,
        language=LANGUAGES.index(language) if language in LANGUAGES else OTHER,
        version=_number(told, "version"),
    )


def _number(told: Mapping[str, Any], name: str) -> int:
    value = told.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ProtocolError(f"a header whose {name} is no number")
    if not _INT_MIN <= value <= _INT_MAX:
        raise ProtocolError(f"a header whose {name} has more than 32 bits")
    return value


def _text_fields(told: object) -> dict[str, str]:
    if told is None:
        return {}
    if not isinstance(told, dict) or len(told) > FIELDS_MAX:
        raise ProtocolError(f"extFields that are no object with up to {FIELDS_MAX} fields")
    fields = {}
    for name, value in told.items():
        if isinstance(value, bool):
            fields[name] = str(value).lower()
        elif isinstance(value, (str, int)):
            fields[name] = str(value)
        elif value is not None:
            raise ProtocolError(f"the field {name[:100]} is neither a text nor a number")
    return fields


def _encode_json(command: Command) -> bytes:
    told: dict[str, Any] = {
        "code": command.code,
        "flag": command.flag,
        "language": LANGUAGES[command.language],
        "opaque": command.opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": command.version,
    }
    if command.fields:
        told["extFields"] = command.fields
    if command.remark is not None:
        told["remark"] = command.remark
    return json.dumps(told, separators=(",", ":")).encode()


def _decode_binary(header: bytes) -> Command:
    try:
        code, language, version, opaque, flag = _FIXED.unpack_from(header)
        remark, position = _text(header, _FIXED.size, _INT)
        (size,) = _INT.unpack_from(header, position)
    except error as wrong:
        raise ProtocolError("a header that is cut short") from wrong
    position += _INT.size
    end = position + size
    if not position <= end <= len(header):
        raise ProtocolError(f"fields of {size} bytes in a header of {len(header)}")
    fields: dict[str, str] = {}
    while position < end:
        try:
            name, position = _text(header, position, _SHORT)
            value, position = _text(header, position, _INT)
        except error as wrong:
            raise ProtocolError("a field that is cut short") from wrong
        fields[name] = value
        if len(fields) > FIELDS_MAX:
            raise ProtocolError(f"a header with more than {FIELDS_MAX} fields")
    if position != end:
        raise ProtocolError("fields that are longer than all of them together")
    language = language if 0 <= language < len(LANGUAGES) else OTHER
    return Command(
        code, opaque, flag, fields, remark=remark or None, language=language, version=version
    )


def _text(header: bytes, position: int, length: Struct) -> tuple[str, int]:
    """Return the text at *position*, and where it ends. Raises struct.error, ProtocolError."""
    (size,) = length.unpack_from(header, position)
    start = position + length.size
    end = start + size
    if not start <= end <= len(header):
        raise ProtocolError(f"a text of {size} bytes in a header of {len(header)}")
    try:
        return header[start:end].decode(), end
    except UnicodeDecodeError as wrong:
        raise ProtocolError(f"a text that is not UTF-8: {wrong}") from wrong


def _encode_binary(command: Command) -> bytes:
    entries = []
    for name, value in command.fields.items():
        written = _written(name)
        if len(written) > 0x7FFF:
            raise ProtocolError(f"a field's name of {len(written)} bytes; it has up to 32767")
        entries += [_SHORT.pack(len(written)), written]
        written = _written(value)
        entries += [_INT.pack(len(written)), written]
    fields = b"".join(entries)
    remark = _written(command.remark or "")
    try:
        fixed = _FIXED.pack(
            command.code, command.language, command.version, command.opaque, command.flag
        )
    except error as wrong:
        raise ProtocolError(f"code {command.code} does not fit into 16 bits") from wrong
    return b"".join((fixed, _INT.pack(len(remark)), remark, _INT.pack(len(fields)), fields))


def _written(text: str) -> bytes:
    # Halves of surrogate pairs come in JSON; no encoding of bytes has a place for them.
    return text.encode("utf-8", "replace")
