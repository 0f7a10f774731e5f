"""Every structure that real ActiveMQ clients and brokers sent decodes and encodes unchanged."""

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockkeeper.message.bodies import Body, decode_body
from lockkeeper.message.destination import Destination
from lockkeeper.message.openwire import (
    LAYOUTS,
    ActiveMQMapMessage,
    Message,
    Structure,
    Throwable,
    WireFormatInfo,
    decode,
    encode,
)
from lockkeeper.message.primitives import Byte, Char, Float, Long, Short, decode_map, encode_map

GOLDEN = Path(__file__).parents[1] / "golden" / "openwire"
LAYOUT_IDS = {layout.structure: layout.type_id for layout in LAYOUTS.values()}
CAPTURES = sorted(GOLDEN.glob("*.bin"))
DECODED = sorted(GOLDEN.glob("*.decoded.jsonl"))


def frames(path: Path) -> Iterator[bytes]:
    """Yield the bodies of the frames in a recorded stream."""
    data = path.read_bytes()
    position = 0
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        yield data[position + 4 : position + 4 + size]
        position += 4 + size


def version_of(path: Path) -> int:
    """Return the OpenWire version that the connection had negotiated."""
    found = re.search(r"\.v(\d+)-", path.name)
    return int(found[1]) if found else 12


def messages(name: str) -> list[Message]:
    """Return the messages that were sent on the client's side of capture *name*."""
    decoded = (decode(frame)[0] for frame in frames(GOLDEN / f"{name}.c2s.bin"))
    return [each for each in decoded if isinstance(each, Message)]


def as_recorded(value: Any, name: str | None = None) -> Any:
    """Return *value* in the shape that the recorded JSON has, names of fields left out."""
    if isinstance(value, Throwable):
        stack = [
            {"c": each.class_name, "m": each.method, "f": each.file, "l": each.line}
            for each in value.stack
        ]
        cause = as_recorded(value.cause)
        return {"cls": value.class_name, "msg": value.message, "stack": stack, "cause": cause}
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, tuple):
        return [as_recorded(each) for each in value]
    if isinstance(value, WireFormatInfo):
        assert value.properties is not None
        properties = {"hex": encode_map(value.properties).hex()}
        return ["WireFormatInfo", {"hex": value.magic.hex()}, value.version, properties]
    for layout in LAYOUTS.values():
        if isinstance(value, layout.structure) and type(value) is layout.structure:
            if isinstance(value, Destination) and layout.type_id != 100 + value.kind:
                continue
            return [layout.name, *(as_recorded(each) for each in layout.take(value))]
    return value


def without_names(recorded: Any) -> Any:
    """Return a recorded structure as a list of its values, the class name first."""
    if isinstance(recorded, dict) and "@" in recorded:
        return [without_names(each) for each in recorded.values()]
    if isinstance(recorded, dict):
        return {name: without_names(each) for name, each in recorded.items()}
    if isinstance(recorded, list):
        return [without_names(each) for each in recorded]
    return recorded


def test_the_captures_are_there() -> None:
    assert len(CAPTURES) > 70
    assert {version_of(path) for path in CAPTURES} >= {1, 2, 3, 5, 6, 7, 9, 10, 11, 12}


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_a_captured_frame_decodes_and_encodes_to_the_same_bytes(path: Path) -> None:
    version = version_of(path)
    for frame in frames(path):
        structure, end = decode(frame, 0, version)
        assert end == len(frame)
        assert encode(structure, version) == frame


@pytest.mark.parametrize("path", DECODED, ids=lambda path: path.name)
def test_captured_frames_have_the_values_an_independent_decoder_found(path: Path) -> None:
    recorded = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(recorded) >= 15
    for side in ("c2s", "s2c"):
        stream = path.name.replace("decoded.jsonl", f"{side}.bin")
        expected = [without_names(each["frame"]) for each in recorded if each["dir"] == side]
        found: list[Structure] = [decode(frame)[0] for frame in frames(GOLDEN / stream)]
        assert [as_recorded(each) for each in found] == expected


def test_the_options_of_a_real_client_are_a_dict_with_java_types() -> None:
    first = next(frames(GOLDEN / "a517.loose-nocache.types.1.c2s.bin"))
    info = decode(first)[0]
    assert isinstance(info, WireFormatInfo) and info.properties is not None
    assert info.properties["TightEncodingEnabled"] is False
    assert info.properties["MaxInactivityDuration"] == 30000
    assert type(info.properties["MaxInactivityDuration"]) is Long
    assert type(info.properties["CacheSize"]) is int


def test_properties_and_bodies_of_all_types_survive() -> None:
    seen: set[type] = set()
    for message in messages("a517.loose-nocache.types.1"):
        decode_body(LAYOUT_IDS[type(message)], message.content, message.compressed)
        if message.marshalled_properties is not None:
            properties, _ = decode_map(message.marshalled_properties)
            assert properties is not None
            assert encode_map(properties) == message.marshalled_properties
            seen |= {type(value) for value in properties.values()}
        if isinstance(message, ActiveMQMapMessage) and message.content is not None:
            body = decode_body(25, message.content)
            assert isinstance(body, dict) and encode_map(body) == message.content
            seen |= {type(value) for value in body.values()}
    assert seen >= {bool, Byte, Short, int, Long, Float, float, str, Char, bytes}


def bodies(name: str) -> list[Body]:
    """Return the bodies of the messages sent in capture *name*."""
    return [
        decode_body(LAYOUT_IDS[type(each)], each.content, each.compressed)
        for each in messages(name)
    ]


def test_compressed_bodies_are_what_the_plain_ones_are() -> None:
    assert sum(each.compressed for each in messages("a517.loose-nocache.compressed.1")) == 7
    plain = bodies("a517.loose-nocache.types.1")
    assert plain[0] == "hello world"
    assert bodies("a517.loose-nocache.compressed.1") == plain
    assert bodies("a617.loose-nocache.compressed.1")[:8] == plain[:8]
