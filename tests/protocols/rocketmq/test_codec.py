"""Frames, headers, stored messages and batches: what is written is read, and nothing else."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockkeeper.protocols.rocketmq import codec
from lockkeeper.protocols.rocketmq.bodies import read_heartbeat, read_lock_request, with_object_map
from lockkeeper.protocols.rocketmq.codec import BINARY, JSON, Command, decode, encode
from lockkeeper.protocols.rocketmq.errors import ProtocolError
from lockkeeper.protocols.rocketmq.frames import FrameBuffer
from lockkeeper.protocols.rocketmq.messages import (
    Host,
    InBatch,
    Stored,
    decode_batch,
    decode_properties,
    decode_stored,
    encode_batch,
    encode_properties,
    encode_stored,
    message_id,
    parse_host,
    place_of,
)
from lockkeeper.protocols.rocketmq.signatures import SIGNATURE, is_signed, signature_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz_%", min_size=1, max_size=20)
INTS = st.integers(-(1 << 31), (1 << 31) - 1)
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
VALUES = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]),
                 min_size=1, max_size=30)  # fmt: skip
PROPERTIES = st.dictionaries(VALUES, VALUES, max_size=8)
HOSTS = st.builds(
    Host,
    st.one_of(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16)),
    st.integers(0, 65535),
)
COMMANDS = st.builds(
    Command,
    st.integers(-(1 << 15), (1 << 15) - 1),
    INTS,
    INTS,
    st.dictionaries(NAMES, TEXTS, max_size=8),
    st.binary(max_size=100),
    st.one_of(st.none(), TEXTS.filter(bool)),
    st.integers(0, 13),
    st.integers(0, 1000),
    st.sampled_from([JSON, BINARY]),
)
STORED = st.builds(
    Stored,
    st.text("abc%-", max_size=300),
    INTS,
    LONGS,
    LONGS,
    st.binary(max_size=200),
    PROPERTIES,
    INTS,
    st.integers(0, 15),
    LONGS,
    HOSTS,
    LONGS,
    HOSTS,
    INTS,
    LONGS,
)


@given(COMMANDS)
def test_a_command_is_read_as_it_was_written(command: Command) -> None:
    frame = encode(command)
    (size,) = struct.unpack_from(">i", frame)
    assert size == len(frame) - 4
    assert decode(frame[4:]) == command


@given(st.binary(max_size=300))
def test_other_bytes_are_a_protocol_error_at_most(data: bytes) -> None:
    for reader in (decode, decode_stored, decode_batch, read_heartbeat, read_lock_request):
        try:
            reader(data)
        except ProtocolError:
            continue


@given(COMMANDS, st.integers(0, 400))
def test_a_frame_cut_short_is_never_another_one(command: Command, at: int) -> None:
    frame = encode(command)[4:]
    body = len(command.body)
    if at >= len(frame) - body:
        return
    with pytest.raises(ProtocolError):
        decode(frame[:at])


@given(STORED)
def test_a_stored_message_is_read_as_it_was_written(message: Stored) -> None:
    read = decode_stored(encode_stored(message))
    flags = 16 * message.born_host.is_ipv6 | 32 * message.stored_host.is_ipv6
    message.system_flag |= flags
    assert read == message


@given(st.lists(st.builds(InBatch, st.binary(max_size=50), PROPERTIES, INTS), max_size=5))
def test_a_batch_is_read_as_it_was_written(messages: list[InBatch]) -> None:
    assert decode_batch(encode_batch(messages)) == messages


@given(PROPERTIES)
def test_properties_are_read_as_they_were_written(properties: dict[str, str]) -> None:
    assert decode_properties(encode_properties(properties).decode()) == properties


def test_properties_without_a_name_or_a_value_are_passed_over() -> None:
    assert decode_properties("a\x01\x02\x01b\x02c\x02\x02d\x01e") == {"d": "e"}


@given(HOSTS, LONGS)
def test_a_message_id_tells_the_place(host: Host, place: int) -> None:
    identifier = message_id(host, place)
    assert len(identifier) in (32, 56)
    assert place_of(identifier) == place


@pytest.mark.parametrize("text", ["", "x", "0102", "zz" * 16])
def test_other_texts_are_no_message_ids(text: str) -> None:
    assert place_of(text) is None


@pytest.mark.parametrize(
    ("text", "address", "port"),
    [
        ("10.0.0.7:40112", b"\x0a\x00\x00\x07", 40112),
        ("[::1]:5", bytes(15) + b"\x01", 5),
        ("[::ffff:10.0.0.7]:5", b"\x0a\x00\x00\x07", 5),
        ("somewhere:5", bytes(4), 0),
        ("10.0.0.7:70000", bytes(4), 0),
    ],
)
def test_hosts(text: str, address: bytes, port: int) -> None:
    assert parse_host(text) == Host(address, port)


def test_a_java_header_is_read() -> None:
    header = {
        "code": 105, "extFields": {"topic": "t", "count": 3, "on": True, "none": None},
        "flag": 0, "language": "JAVA", "opaque": 7, "serializeTypeCurrentRPC": "JSON",
        "version": 401,
    }  # fmt: skip
    told = json.dumps(header).encode()
    command = decode(struct.pack(">I", len(told)) + told + b"body")
    assert command.fields == {"topic": "t", "count": "3", "on": "true"}
    assert (command.code, command.opaque, command.language, command.body) == (105, 7, 0, b"body")


@pytest.mark.parametrize(
    "header",
    [
        b"[]", b"{", b"\xff", b'{"code": "1"}', b'{"code": true}', b'{"code": 99999999999}',
        b'{"extFields": []}', b'{"extFields": {"a": {}}}', b"[" * 10_000,
    ],
)  # fmt: skip
def test_wrong_json_headers_are_refused(header: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(struct.pack(">I", len(header)) + header)


def test_more_fields_than_any_request_has_are_refused() -> None:
    fields = {str(number): "" for number in range(codec.FIELDS_MAX + 1)}
    for encoding in (JSON, BINARY):
        with pytest.raises(ProtocolError, match="256"):
            decode(encode(Command(1, fields=fields, encoding=encoding))[4:])


@pytest.mark.parametrize("size", [-1, 0, 3, 1001])
def test_a_frame_of_another_size_is_refused(size: int) -> None:
    buffer = FrameBuffer(1000)
    buffer.feed(struct.pack(">i", size))
    with pytest.raises(ProtocolError, match="frameBytesMax"):
        buffer.take_frame()


@given(st.lists(COMMANDS, max_size=4), st.integers(1, 50))
def test_frames_come_in_pieces(commands: list[Command], size: int) -> None:
    data = b"".join(map(encode, commands))
    buffer, taken = FrameBuffer(1 << 20), []
    for start in range(0, len(data), size):
        buffer.feed(data[start : start + size])
        while (frame := buffer.take_frame()) is not None:
            taken.append(decode(frame))
    assert taken == commands
    assert len(buffer) == 0


def test_a_signature_covers_fields_and_body() -> None:
    # The order is that of the names; the values alone are signed, and the body behind them.
    request = Command(10, fields={"b": "2", "AccessKey": "user", "a": "1"}, body=b"body")
    signature = signature_of(request, "secret")
    request.fields[SIGNATURE] = signature
    assert signature == "4oDhQOx89bp8l5DFSd7nwmE18Qs="
    assert is_signed(request, "secret")
    assert not is_signed(request, "another")
    request.body = b"other"
    assert not is_signed(request, "secret")


def test_a_map_with_objects_as_keys_is_written_as_java_does() -> None:
    written = with_object_map("offsetTable", [({"queueId": 0}, 5), ({"queueId": 1}, 6)], {"x": 1})
    assert written == b'{"offsetTable":{{"queueId":0}:5,{"queueId":1}:6},"x":1}'
