"""Modified UTF-8 holds any Java string, unpaired surrogates included."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockkeeper.message.text import decode_text, encode_text

ANY_CHARACTERS = st.characters() | st.sampled_from("\0\ud800\udc00\U0001f600é\u0800")


@given(text=st.text(ANY_CHARACTERS))
@settings(max_examples=500, deadline=None)
def test_any_text_survives_as_java_sees_it(text: str) -> None:
    units = text.encode("utf-16-be", "surrogatepass")
    assert decode_text(encode_text(text)).encode("utf-16-be", "surrogatepass") == units


@pytest.mark.parametrize(
    ("text", "wire"),
    [("a", "61"), ("\0", "c080"), ("é", "c3a9"), ("中", "e4b8ad"), ("😀", "eda0bdedb880")],
)
def test_a_character_has_the_bytes_that_java_writes(text: str, wire: str) -> None:
    assert encode_text(text).hex() == wire
    assert decode_text(bytes.fromhex(wire)) == text


@pytest.mark.parametrize("wire", [b"\xff", b"\xc3", b"\xed\xa0"])
def test_bytes_that_are_no_text_are_refused(wire: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        decode_text(wire)
