"""An advisory has the fields that ActiveMQ 5.17 gives it, as a recorded connection shows."""

import struct
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockkeeper.message.openwire import DestinationInfo, Message, MessageDispatch, decode
from lockkeeper.message.rewrite import decoded, properties_of

if TYPE_CHECKING:
    from conftest import Bench

GOLDEN = Path(__file__).parents[1] / "golden" / "openwire" / "a517.loose-nocache.temp.1.s2c.bin"
# Of the broker, of the moment, or of the command that made the destination.
OWN = {
    "marshalled_properties",
    "message_id",
    "producer_id",
    "broker_in_time",
    "broker_out_time",
    "data_structure",
    "target_consumer_id",
}


def recorded_advisories() -> Iterator[Message]:
    data = GOLDEN.read_bytes()
    position = 0
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        command, _ = decode(data[position + 4 : position + 4 + size])
        position += 4 + size
        if isinstance(command, MessageDispatch) and isinstance(
            getattr(command.message, "data_structure", None), DestinationInfo
        ):
            assert command.message is not None
            yield command.message


def common(message: Message) -> dict[str, Any]:
    return {
        field.name: getattr(message, field.name)
        for field in fields(message)
        if field.name not in OWN
    }


def test_a_temporary_queue_is_told_of_as_activemq_does(bench: "Bench") -> None:
    for expected in recorded_advisories():
        info = expected.data_structure
        assert isinstance(info, DestinationInfo) and info.destination is not None
        client, listener = bench.client(), bench.client()
        listener.consume(str(expected.destination))
        bench.broker.destinations.create_temporary(client.connection, info.destination)
        bench.tick()
        if info.operation_type:
            listener.deliveries()
            bench.broker.destinations.remove_temporary(client.connection, info.destination)
        bench.tick()
        (delivery,) = listener.deliveries()
        ours = decoded(delivery.message)
        assert common(ours) == common(expected)
        assert properties_of(ours).keys() == properties_of(expected).keys()
        told = ours.data_structure
        assert isinstance(told, DestinationInfo)
        assert (told.destination, told.operation_type) == (info.destination, info.operation_type)
        client.leave()


def test_the_recording_has_advisories() -> None:
    kinds = [
        info.operation_type
        for each in recorded_advisories()
        if isinstance(info := each.data_structure, DestinationInfo)
    ]
    assert kinds, "or the test before has shown nothing"
