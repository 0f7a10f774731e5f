"""Primitive maps and lists keep Java's types, and refuse what is impossible."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.primitives import (
    Byte,
    Char,
    Float,
    Long,
    Short,
    decode_list,
    decode_map,
    decode_value,
    encode_list,
    encode_map,
    encode_value,
)

TEXTS = st.text(max_size=20)
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-128, 127).map(Byte)
    | st.integers(0, 0xFFFF).map(lambda unit: Char(chr(unit)))
    | st.integers(-32768, 32767).map(Short)
    | st.integers(-(1 << 31), (1 << 31) - 1)
    | LONGS.map(Long)
    | st.floats(allow_nan=False)
    | st.floats(allow_nan=False, width=32).map(Float)
    | TEXTS
    | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


def typed(value: Any) -> Any:
    """Return *value* with the type of everything in it, because Byte(1) equals 1."""
    if isinstance(value, dict):
        return {key: typed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [typed(each) for each in value]
    return type(value), value


@given(mapping=st.dictionaries(TEXTS, VALUES, max_size=5))
@settings(max_examples=300, deadline=None)
def test_a_map_survives_with_its_types_and_order(mapping: dict[str, Any]) -> None:
    wire = encode_map(mapping)
    found, end = decode_map(b"?" + wire + b"?", 1)
    assert end == 1 + len(wire)
    assert typed(found) == typed(mapping)
    assert found is not None and list(found) == list(mapping)
    assert encode_map(found) == wire


@given(values=st.lists(VALUES, max_size=5))
@settings(max_examples=100, deadline=None)
def test_a_list_survives_with_its_types(values: list[Any]) -> None:
    assert typed(decode_list(encode_list(values))[0]) == typed(values)


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (None, "00"),
        (True, "0101"),
        (Byte(-1), "02ff"),
        (Char("Z"), "03005a"),
        (Short(3), "040003"),
        (5, "0500000005"),
        (Long(6), "060000000000000006"),
        (1 << 31, "060000000080000000"),
        (1.25, "073ff4000000000000"),
        (Float(1.5), "083fc00000"),
        ("v\0", "09000376c080"),
        (b"\x09\x08", "0a000000020908"),
        ({"a": 1}, "0b0000000100016105" + "00000001"),
        ([None, "b"], "0c0000000200090001" + "62"),
    ],
)
def test_a_value_has_the_bytes_of_the_specification(value: Any, wire: str) -> None:
    assert encode_value(value).hex() == wire
    expected = Long(value) if wire.startswith("06") else value
    assert typed(decode_value(bytes.fromhex(wire))[0]) == typed(expected)


def test_long_texts_have_a_wide_length() -> None:
    assert encode_value("x" * 8190)[0] == 9
    assert encode_value("x" * 8191)[0] == 13
    assert encode_value("\U0001f600" * 4096)[0] == 13
    assert decode_value(encode_value("é" * 70000))[0] == "é" * 70000


def test_a_null_map_is_none() -> None:
    assert decode_map(b"\xff\xff\xff\xff") == (None, 4)
    assert encode_map(None) == b"\xff\xff\xff\xff"


def test_not_a_number_survives() -> None:
    for value in (math.nan, Float(math.nan)):
        found = decode_value(encode_value(value))[0]
        assert isinstance(found, float) and math.isnan(found)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Byte(128), "does not fit"),
        (Short(1 << 15), "does not fit"),
        (1 << 63, "does not fit"),
        (Float(1e300), "does not fit"),
        (Char("ab"), "one UTF-16 unit"),
        ({1: 2}, "key must be a text"),
        (object(), "object is not a type"),
    ],
)
def test_a_value_that_java_cannot_hold_is_refused(value: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        encode_map({"key": value})


def test_nesting_is_limited_both_ways() -> None:
    value: Any = {}
    for _ in range(15):
        value = {"k": value}
    wire = encode_map(value)
    assert decode_map(wire)[0] == value
    with pytest.raises(ValueError, match="nested"):
        encode_map({"k": value})
    with pytest.raises(MalformedMessageError, match="nested"):
        decode_map(b"\x00\x00\x00\x01\x00\x01k\x0b" + wire)


def test_a_map_cut_short_anywhere_is_malformed() -> None:
    wire = encode_map({"a": [1, "two", b"three", Float(4)], "b": {"c": Char("d")}, "e": "é"})
    for end in range(len(wire)):
        with pytest.raises(MalformedMessageError):
            decode_map(wire[:end])


@pytest.mark.parametrize(
    "wire", ["fffffffe", "0000000100016b0e", "0000000100016b0affffffff", "00000001ffff", "7fffffff"]
)
def test_impossible_counts_lengths_and_types_are_malformed(wire: str) -> None:
    with pytest.raises(MalformedMessageError):
        decode_map(bytes.fromhex(wire))


@given(wire=st.binary(max_size=50))
@settings(max_examples=500, deadline=None)
def test_noise_never_raises_anything_else(wire: bytes) -> None:
    for decode in (decode_map, decode_list, decode_value):
        try:
            decode(wire)
        except MalformedMessageError as error:
            assert str(error)
