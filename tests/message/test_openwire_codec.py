"""The codec gives back what it got, in every version, and refuses what is impossible."""

import struct
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockkeeper.message.destination import queue, topic
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId, XATransactionId
from lockkeeper.message.openwire import (
    LAYOUTS,
    ActiveMQMessage,
    ActiveMQTextMessage,
    BrokerId,
    BrokerInfo,
    ConnectionId,
    ConnectionInfo,
    ConsumerId,
    ConsumerInfo,
    DataArrayResponse,
    DataResponse,
    ExceptionResponse,
    KeepAliveInfo,
    Layout,
    MessageAck,
    MessageDispatch,
    NetworkBridgeFilter,
    RemoveInfo,
    StackElement,
    Structure,
    Throwable,
    WireFormatInfo,
    codec_for,
    decode,
    encode,
)
from lockkeeper.message.openwire.structure import Field, Wire, layouts_of
from lockkeeper.message.primitives import Long

TEXTS = st.text(max_size=12)
TRACES = st.builds(
    StackElement, TEXTS, st.none() | TEXTS, st.none() | TEXTS, st.integers(-2, 1 << 20)
)
SIMPLE: dict[Wire, st.SearchStrategy[Any]] = {
    Wire.FLAG: st.booleans(),
    Wire.INT8: st.integers(-128, 127),
    Wire.INT32: st.integers(-(1 << 31), (1 << 31) - 1),
    Wire.INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    Wire.RAW8: st.binary(min_size=8, max_size=8),
    Wire.TEXT: st.none() | TEXTS,
    Wire.REQUIRED_TEXT: TEXTS,
    Wire.OCTETS: st.none() | st.binary(max_size=20),
    Wire.REQUIRED_OCTETS: st.binary(max_size=20),
    Wire.PROPERTIES: st.none() | st.dictionaries(TEXTS, st.booleans() | TEXTS, max_size=3),
    Wire.THROWABLE: st.none()
    | st.builds(
        Throwable,
        TEXTS,
        st.none() | TEXTS,
        st.lists(TRACES, max_size=2).map(tuple),
        st.none() | st.builds(Throwable, TEXTS, TEXTS),
    ),
}


def structures(layout: Layout, version: int, depth: int) -> st.SearchStrategy[Any]:
    """Return a strategy for objects of *layout* with the fields that *version* has."""
    values = [
        values_of(field, version, depth) if field.present(version) else st.just(field.default)
        for field in layout.fields
    ]
    return st.tuples(*values).map(lambda each: layout.build(*each))


def values_of(field: Field, version: int, depth: int) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of *field*."""
    if field.wire in SIMPLE:
        return SIMPLE[field.wire]
    if not depth:
        return st.none()
    choices = [structures(each, version, depth - 1) for each in layouts_of(field.classes)]
    if field.wire is Wire.ARRAY:
        return st.none() | st.lists(st.one_of(choices), max_size=2).map(tuple)
    return st.none() | st.one_of(choices)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=lambda layout: layout.name)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_structure_survives_in_any_version(layout: Layout, data: st.DataObject) -> None:
    version = data.draw(st.integers(1, 12))
    original = data.draw(structures(layout, version, 1))
    wire = encode(original, version)
    assert wire[0] == layout.type_id
    assert decode(b"??" + wire + b"??", 2, version) == (original, 2 + len(wire))


def dispatch() -> MessageDispatch:
    """Return a dispatch with something in most fields."""
    producer = ProducerId("ID:host-1:1", 1, 1)
    message = ActiveMQTextMessage(
        command_id=7,
        producer_id=producer,
        destination=queue("ORDERS"),
        transaction_id=XATransactionId(9, b"global", b"branch"),
        original_transaction_id=LocalTransactionId("ID:host-1:1", 4),
        message_id=MessageId(producer, 12, 5),
        content=b"\x00\x00\x00\x02hi",
        data_structure=ConnectionInfo(connection_id=ConnectionId("ID:host-1:1")),
        broker_path=(BrokerId("one"), BrokerId("two")),
    )
    return MessageDispatch(
        consumer_id=ConsumerId("ID:host-1:1", 1, 2), destination=queue("ORDERS"), message=message
    )


SAMPLES: list[Structure] = [
    dispatch(),
    ExceptionResponse(
        exception=Throwable("E", "why", (StackElement("c", "m", "f", 3),), Throwable("C"))
    ),
    WireFormatInfo(properties={"CacheSize": 1024, "MaxInactivityDuration": Long(30000)}),
    MessageAck(poison_cause=Throwable("E", None, (StackElement(),))),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda each: type(each).__name__)
def test_bytes_cut_short_anywhere_are_malformed(sample: Structure) -> None:
    wire = encode(sample)
    for end in range(len(wire)):
        with pytest.raises(MalformedMessageError):
            decode(wire[:end])
        with pytest.raises(MalformedMessageError):
            decode(wire, 0, 12, end)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda each: type(each).__name__)
@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_damaged_bytes_never_raise_anything_else(sample: Structure, data: st.DataObject) -> None:
    wire = bytearray(encode(sample))
    for _ in range(data.draw(st.integers(1, 4))):
        wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode(bytes(wire), 0, data.draw(st.integers(1, 12)))
    except MalformedMessageError as error:
        assert "offset" in str(error)


@given(wire=st.binary(max_size=60), version=st.integers(1, 12))
@settings(max_examples=1000, deadline=None)
def test_noise_never_raises_anything_else(wire: bytes, version: int) -> None:
    try:
        decode(wire, 0, version)
    except MalformedMessageError as error:
        assert "offset" in str(error)


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        (b"", "no type byte at offset 0"),
        (b"\x00", "unknown type 0 at offset 0"),
        (b"\xff", "unknown type 255 at offset 0"),
        (b"\x0a\x00\x00", "KeepAliveInfo.command_id at offset 1: the data ends here"),
        (b"\x0a\x00\x00\x00\x01", "KeepAliveInfo.response_required at offset 1"),
        (b"\x78\x00", "ConnectionId.value at offset 1: null"),
        (b"\x78\x01\x00\x09abc", "ConnectionId.value at offset 1: a text of 9 bytes where 3"),
        (b"\x78\x01\x00\x01\xff", "ConnectionId.value at offset 1: 'utf-8'"),
        (b"\x3c\0\0\0\0\x01\xff\xff\xff\xff", "PartialCommand.data at offset 5: a length of -1"),
        (
            b"\x04\0\0\0\0\0\x01\x78\x01\0\0",
            "SessionInfo.session_id at offset 6: an object of type 120 does not belong here",
        ),
        (b"\x21\0\0\0\0\0\0\0\0\0\x01\x80\x00", "DataArrayResponse.data at offset 10: an array of"),
        (b"\x21\0\0\0\0\0\0\0\0\0\x01\x00\x01\x00", "DataArrayResponse.data at offset 10: null"),
    ],
)
def test_an_error_names_structure_field_and_offset(wire: bytes, text: str) -> None:
    with pytest.raises(MalformedMessageError) as caught:
        decode(wire)
    assert text in str(caught.value)


def test_objects_nested_too_deep_are_malformed() -> None:
    response: DataResponse = DataResponse()
    for _ in range(16):
        response = DataResponse(data=response)
    assert decode(encode(response))[0] == response
    with pytest.raises(MalformedMessageError, match="more than 16 deep"):
        decode(encode(DataResponse(data=response)))


def test_an_exception_with_too_many_causes_is_malformed() -> None:
    failure = Throwable("E")
    for _ in range(64):
        failure = Throwable("E", cause=failure)
    with pytest.raises(MalformedMessageError, match="more than 64 causes"):
        decode(encode(ExceptionResponse(exception=failure)))


def test_stack_and_cause_stay_away_when_not_negotiated() -> None:
    codec = codec_for(12, stack_traces=False)
    failure = Throwable("E", "why", (StackElement("c", "m", "f", 3),), Throwable("C"))
    ack = MessageAck(message_count=3, poison_cause=failure)
    wire = codec.encode(ack)
    assert wire.endswith(b"\x01\x01\x00\x01E\x01\x00\x03why")
    found, end = codec.decode(wire)
    assert found == MessageAck(message_count=3, poison_cause=Throwable("E", "why"))
    assert end == len(wire)
    no_failure = MessageAck()
    assert codec.decode(codec.encode(no_failure))[0] == no_failure


def test_a_field_is_only_written_to_versions_that_have_it() -> None:
    info = RemoveInfo(object_id=ConnectionId("c"), last_delivered_sequence=5)
    assert len(encode(info, 5)) == len(encode(info, 4)) + 8
    assert decode(encode(info, 4), 0, 4)[0] == RemoveInfo(object_id=ConnectionId("c"))
    bridge = NetworkBridgeFilter(network_ttl=7, message_ttl=1, consumer_ttl=2)
    assert encode(bridge, 9) == b"\x5b\x00\x00\x00\x07\x00"
    assert encode(bridge, 10) == b"\x5b\x00\x00\x00\x00\x01\x00\x00\x00\x02"


def test_only_what_fits_the_wire_is_written() -> None:
    with pytest.raises(ValueError, match=r"KeepAliveInfo\.command_id"):
        encode(KeepAliveInfo(command_id=1 << 31))
    with pytest.raises(ValueError, match=r"ConsumerInfo\.selector .*65536 bytes"):
        encode(ConsumerInfo(selector="x" * 65536))
    with pytest.raises(ValueError, match=r"DataArrayResponse\.data"):
        encode(DataArrayResponse(data=(BrokerId(),) * 32768))
    with pytest.raises(ValueError, match=r"DataResponse\.data .*Layout is not an OpenWire"):
        encode(DataResponse(data=LAYOUTS[1]))  # type: ignore[arg-type]


def test_a_version_out_of_range_is_refused() -> None:
    for version in (0, 13):
        with pytest.raises(ValueError, match="not one of 1 to 12"):
            codec_for(version)


def test_defaults_make_short_commands() -> None:
    info = ConsumerInfo(consumer_id=ConsumerId("c", 1, 2), destination=topic("NEWS"))
    assert decode(encode(info))[0] == info
    assert ActiveMQMessage().priority == 4


def test_ids_can_be_keys_and_cannot_change() -> None:
    consumer = ConsumerId("ID:a-1:1", 1, 2)
    assert {consumer: 1}[ConsumerId("ID:a-1:1", 1, 2)] == 1
    assert str(consumer) == "ID:a-1:1:1:2"
    with pytest.raises(FrozenInstanceError):
        consumer.value = 3  # type: ignore[misc]


def test_a_broker_may_name_its_peers() -> None:
    info = BrokerInfo(peer_broker_infos=(BrokerInfo(broker_name="peer"),))
    assert decode(encode(info))[0] == info
    with pytest.raises(MalformedMessageError, match="does not belong here"):
        decode(encode(info).replace(struct.pack(">HB", 1, 1) + b"\x02", b"\x00\x01\x01\x03"))
